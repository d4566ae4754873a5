"""Sources cut into chunks: nothing is left out, nothing stands twice."""

from hypothesis import given
from hypothesis import strategies as st

from codewhale.codesearch.chunks import LINES, LONG, WINDOW, LineOffsets, cut
from codewhale.codesearch.model import Chunk
from codewhale.codesearch.symbols import SourceSpan

TEXTS = st.lists(st.sampled_from([b"", b"x", b"def f():", b"    return 1", b"#" * 300]), max_size=120)


@given(TEXTS, st.lists(st.tuples(st.integers(0, 130), st.integers(0, 90)), max_size=8))
def test_every_line_is_in_one_chunk(rows: list[bytes], spans: list[tuple[int, int]]) -> None:
    lines = LineOffsets(b"\n".join(rows) + b"\n")
    pieces = [SourceSpan(start, start + length, "fn", f"f{start}") for start, length in spans if start < len(lines)]
    chunks = cut(lines, pieces)
    covered = [line for chunk in chunks for line in range(chunk.line, chunk.end_line + 1)]
    assert covered == list(range(1, len(lines) + 1))
    assert all(chunk.end_line - chunk.line < LINES for chunk in chunks)


def test_the_comment_above_belongs_to_the_definition() -> None:
    text = b"import a\n" + b"x = 1\n" * 200 + b"\n# Why.\n@once\ndef f():\n" + b"    y = 2\n" * 60
    chunks = cut(LineOffsets(text), [SourceSpan(204, 264, "fn", "f")])
    assert Chunk(203, 265, "fn", "f") in chunks


def test_small_neighbours_share_a_chunk_named_by_the_largest() -> None:
    text = b"def a(): pass\ndef bigger():\n    x = 1\n    return x\ndef c(): pass\n"
    assert cut(
        LineOffsets(text), [SourceSpan(0, 0, "fn", "a"), SourceSpan(1, 3, "fn", "bigger"), SourceSpan(4, 4, "fn", "c")]
    ) == [Chunk(1, 5, "fn", "bigger")]


def test_what_is_long_is_cut_and_keeps_its_name() -> None:
    text = b"def f():\n" + b"    call_something(1, 2, 3)\n" * 300
    chunks = cut(LineOffsets(text), [SourceSpan(0, 300, "fn", "f")])
    assert len(chunks) > 3 and {chunk.symbol for chunk in chunks} == {"f"}
    lines = LineOffsets(text)
    assert all(lines.offset(chunk.end_line) - lines.offset(chunk.line - 1) <= LONG + 200 for chunk in chunks)


def test_without_syntax_there_are_windows() -> None:
    chunks = cut(LineOffsets(b"word\n" * 120), [])
    assert [(chunk.line, chunk.end_line) for chunk in chunks] == [(1, WINDOW), (51, 100), (101, 120)]


def test_a_text_of_one_line_is_one_chunk() -> None:
    assert cut(LineOffsets(b"x" * 100_000), []) == [Chunk(1, 1, "block", "")]


def test_rows_and_offsets() -> None:
    lines = LineOffsets(b"ab\n\ncd")
    assert (len(lines), lines.offset(2), lines.offset(9), lines.row_at(3), lines.is_blank(1)) == (3, 4, 6, 1, True)
