"""Lines with tones: cut and wrapped by columns, drawn without anything that a terminal would obey."""

import pytest
from rich.cells import cell_len

from codewhale.display.palette import load_palette
from codewhale.display.text import columns, fit, flat, safe_lines, wrap_whole
from codewhale.tui.paint import Styles


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("字字字", 6, "字字字"),
        ("字字字", 5, "字字…"),
        ("字", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_text_is_cut_by_columns(text: str, width: int, cut: str) -> None:
    assert fit(text, width) == cut


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize(
    "text", ["a" * 50, "one two three four five six", "字" * 30, "e\u0301" * 30, "👍🏽 ok " * 9, ""]
)
def test_wrapping_loses_nothing(text: str, words: bool) -> None:
    for width in (2, 7, 20):
        pieces = wrap_whole(((text, "text"), (text, "muted")), width, words)
        assert "".join(part for piece in pieces for part, _ in piece) == text * 2
        assert all(columns(piece) <= width for piece in pieces)


def test_words_are_kept_together_where_they_can_be() -> None:
    pieces = wrap_whole((("the harbour crane is broken", "text"),), 15)
    assert ["".join(part for part, _ in piece) for piece in pieces] == ["the harbour ", "crane is broken"]


def test_foreign_text_is_made_safe() -> None:
    assert flat("a\r\n\tb\x1b[2J\u202e") == "a b\\x1b[2J\\u202e"
    assert flat("x" * 900, 10) == "x" * 9 + "…"
    assert safe_lines("a\tb\x07\r\nc") == [(("a   b\\x07\\x0d", "text"),), (("c", "text"),)]


@pytest.mark.parametrize("name", ["dark", "light", "contrast"])
def test_what_is_drawn_is_safe_and_as_wide_as_asked(name: str) -> None:
    tones = Styles(load_palette(name, ""))
    strip = tones.strip((("a\x1b[2J\n字", "bold accent"), ("\t\x9b", "added on:added_background")), 30)
    assert cell_len(strip.text) == 30 and strip.text.rstrip() == "a\\x1b[2J 字 \\x9b"
    with pytest.raises(AttributeError):
        tones.style("sparkle")
