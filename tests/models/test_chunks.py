"""Chunks are merged without a change to what an HTTP library reads from them."""

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codewhale.models.chunks import ChunkMerger

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"


def read(pieces: list[bytes]) -> tuple[bytes, str]:
    """(content, how it ended) as the HTTP library sees one answer."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "h"), ("content-length", "0")]))
    connection.send(h11.EndOfMessage())
    content = b""
    try:
        for piece in (*pieces, b""):
            if connection.their_state is h11.DONE:
                return content, "ended"
            connection.receive_data(piece)
            while (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Data):
                    content += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    return content, "ended"
                elif isinstance(event, h11.ConnectionClosed):
                    return content, "closed"
    except h11.RemoteProtocolError:
        return content, "broken"
    return content, "open"


def merged(pieces: list[bytes]) -> list[bytes]:
    merger = ChunkMerger()
    merger.expect()
    return [out for out in map(merger.feed, pieces) if out]


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [piece for piece in (*pieces, data) if piece]


def framed(contents: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in contents)


CONTENTS = st.lists(st.binary(min_size=1, max_size=20) | st.just(b"\r\n\r\n5\r\n"), max_size=8)
SIZES = st.lists(st.integers(1, 12), max_size=40)


@given(CONTENTS, SIZES, st.sampled_from([b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"", b"0\r"]))
@example([b"a", b"b"], [1] * 90, b"0\r\n\r\n")
def test_content_and_end_are_the_same_in_any_pieces(contents: list[bytes], sizes: list[int], end: bytes) -> None:
    whole = HEAD + framed(contents) + end
    pieces = cut(whole, sizes)
    assert read(merged(pieces)) == read(pieces)


@given(
    CONTENTS, SIZES, st.binary(max_size=12) | st.sampled_from([b"5;x=y\r\nhello\r\n", b"0x5\r\nhello\r\n", b"-1\r\n"])
)
@example([b"hello"], [], b"3\r\nhello6\r\nworld!\r\n0\r\n\r\n")
def test_what_is_damaged_is_refused_alike(contents: list[bytes], sizes: list[int], damage: bytes) -> None:
    pieces = cut(HEAD + framed(contents) + damage + b"0\r\n\r\n", sizes)
    content, end = read(pieces)
    merged_content, merged_end = read(merged(pieces))
    assert merged_end == end
    assert merged_content.startswith(content) or content.startswith(merged_content)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n3\r\nabc\r",
        b"HTTP/1.1 200 OK\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + framed([b"ab", b"c"]) + b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n" + framed([b"ab", b"c"]) + b"0\r\n\r\n",
    ],
)
def test_other_framings_pass(answer: bytes) -> None:
    for size in (1, 3, 1000):
        pieces = cut(answer, [size] * len(answer))
        assert read(merged(pieces)) == read(pieces)


def test_what_came_together_is_one_chunk() -> None:
    contents = [b"data: %d\n\n" % number for number in range(1000)]
    [head_and_chunk] = merged([HEAD + framed(contents)])
    whole = b"".join(contents)
    assert head_and_chunk == HEAD + framed([whole])
    merger = ChunkMerger()
    merger.expect()
    merger.feed(HEAD)
    assert merger.feed(b"5\r\nhel") == framed([b"hel"])
    assert merger.feed(b"lo") == framed([b"lo"])
    assert merger.feed(b"\r") == b""
    assert merger.feed(b"\n5\r\nagain\r\n0\r\n\r\n") == framed([b"again"]) + b"0\r\n\r\n"


def test_each_request_begins_anew() -> None:
    merger = ChunkMerger()
    for _ in range(2):
        merger.expect()
        assert merger.feed(HEAD + framed([b"a", b"b"]) + b"0\r\n\r\n") == HEAD + framed([b"ab"]) + b"0\r\n\r\n"
