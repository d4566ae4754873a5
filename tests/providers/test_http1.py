"""The HTTP/1.1 reader: framing in any chunking, and everything it must refuse."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.providers.http1 import (
    ChunkedBody,
    Connection,
    OpenBody,
    SizedBody,
    WireCut,
    WireError,
    body_of,
    parse_head,
    request_head,
)
from support.wire import Reply, Wire, answer, chunked


def feed(body: ChunkedBody | SizedBody | OpenBody, data: bytes, cuts: list[int]) -> bytes:
    edges = [0, *sorted(cuts), len(data)]
    return b"".join(body.feed(data[start:stop]) for start, stop in itertools.pairwise(edges) if not body.done)


@given(content=st.binary(max_size=200), size=st.integers(1, 50), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_chunked_bodies_in_any_chunking(content: bytes, size: int, cuts: list[int]) -> None:
    body, data = ChunkedBody(), chunked(content, size)
    assert feed(body, data, [cut for cut in cuts if cut <= len(data)]) == content
    assert body.done
    assert not body.end()


def test_extensions_trailers_and_bare_newlines_are_skipped() -> None:
    body = ChunkedBody()
    assert feed(body, b"3;name=v\r\nabc\r\n2 \nde\n0\r\nTrailer: x\r\n\r\nNEXT", list(range(30))) == b"abcde"
    assert body.done
    whole = ChunkedBody()
    assert whole.feed(b"1\r\na\r\n0\r\n\r\nNEXT") == b"a"
    assert whole.rest == b"NEXT"


@pytest.mark.parametrize("data", [b"x\r\n", b"-1\r\n", b"\r\n", b"1\r\nab\r\n", b"f" * 13 + b"\r\n", b"1" * 5000])
def test_malformed_chunks_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        ChunkedBody().feed(data)


def test_sized_and_open_bodies() -> None:
    sized = SizedBody(3)
    assert sized.feed(b"ab") + sized.feed(b"cd") == b"abc"
    assert (sized.done, sized.rest, sized.end()) == (True, b"d", False)
    opened = OpenBody()
    assert opened.feed(b"ab") == b"ab"
    assert not opened.done
    assert opened.end()
    assert opened.done


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ("content-length: 3", SizedBody),
        ("Content-Length: 3\r\ncontent-length: 3", SizedBody),
        ("transfer-encoding: Chunked\r\ncontent-length: 3", ChunkedBody),
        ("x: y", OpenBody),
    ],
)
def test_how_a_body_is_delimited(headers: str, kind: type) -> None:
    assert isinstance(body_of(parse_head(f"HTTP/1.1 200 OK\r\n{headers}".encode())), kind)


@pytest.mark.parametrize(
    "headers", ["content-length: 3\r\ncontent-length: 4", "content-length: -1", "transfer-encoding: gzip"]
)
def test_lengths_that_cannot_be_told_are_refused(headers: str) -> None:
    with pytest.raises(WireError):
        body_of(parse_head(f"HTTP/1.1 200 OK\r\n{headers}".encode()))


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/2 200", b"SSH-2.0-x", b"HTTP/1.1 200 OK\r\nno colon", b"HTTP/1.1 200\r\n a: b"]
)
def test_malformed_heads_are_refused(head: bytes) -> None:
    with pytest.raises(WireError):
        parse_head(head)


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close", False),
        (b"HTTP/1.0 200 OK", False),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive", True),
        (b"HTTP/1.1 200\r\ntransfer-encoding: chunked\r\ncontent-length: 1", False),
    ],
)
def test_whether_the_connection_is_kept(head: bytes, keeps: bool) -> None:
    assert parse_head(head).keeps_alive is keeps


def test_a_request_head() -> None:
    assert (
        request_head("/v1/x", "h:1", {"a": "b"}, 5)
        == b"POST /v1/x HTTP/1.1\r\nhost: h:1\r\ncontent-length: 5\r\na: b\r\n\r\n"
    )


async def dial(wire: Wire) -> Connection:
    host, port = wire.url.removeprefix("http://").removesuffix("/v1").split(":")
    return Connection(*await asyncio.open_connection(host, int(port)))


async def exchange(connection: Connection, body: bytes = b"{}") -> bytes:
    await connection.request(request_head("/", "h", {}, len(body)), body)
    content = b""
    while data := await connection.read():
        content += data
    return content


async def test_one_connection_carries_many_requests() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    whole = early + answer(200, b"abc")
    async with Wire([Reply([whole]), Reply([whole[at : at + 1] for at in range(len(whole))])]) as wire:
        connection = await dial(wire)
        for _ in range(3):
            assert await exchange(connection, b"x" * 300_000) == b"abc"
            assert connection.reusable
        assert wire.connections == 1
        connection.close()
        assert not connection.reusable


async def test_bytes_nobody_asked_for_spoil_the_connection() -> None:
    async with Wire([Reply([answer(200, b"abc") + b"HTTP/1.1 200 OK\r\n\r\n"])]) as wire:
        connection = await dial(wire)
        assert await exchange(connection) == b"abc"
        assert not connection.reusable
        connection.close()


async def test_an_endless_head_is_refused() -> None:
    async with Wire([Reply([b"HTTP/1.1 200 OK\r\n"] + [b"x: " + b"y" * 1000 + b"\r\n"] * 80, "hang")]) as wire:
        connection = await dial(wire)
        with pytest.raises(WireError):
            await exchange(connection)
        connection.close()


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize(
    ("piece", "received"), [([], False), ([b"HTTP/1.1 2"], True), ([answer(200, b"abc")[:-1]], True)]
)
async def test_a_cut_tells_whether_anything_came(then: str, piece: list[bytes], received: bool) -> None:
    async with Wire([Reply(piece, then)]) as wire:
        connection = await dial(wire)
        with pytest.raises(WireCut) as caught:
            await exchange(connection)
        assert caught.value.received is received or then == "reset"
        connection.close()
