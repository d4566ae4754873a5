"""Markdown as lines: however it arrives, the lines are those of the whole text, and nothing in it is obeyed."""

from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.display.text import cells
from codewhale.display.transcript.markdown import Growing, Pen, markdown_lines
from support.transcripts import ANSWER, markdown_texts, sliced

PEN = Pen()


def texts(source: str, width: int = 60) -> list[str]:
    return [line.text.rstrip() for line in markdown_lines(PEN, source, width)]


@settings(deadline=None)
@given(sliced(), st.integers(12, 90))
def test_slices_give_the_lines_of_the_whole(case: tuple[str, list[str]], width: int) -> None:
    text, slices = case
    growing = Growing(PEN, width)
    for part in slices:
        growing.feed(part)
        growing.lines()
    assert growing.whole() == markdown_lines(PEN, text, width)


@settings(deadline=None)
@given(markdown_texts, st.integers(12, 90))
def test_no_line_is_too_wide_and_none_holds_a_control(text: str, width: int) -> None:
    for line in markdown_lines(PEN, text, width):
        assert cells(line.text) <= width
        assert line.text.isprintable() or not any(ord(char) < 32 or char in "\x7f\u202e" for char in line.text)


def test_only_the_open_end_is_drawn_again() -> None:
    growing = Growing(PEN, 60)
    growing.feed("first\n\nsecond\n\nthird\n\nfou")
    before = growing.lines()
    growing.feed("rth")
    after = growing.lines()
    assert [one is other for one, other in zip(before, after, strict=True)] == [True] * 3 + [False] * 4


def test_an_answer() -> None:
    assert texts(ANSWER) == [
        "Found it",
        "",
        "The parser keeps the blank, see the notes",
        "(https://example.org/notes).",
        "",
        "• one",
        "• ☑ two",
        "",
        " def parse(text: str) -> str:",
        "     return text.strip()",
        "",
        "file │ lines",
        "─────┼──────",
        "a.py │    12",
    ]


def test_open_code_is_coloured_line_by_line_and_whole_at_its_end() -> None:
    growing = Growing(PEN, 60)
    growing.feed("```py\nx = 1\ny = '")
    assert [line.text for line in growing.lines()] == [" x = 1", " y = '"]
    assert all(line.fill == "on:code_background" for line in growing.lines())
