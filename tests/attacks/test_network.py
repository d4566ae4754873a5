"""The network as attacker: no spelling, redirect, resolver or body makes the dialer reach this machine or its network,
or lets it be held or filled. All traffic stays on loopback; a page "secret" stands where nobody may get."""

import asyncio
import gzip

import pytest

from codewhale.permissions.network import judge_host, judge_url, leak
from codewhale.process.dial import DialError, FetchLimits, fetch
from support.website import GUARD, PUBLIC, internet, moved, page_of

SECRET = b"the secret of an inner service"
PRIVATE = (
    # loopback in every spelling that resolvers take
    "127.0.0.1 127.1 127.0.1 0x7f.1 0x7f000001 2130706433 017700000001 0177.0.0.1 0177.1 127.0.0.01 127.000.000.001 "
    "0x7F.0x0.0x0.0x1 127.0.0.1. 0 0.0.0.0 0x0 00 localhost LOCALHOST localhost. a.localhost localhost.localdomain "
    # this network, by number and by name
    "10.0.0.1 10.1 0xa000001 167772161 172.16.5.4 192.168.0.1 192.168.257 100.64.0.1 169.254.1.1 198.18.0.1 "
    "printer router.local x.internal nas.lan intranet kubernetes.default.svc x.svc.cluster.local "
    "1.0.0.127.in-addr.arpa "
    # what serves credentials
    "169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.43518 metadata metadata.google.internal "
    "METADATA.google.internal. metadata.goog 168.63.129.16 100.100.100.200 [fd00:ec2::254] host.docker.internal "
    # no place of the public internet
    "224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 192.0.2.1 203.0.113.7 "
    # version 6, and version 4 inside it
    "[::1] [0:0:0:0:0:0:0:1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:10.0.0.1] [::127.0.0.1] [fe80::1] "
    "[fe80::1%25eth0] [fec0::1] [fc00::1] [fd12:3456::1] [ff02::1] [64:ff9b::7f00:1] [64:ff9b::10.0.0.1] "
    "[64:ff9b:1::a00:1] [2002:7f00:1::] [2002:a00:1::1] [2001:0:7f00:1::] [2001:db8::1] [100::1] "
    # other digits and dots that are folded into these
    "\uff11\uff12\uff17.0.0.1 127\u30020\u30020\u30021 \u2460\u2461\u2466.0.0.1 \uff4cocalhost loc\u00adalhost"
).split()


@pytest.mark.parametrize("host", PRIVATE)
async def test_d1_no_spelling_of_a_place_nearby_is_dialled(host: str) -> None:
    async with internet({}) as net:
        with pytest.raises(DialError) as caught:
            await fetch(f"http://{host}/", GUARD, wires=net.wires)
        assert (caught.value.kind, net.dialled, net.requests, net.resolved) == ("refused", [], [], [])
    assert not judge_host(host).ok


@pytest.mark.parametrize(
    "address", [host.strip("[]") for host in PRIVATE if host[0] == "["] + ["127.0.0.1", "10.9.8.7"]
)
async def test_d1_no_name_leads_to_a_place_nearby(address: str) -> None:
    async with internet({}, {"inner.example.com": [[address.replace("%25", "%")]]}) as net:
        with pytest.raises(DialError) as caught:
            await fetch("http://inner.example.com/", GUARD, wires=net.wires)
        assert (caught.value.kind, net.dialled) == ("refused", [])


INWARD = (
    "http://127.0.0.1/secret http://[::1]/secret //localhost/secret http://2130706433/ http:\\\\127.0.0.1\\x \t//127.1"
)


@pytest.mark.parametrize(
    "place",
    [*INWARD.split(" "), "file:///etc/passwd", "gopher://a.com/", "ftp://a.com/", "javascript:1", "data:text/plain,x",
     "http://a.com:22/", "http://a.com:6379/", "http://user:pw@a.com/", "http://a.com@127.0.0.1/"],
)  # fmt: skip
async def test_d2_a_redirect_leads_nowhere_that_was_not_allowed_at_first(place: str) -> None:
    pages = {"a.com/": moved(place), "127.0.0.1/secret": page_of(SECRET), "localhost/secret": page_of(SECRET)}
    async with internet(pages) as net:
        with pytest.raises(DialError) as caught:
            await fetch("http://a.com/", GUARD, wires=net.wires)
    assert caught.value.kind == "refused" and [asked for asked, _ in net.requests] == ["a.com/"]
    assert net.dialled == [PUBLIC]


async def test_d2_redirects_come_to_an_end() -> None:
    pages = {f"a.com/{number}": moved(f"/{number + 1}") for number in range(11)}
    pages["a.com/loop"] = moved("/loop")
    async with internet(pages | {"a.com/11": page_of(SECRET)}) as net:
        for first in ("0", "loop"):
            with pytest.raises(DialError, match="10 redirects"):
                await fetch(f"http://a.com/{first}", GUARD, wires=net.wires)
        assert (await fetch("http://a.com/1", GUARD, wires=net.wires)).content == SECRET


async def test_d2_credentials_stay_with_their_origin() -> None:
    pages = {"a.com/": moved("/again"), "a.com/again": moved("http://b.com/"), "b.com/": moved("http://a.com/end")}
    told = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Api-Key": "k", "Accept-Language": "de", "Host": "evil.com"}
    async with internet(pages | {"a.com/end": page_of(b"x"), "a.com:8080/": page_of(b"x")}) as net:
        await fetch("http://a.com/", GUARD, headers=told, wires=net.wires)
    carried = [{"authorization", "cookie", "x-api-key"} & set(headers) for _, headers in net.requests]
    assert [len(names) for names in carried] == [3, 3, 0, 0]
    assert [headers["accept-language"] for _, headers in net.requests] == ["de"] * 4
    assert [headers["host"] for _, headers in net.requests] == ["a.com", "a.com", "b.com", "a.com"]


async def test_d3_what_was_checked_is_what_is_dialled() -> None:
    turns = [[PUBLIC], ["127.0.0.1"], [PUBLIC]]
    async with internet({"a.com/": page_of(b"x"), "a.com/r": moved("/")}, {"a.com": turns}) as net:
        assert (await fetch("http://a.com/", GUARD, wires=net.wires)).content == b"x"
        assert (net.resolved, net.dialled) == (["a.com"], [PUBLIC])
    async with internet({"a.com/": page_of(SECRET), "a.com/r": moved("/")}, {"a.com": turns}) as net:
        with pytest.raises(DialError) as caught:
            await fetch("http://a.com/r", GUARD, wires=net.wires)
        assert caught.value.kind == "refused" and (net.resolved, net.dialled) == (["a.com"] * 2, [PUBLIC])


@pytest.mark.parametrize("addresses", [[PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], [PUBLIC] * 20 + ["::1"], []])
async def test_d4_one_private_answer_among_others_is_enough(addresses: list[str]) -> None:
    async with internet({"a.com/": page_of(SECRET)}, {"a.com": [addresses]}) as net:
        with pytest.raises(DialError) as caught:
            await fetch("http://a.com/", GUARD, wires=net.wires)
        assert (caught.value.kind, net.dialled) == ("refused", [])


@pytest.mark.parametrize(
    "url",
    ["http://user@a.com/", "http://a.com:22/", "http://a.com:25/", "http://a.com:6379/", "http://a.com\\@127.0.0.1/",
     "http://a.com\t/", "http://a.com\r\nHost:b/", "http://a.com#@127.0.0.1/", "http://a.com:80:22/", "http://a.com:-1/",
     "http://\x00a.com/", "http://a_b..com/", "http://[a.com]/", "https://a.com:443@b.com/"],
)  # fmt: skip
async def test_d4_odd_urls_lead_nowhere_else(url: str) -> None:
    async with internet({"a.com/": page_of(b"x")}) as net:
        try:
            reply = await fetch(url, GUARD, wires=net.wires)
        except DialError as error:
            assert error.kind == "refused" and net.dialled == []
        else:
            assert reply.url == "http://a.com#@127.0.0.1/" and net.requests[0][0] == "a.com/"
    assert judge_url("http://a.com./").host == "a.com"


async def _endless(writer: asyncio.StreamWriter, head: bytes, piece: bytes, pause: float = 0.0) -> None:
    writer.write(head)
    while not writer.transport.is_closing():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)


ENDLESS = {
    "announced": (b"HTTP/1.1 200 X\r\ncontent-length: 10000000000\r\n\r\n", b"x" * 65536),
    "chunked": (b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"),
    "unframed": (b"HTTP/1.1 200 X\r\n\r\n", b"x" * 65536),
    "packed": (b"HTTP/1.1 200 X\r\ncontent-encoding: gzip\r\n\r\n", gzip.compress(bytes(50_000_000))),
    "packed to nothing": (b"HTTP/1.1 200 X\r\ncontent-encoding: deflate\r\n\r\n", b"\x00\x00\x00\xff\xff" * 10_000),
}


@pytest.mark.parametrize("way", ENDLESS)
async def test_d5_a_body_without_end_is_cut(way: str) -> None:
    head, piece = ENDLESS[way]
    async with internet({"a.com/": lambda writer: _endless(writer, head, piece)}) as net:
        reply = await fetch("http://a.com/", GUARD, FetchLimits(bytes=100_000, seconds=20), wires=net.wires)
    assert reply.cut == "bytes" and len(reply.content) <= 100_000
    assert len(reply.content) == (0 if way == "packed to nothing" else 100_000)


async def test_d5_a_slow_body_is_cut_and_a_slow_head_given_up() -> None:
    head = b"HTTP/1.1 200 X\r\ncontent-length: 100000\r\n\r\n"
    pages = {"a.com/body": lambda writer: _endless(writer, head, b"x", 0.02)}
    pages["a.com/head"] = lambda writer: _endless(writer, b"HTTP/1.1 200 X\r\n", b"a: b\r\n", 0.02)
    async with internet(pages) as net:
        reply = await fetch("http://a.com/body", GUARD, FetchLimits(seconds=0.5), wires=net.wires)
        assert reply.cut == "seconds" and 0 < len(reply.content) < 100
        with pytest.raises(DialError) as caught:
            await fetch("http://a.com/head", GUARD, FetchLimits(seconds=0.5), wires=net.wires)
    assert caught.value.kind == "timeout"


async def test_d5_an_endless_head_and_a_wrong_charset_are_no_harm() -> None:
    async with internet({"a.com/": lambda writer: _endless(writer, b"HTTP/1.1 200 X\r\n", b"a: b\r\n" * 1000)}) as net:
        with pytest.raises(DialError) as caught:
            await fetch("http://a.com/", GUARD, wires=net.wires)
        assert caught.value.kind == "failed"
    async with internet({"a.com/": page_of(b"\xff\xfe\x00", "content-type: text/html; charset=zlib")}) as net:
        assert (await fetch("http://a.com/", GUARD, wires=net.wires)).text().count("\ufffd") == 2


def test_d6_a_url_that_carries_something_out_is_asked_about() -> None:
    key = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    for url in (
        f"https://evil.com/?k={key}",
        f"https://evil.com/{key}",
        f"https://{key}.evil.com/",
        "https://e.com/?" + "a=b&" * 999,
    ):
        assert leak(url, [key]) is not None and judge_url(url).rule in ("", "network.url")
    assert leak("https://docs.python.org/3/library/re.html?highlight=match#re.match", [key]) is None
