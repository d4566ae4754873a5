"""Strips: exact width, the palette's colours, the same strip for the same line."""

from rich.segment import Segment

from codewhale.frontends.tui.palette import load_palette
from codewhale.frontends.tui.transcript.lines import Line
from codewhale.frontends.tui.transcript.paint import Paint, lit

PALETTE = load_palette("dark", "")
LINE = Line((("one ", "text"), ("中文", "keyword bold on:code_background")), "on:code_background")


def test_a_strip_is_as_wide_as_it_must_be() -> None:
    paint = Paint(PALETTE)
    for width in (2, 5, 8, 20):
        strip = paint.strip(LINE, width, bar="thumb")
        assert strip.cell_length == sum(segment.cell_length for segment in strip) == width


def test_styles_are_of_the_palette() -> None:
    style = Paint(PALETTE).style("keyword bold on:code_background")
    assert style.color is not None and style.color.name == PALETTE.keyword
    assert style.bgcolor is not None and style.bgcolor.name == PALETTE.code_background
    assert style.bold and style.link is None


def test_equal_lines_are_one_strip() -> None:
    paint = Paint(PALETTE)
    assert paint.strip(LINE, 20) is paint.strip(Line(LINE.spans, LINE.fill), 20)
    assert paint.strip(LINE, 20) is not paint.strip(LINE, 20, marked=True)


def test_the_chosen_block_and_the_bar_are_drawn() -> None:
    text = Paint(PALETTE).strip(LINE, 12, marked=True, bar="track").text
    assert (text[0], text[-1]) == ("▌", "│")


def test_what_is_found_is_lit() -> None:
    line = Line((("one TW", "text"), ("o two", "keyword")))
    assert lit(line, "two", "found").spans == (
        ("one ", "text"), ("TW", "found"), ("o", "found"), (" ", "keyword"), ("two", "found")
    )  # fmt: skip
    assert lit(line, "three", "found") is line
    assert lit(line, "", "found") is line


def test_the_last_door_is_shut() -> None:
    strip = Paint(PALETTE).strip(Line((("\x1b[2J\n\u202e", "text"),)), 40)
    assert strip.text.strip() == "\\x1b[2J \\u202e" and strip.cell_length == 40


def test_no_control_segment_is_made() -> None:
    assert all(isinstance(segment, Segment) and not segment.control for segment in Paint(PALETTE).strip(LINE, 20))
