"""The event-stream reader: the grammar, its bounds, and that chunking never matters."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.models.sse import SseError, SseEvent, SseReader


def read(data: bytes, cuts: list[int] | None = None, limit: int = 1 << 20) -> list[SseEvent | str]:
    """All events of `data` fed in pieces; the last item is "error" when the reader refused."""
    reader = SseReader(limit)
    edges = [0, *sorted(cuts or []), len(data)]
    found: list[SseEvent | str] = []
    try:
        for start, stop in itertools.pairwise(edges):
            found.extend(reader.feed(data[start:stop]))
        found.extend(reader.close())
    except SseError:
        found.append("error")
    return found


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\n", [("message", "a")]),
        (b"data: a\r\n\r\ndata: b\r\r", [("message", "a"), ("message", "b")]),
        (b"data:a\ndata:  b\ndata\n\n", [("message", "a\n b\n")]),
        (b"event: error\ndata: x\n\ndata: y\n\n", [("error", "x"), ("message", "y")]),
        (b": keep-alive\n\n: again\ndata: a\n\n", [("message", "a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("message", "a")]),
        (b"event: ping\n\ndata: a\n\n", [("message", "a")]),
        (b"id: 7\nretry: 10\nunknown: z\ndata: a\n\n", [("message", "a")]),
        (b"data: last", [("message", "last")]),
        (b"data: one\ndata: two\n", [("message", "one\ntwo")]),
        (b"data: a:b: c\n\n", [("message", "a:b: c")]),
        ("data: 🐋 \u2028 é\n\n".encode(), [("message", "🐋 \u2028 é")]),
        (b"", []),
        (b"\n\n\r\n\r", []),
    ],
)
def test_the_grammar(data: bytes, events: list[tuple[str, str]]) -> None:
    assert read(data) == events
    assert read(data, list(range(len(data)))) == events


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf"])
@pytest.mark.parametrize("place", [b"data: x%b\n\n", b": comment %b\n\n", b"event: %b\n"])
def test_bytes_that_are_not_utf8_fail_the_stream_after_what_came_before(bad: bytes, place: bytes) -> None:
    data = b"data: a\n\n" + place % bad
    assert read(data) == [("message", "a"), "error"]
    assert read(data, list(range(len(data)))) == [("message", "a"), "error"]


def test_lines_and_events_are_bounded() -> None:
    assert read(b"data: " + b"x" * 100, limit=50) == ["error"]
    assert read(b"data: 1234567890\n" * 6 + b"\n", limit=50) == ["error"]
    assert read(b"data: 1234567890\n\n" * 6, limit=50) == [("message", "1234567890")] * 6


def test_a_long_line_in_small_pieces_costs_no_more_than_its_length() -> None:
    reader = SseReader(1 << 20)
    for _ in range(200_000):
        assert not list(reader.feed(b"data:"[:5]))
    assert len(next(iter(reader.feed(b"\n\n"))).data) == 5 * 199_999


def test_a_field_named_error_is_an_event_of_that_name() -> None:
    assert read(b'error: {"code":400}\n\ndata: x\n\n') == [("error", '{"code":400}'), ("message", "x")]


LINES = st.lists(
    st.one_of(
        st.sampled_from([b"", b"", b"data: x", b"data", b":c", b"event: e", b"data:\xc3\xa9", b"data: \xff", b"id"]),
        st.binary(max_size=8),
    ),
    max_size=12,
)
ENDS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=12, max_size=12)


@given(lines=LINES, ends=ENDS, cuts=st.lists(st.integers(0, 120), max_size=12), mark=st.booleans())
def test_chunking_never_matters(lines: list[bytes], ends: list[bytes], cuts: list[int], mark: bool) -> None:
    data = b"\xef\xbb\xbf" * mark + b"".join(line + end for line, end in zip(lines, ends, strict=False))
    assert read(data, [cut for cut in cuts if cut <= len(data)], limit=40) == read(data, limit=40)
