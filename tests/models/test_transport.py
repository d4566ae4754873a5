"""One connection kept, what spoils it, and what of the HTTP library's faults reaches the callers."""

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from codewhale.models import transport as transport_module
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.endpoint import Endpoint
from codewhale.models.transport import Transport, Unreachable, WireCut, WireError, refuser
from support.patience import HANG
from support.wire import CERTIFICATE, Reply, Wire, answer


def transport(url: str) -> Transport:
    return Transport(Endpoint("p", ProviderSettings(base_url=url), {}))


async def exchange(made: Transport, body: bytes = b"{}") -> bytes:
    """The content of one answer, read to its end."""
    got = await made.post(body)
    content = b""
    try:
        while data := await got.read():
            content += data
    finally:
        await got.close()
    return content


async def keeps(made: Transport, wire: Wire) -> bool:
    """Whether the next request goes over a connection that is there."""
    before = wire.connections
    await exchange(made)
    return wire.connections == before


async def test_one_connection_carries_many_requests() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    whole = early + answer(200, b"abc")
    async with Wire([Reply([whole]), Reply([whole[at : at + 1] for at in range(len(whole))])]) as wire:
        made = transport(wire.url)
        for _ in range(3):
            assert await exchange(made, b"x" * 300_000) == b"abc"
            assert wire.connections == 1
        assert [request.body for request in wire.requests] == [b"x" * 300_000] * 3
        await made.close()
        await asyncio.wait_for(wire.gone.wait(), HANG)


async def test_only_complete_connections_are_kept() -> None:
    async with Wire([Reply([answer(200, b"abc")[:-1]], "hang"), Reply([answer(200, b"abc")])]) as wire:
        made = transport(wire.url)
        got = await made.post(b"")
        assert not got.complete
        await got.close()
        await asyncio.wait_for(wire.gone.wait(), HANG)
        got = await made.post(b"")
        assert (await got.read(), await got.read(), got.complete) == (b"abc", b"", True)
        await got.close()
        assert wire.connections == 2 and await keeps(made, wire)
        await made.close()


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: Close\r\n\r\na", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", False),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;x=y\r\na\r\n0\r\nTrailer: x\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\ncontent-length: 1\n\na", True),
    ],
)
async def test_whether_the_connection_is_kept(reply: bytes, kept: bool) -> None:
    async with Wire([Reply([reply])]) as wire:
        made = transport(wire.url)
        assert await exchange(made) == b"a"
        assert await keeps(made, wire) == kept
        await made.close()


async def test_headers_are_joined_under_lower_case_names() -> None:
    async with Wire([Reply([answer(200, b"", "X-A: 1", "x-a:  2 ")])]) as wire:
        made = transport(wire.url)
        got = await made.post(b"")
        assert got.headers["x-a"] == "1, 2"
        await got.close()
        await made.close()


@pytest.mark.parametrize(
    "head",
    [
        b"220 smtp.example.com\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 000 OK\r\n\r\n",
        b"\x00\x01\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: \x00\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + (b"x: " + b"y" * 1000 + b"\r\n") * 120,
    ],
)
async def test_what_is_not_http_is_refused(head: bytes) -> None:
    async with Wire([Reply([head], "hang")]) as wire:
        made = transport(wire.url)
        with pytest.raises(WireError):
            await exchange(made)
        await asyncio.wait_for(wire.gone.wait(), HANG)
        await made.close()


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("piece", [b"", b"HTTP/1.1 2", answer(200, b"abc")[:-1]])
async def test_a_cut_is_a_cut_wherever_it_falls(then: str, piece: bytes) -> None:
    async with Wire([Reply([piece] if piece else [], then)]) as wire:
        made = transport(wire.url)
        with pytest.raises(WireCut):
            await exchange(made)
        await made.close()


async def test_a_kept_connection_that_was_closed_is_replaced() -> None:
    replies = [Reply([answer(200, b"abc")]), Reply([], "close"), Reply([answer(200, b"def")])]
    async with Wire(replies) as wire:
        made = transport(wire.url)
        assert (await exchange(made), await exchange(made)) == (b"abc", b"def")
        assert wire.connections == 2
        await made.close()


async def test_a_closed_connection_is_replaced_once() -> None:
    async with Wire([Reply([answer(200, b"abc")]), Reply([], "close")]) as wire:
        made = transport(wire.url)
        assert await exchange(made) == b"abc"
        with pytest.raises(WireCut):
            await exchange(made)
        assert (wire.connections, len(wire.requests)) == (2, 3)
        await made.close()


async def test_a_request_that_is_given_up_leaves_the_others_alone() -> None:
    async with Wire([Reply([], "hang"), Reply([answer(200, b"abc")])]) as wire:
        made = transport(wire.url)
        task = asyncio.ensure_future(made.post(b"{}"))
        await asyncio.wait_for(wire.asked.wait(), HANG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(wire.gone.wait(), HANG)
        for opened in (13, 17):  # Eight of twelve are kept.
            assert await asyncio.gather(*(exchange(made) for _ in range(12))) == [b"abc"] * 12
            assert wire.connections == opened
        await made.close()


async def test_closing_ends_what_waits_and_another_request_opens_anew() -> None:
    async with Wire(
        [Reply([], "hang"), Reply([answer(200, b"abc")[:-1]], "hang"), Reply([answer(200, b"abc")])]
    ) as wire:
        made = transport(wire.url)
        task = asyncio.ensure_future(made.post(b"{}"))
        await asyncio.wait_for(wire.asked.wait(), HANG)
        await made.close()
        with pytest.raises(WireCut):
            await task
        got = await made.post(b"{}")
        assert await got.read() == b"ab"
        await made.close()
        with pytest.raises(WireCut):
            await got.read()
        await got.close()
        assert await exchange(made) == b"abc"
        await made.close()


async def test_certificates_are_loaded_for_https_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    async with Wire([Reply([answer(200, b"abc")])]) as wire:
        made = transport(wire.url)
        assert await exchange(made) == b"abc"
        await made.close()
    async with Wire([Reply([answer(200, b"abc")])], tls=True) as wire:
        made = transport(wire.url)
        with pytest.raises(Unreachable, match="SSL_CERT_FILE") as caught:
            await exchange(made)
        assert caught.value.lasting
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert await exchange(made) == b"abc"
        await made.close()


async def test_a_name_that_is_never_found_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    release, asked = threading.Event(), threading.Event()

    def stuck(*_: object, **__: object) -> None:
        asked.set()
        release.wait(HANG)

    monkeypatch.setattr(socket, "getaddrinfo", stuck)
    made = transport("https://models.example")
    task = asyncio.ensure_future(made.post(b"{}"))
    await asyncio.to_thread(asked.wait, HANG)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(Unreachable, match=r"cannot connect to models\.example:443 within 0\.1 seconds"):
        await made.post(b"{}", connect=0.1)
    await made.close()
    assert not release.is_set()
    release.set()


async def test_a_close_while_a_name_is_looked_for_ends_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    release, asked, real = threading.Event(), threading.Event(), socket.getaddrinfo

    def late(*rest: Any, **options: Any) -> Any:
        asked.set()
        release.wait(HANG)
        return real(*rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", late)
    async with Wire([Reply([answer(200, b"abc")])]) as wire:
        made = transport(wire.url.replace("127.0.0.1", "localhost"))
        other = transport(wire.url)
        assert await exchange(other) == b"abc"
        assert not asked.is_set()  # an address is not looked for
        await other.close()
        assert await exchange(other) == b"abc"  # closed, it opens one anew
        await other.close()
        task = asyncio.ensure_future(exchange(made))
        await asyncio.to_thread(asked.wait, HANG)
        await made.close()
        release.set()
        assert await task == b"abc"
        await made.close()


async def test_a_name_that_cannot_be() -> None:
    for host in ("a..b", "x" * 80 + ".invalid"):
        made = transport(f"https://{host}")
        with pytest.raises(Unreachable, match=f"cannot connect to {host}:443: ."):
            await exchange(made)
        await made.close()


@pytest.mark.parametrize(
    ("url", "address", "refused"),
    [
        ("https://api.example.com/v1", "127.0.0.1", True),
        ("https://api.example.com/v1", "::1", True),
        ("https://api.example.com/v1", "169.254.169.254", True),
        ("https://api.example.com/v1", "fe80::1", True),
        ("https://api.example.com/v1", "::ffff:127.0.0.1", True),
        ("https://api.example.com/v1", "93.184.216.34", False),
        ("https://api.example.com/v1", "10.1.2.3", False),
        ("https://api.example.com/v1", "198.18.0.7", False),
        ("https://localhost:1/v1", "127.0.0.1", False),
        ("http://127.0.0.1:1/v1", "127.0.0.1", False),
        ("http://[::1]:1/v1", "::1", False),
        ("https://gpu-box/v1", "127.0.1.1", False),
        ("https://models.internal/v1", "127.0.0.1", False),
        ("https://10.0.0.1/v1", "10.0.0.1", False),
    ],
)
def test_a_public_name_leads_to_no_place_of_this_machine(
    url: str, address: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    check = refuser(Endpoint("p", ProviderSettings(base_url=url), {}))
    assert bool(check(address)) is refused


async def test_an_address_that_is_refused_is_not_even_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(refused: str) -> None:
        monkeypatch.setattr(transport_module, "refuser", lambda _: lambda address: refused and f"not {address}")

    async with Wire([Reply([answer(200, b"abc")])]) as wire:
        url = wire.url.replace("127.0.0.1", "localhost")
        judge("all")
        made = transport(url)
        with pytest.raises(Unreachable, match=r"not 127\.0\.0\.1") as caught:
            await exchange(made)
        assert caught.value.lasting
        await made.close()
        assert wire.connections == 0
        made = transport(wire.url)
        with pytest.raises(Unreachable, match=r"not 127\.0\.0\.1"):  # nothing was resolved here
            await exchange(made)
        await made.close()
        assert not wire.requests
        judge("")
        made = transport(url)
        assert await exchange(made) == b"abc"
        await made.close()


async def test_an_answer_that_nobody_reads_is_held_back() -> None:
    body = b"x" * 20_000_000
    async with Wire([Reply([answer(200, body)])]) as wire:
        made = transport(wire.url)
        got = await made.post(b"")
        for _ in range(500):
            await asyncio.sleep(0)
        size = 0
        while data := await got.read():
            size += len(data)
            assert len(data) <= 300_000
        assert size == len(body) and got.complete
        await got.close()
        await made.close()
