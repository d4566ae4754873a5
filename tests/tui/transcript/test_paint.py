"""Strips: exact width, the palette's colours, the same strip for the same line."""

from rich.segment import Segment

from codewhale.display.palette import PAIRS, load_palette
from codewhale.display.text import StyledLine
from codewhale.display.transcript.cards import DrawOptions
from codewhale.display.transcript.drawing import Drawer
from codewhale.display.words import Words
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.events import CallFinished
from codewhale.tui.paint import Paint, lit
from support.transcripts import ANSWER, answered, said, told, whole_session

PALETTE = load_palette("dark", "")
LINE = StyledLine((("one ", "text"), ("中文", "keyword bold on:code_background")), "on:code_background")


def test_a_strip_is_as_wide_as_it_must_be() -> None:
    paint = Paint(PALETTE)
    for width in (2, 5, 8, 20):
        strip = paint.row(LINE, width, bar="thumb")
        assert strip.cell_length == sum(segment.cell_length for segment in strip) == width


def test_styles_are_of_the_palette() -> None:
    style = Paint(PALETTE).style("keyword bold on:code_background")
    assert style.color is not None and style.color.name == PALETTE.keyword
    assert style.bgcolor is not None and style.bgcolor.name == PALETTE.code_background
    assert style.bold and style.link is None


def test_equal_lines_are_one_strip() -> None:
    paint = Paint(PALETTE)
    assert paint.row(LINE, 20) is paint.row(StyledLine(LINE.spans, LINE.fill), 20)
    assert paint.row(LINE, 20) is not paint.row(LINE, 20, marked=True)


def test_the_chosen_block_and_the_bar_are_drawn() -> None:
    text = Paint(PALETTE).row(LINE, 12, marked=True, bar="track").text
    assert (text[0], text[-1]) == ("▌", "│")


def test_what_is_found_is_lit() -> None:
    line = StyledLine((("one TW", "text"), ("o two", "keyword")))
    assert lit(line, "two", "found").spans == (
        ("one ", "text"), ("TW", "found"), ("o", "found"), (" ", "keyword"), ("two", "found")
    )  # fmt: skip
    assert lit(line, "three", "found") is line
    assert lit(line, "", "found") is line


def test_the_last_door_is_shut() -> None:
    strip = Paint(PALETTE).row(StyledLine((("\x1b[2J\n\u202e", "text"),)), 40)
    assert strip.text.strip() == "\\x1b[2J \\u202e" and strip.cell_length == 40


def test_no_control_segment_is_made() -> None:
    assert all(isinstance(segment, Segment) and not segment.control for segment in Paint(PALETTE).row(LINE, 20))


def test_every_pair_of_colours_that_is_drawn_is_checked_for_contrast() -> None:
    drawer, drawn = Drawer(Words("en")), set[str]()
    code = "```diff\n+ new\n- old\n```\n```py\n@x\ndef f(a: int) -> None: return 'a' + 1  # why\n```\n"
    rows = "@@ -1,9 +1,9 @@\n" + "".join(f"{sign}@x\n{sign}def f(a: int): return 'a' + 1  # why\n" for sign in "+- ")
    changed = CallFinished("c8", "edit_file", True, "", 1, display=(DiffBlock("a.py", rows + " x\n" * 6),))
    for block in told([*whole_session(), changed, answered(said(ANSWER + "> q\n\n`c` ~~s~~ *i*\n" + code))]).blocks:
        for opened in (False, True):
            drawn |= {style for line in drawer.lines(block, DrawOptions(80, opened)) for _, style in line.spans}
    pairs = set()
    for style in drawn - {"border"}:
        words = [word for word in style.split() if word not in ("bold", "italic", "underline", "strike")]
        grounds = [word[3:] for word in words if word.startswith("on:")]
        colour = next((word for word in words if not word.startswith("on:")), "text")
        pairs.add((colour, grounds[-1] if grounds else "background"))
    assert pairs - set(PAIRS) == set()
