"""The dialer against servers on loopback that stand for the internet."""

import asyncio
import gzip
import zlib

import pytest

from codewhale.process.dial import DialError, FetchLimits, fetch
from support.website import GUARD, PUBLIC, internet, moved, page_of
from support.wire import CERTIFICATE


async def test_a_page_comes_with_its_head_and_text() -> None:
    page = page_of("né".encode("latin-1"), "Content-Type: text/plain; charset=Latin-1", "X-A: 1", "x-a: 2")
    async with internet({"example.com/a?b=c": page}) as net:
        reply = await fetch("https://example.com/a?b=c#d".replace("s:", ":"), GUARD, wires=net.wires)
    assert (reply.status, reply.text(), reply.cut, reply.hops) == (200, "né", "", ())
    assert reply.headers["x-a"] == "1, 2" and net.dialled == [PUBLIC] and net.resolved == ["example.com"]
    (_, headers), *more = net.requests
    assert not more and headers["host"] == "example.com" and headers["accept-encoding"] == "gzip, deflate"


async def test_https_is_asked_for_by_name_at_the_checked_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    page = {"127.0.0.1/": page_of(b"yes"), "models.example.com/": page_of(b"no")}
    async with internet(page, certificate=str(CERTIFICATE)) as net:
        with pytest.raises(DialError, match=r"cannot be asked: .*certificate"):
            await fetch("https://models.example.com/", GUARD, wires=net.wires)
    assert net.requests == [] and net.dialled == [PUBLIC]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_and_told(status: int) -> None:
    pages = {"a.com/x/y": moved("../z?q=1", status), "a.com/z?q=1": moved("http://b.com/"), "b.com/": page_of(b"end")}
    async with internet(pages) as net:
        reply = await fetch("http://a.com/x/y", GUARD, wires=net.wires)
    assert (reply.url, reply.content) == ("http://b.com/", b"end")
    assert reply.hops == ("http://a.com/x/y", "http://a.com/z?q=1") and net.resolved == ["a.com", "a.com", "b.com"]


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello" * 100, mtime=0)),
        ("x-gzip", gzip.compress(b"hello" * 100, mtime=0)),
        ("Deflate", zlib.compress(b"hello" * 100)),
        ("deflate", zlib.compress(b"hello" * 100)[2:-4]),
        ("identity", b"hello" * 100),
    ],
)
async def test_what_is_packed_is_unpacked(encoding: str, packed: bytes) -> None:
    async with internet({"a.com/": page_of(packed, f"content-encoding: {encoding}")}) as net:
        assert (await fetch("http://a.com/", GUARD, wires=net.wires)).content == b"hello" * 100


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (page_of(b"x", "content-encoding: br"), "packed as 'br'"),
        (page_of(b"not gzip", "content-encoding: gzip"), "cannot be unpacked"),
        (b"SSH-2.0-x\r\n\r\n", "cannot be asked"),
        (b"", "cannot be asked"),
        (b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nabc", "broke off in the middle"),
        (moved("http://[::1"), "leads nowhere"),
    ],
)
async def test_what_is_no_answer_is_told(page: bytes, said: str) -> None:
    async with internet({"a.com/": page}) as net:
        with pytest.raises(DialError, match=said) as caught:
            await fetch("http://a.com/", GUARD, wires=net.wires)
    assert caught.value.kind == "failed"


async def test_the_next_address_is_tried_and_the_first_fault_told() -> None:
    async with internet({"a.com/": page_of(b"x")}, {"a.com": [["93.184.215.14", "93.184.215.15"]]}) as net:
        wires = net.wires

        def route(address: str, port: int) -> tuple[str, int]:
            place = net.route(address, port)
            return place if address.endswith("15") else ("127.0.0.1", 1)

        reply = await fetch("http://a.com/", GUARD, wires=type(wires)(net.resolve, route))
        assert reply.content == b"x" and net.dialled == ["93.184.215.14", "93.184.215.15"]
        with pytest.raises(DialError, match=r"a\.com cannot be asked"):
            await fetch("http://a.com/", GUARD, wires=type(wires)(net.resolve, lambda address, port: ("127.0.0.1", 1)))


async def test_a_fetch_can_be_given_up() -> None:
    asked = asyncio.Event()

    async def never(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with internet({"a.com/": never}) as net:
        work = asyncio.create_task(fetch("http://a.com/", GUARD, wires=net.wires))
        await asyncio.wait_for(asked.wait(), 20)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        with pytest.raises(DialError, match=r"did not answer within 0\.2 seconds") as caught:
            await fetch("http://a.com/", GUARD, FetchLimits(seconds=0.2), wires=net.wires)
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize("charset", ["nonsense", "base64", "rot13", '"utf-8"', "utf-16", ""])
async def test_a_charset_that_is_none_spoils_nothing(charset: str) -> None:
    async with internet({"a.com/": page_of("é".encode(), f"content-type: text/html; charset={charset}")}) as net:
        assert isinstance((await fetch("http://a.com/", GUARD, wires=net.wires)).text(), str)
