"""Right-to-left text: in the order in which it is seen, each cell of a row still filled, and left alone where the
terminal orders it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from codewhale.protocol.events import TextStreamed, TurnStarted
from codewhale.tui.bidi import RightToLeft, orders_itself
from support.tuiapp import recorded

BLACK = Color(0, 0, 0)


def seen(*texts: str) -> str:
    segments = [Segment(text, Style(bold=at % 2 == 1)) for at, text in enumerate(texts)]
    return "".join(segment.text for segment in RightToLeft().apply(segments, BLACK))


@pytest.mark.parametrize(
    ("written", "drawn"),
    [
        ("שלום", "םולש"),
        ("שלום עולם.", ".םלוע םולש"),
        ("  • שלום (abc) 12.5 עולם", "  • םלוע 12.5 (abc) םולש"),
        ("The word שלום (עולם) means peace.", "The word (םלוע) םולש means peace."),
        ("عدد 123 كلمة!", "!ةملك 123 ددع"),
        ("שָׁ ל", "ל שָׁ"),
        ("│ שלום │ abc │", "│ םולש │ abc │"),
        ("שלום   name = 1", "םולש   name = 1"),
        ("plain ascii (x)", "plain ascii (x)"),
        ("日本語 text", "日本語 text"),
    ],
)
def test_it_stands_in_the_order_in_which_it_is_seen(written: str, drawn: str) -> None:
    assert seen(written) == drawn


def test_the_style_goes_with_its_letter() -> None:
    segments = RightToLeft().apply([Segment("אב", Style(bold=True)), Segment("ג", Style())], BLACK)
    assert [(segment.text, bool(segment.style and segment.style.bold)) for segment in segments] == [
        ("ג", False),
        ("בא", True),
    ]


@given(st.text(alphabet=st.sampled_from("אבג عرب abc 12.,()[] │─•。中\u0301\u05b8"), max_size=60))
def test_no_character_is_lost_and_no_column_moves(text: str) -> None:
    assert sorted(seen(text).translate(str.maketrans(")]", "(["))) == sorted(text.translate(str.maketrans(")]", "([")))
    assert cell_len(seen(text)) == cell_len(text)


@pytest.mark.parametrize(
    ("environ", "itself"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"VTE_VERSION": "7600"}, True),
        ({"KONSOLE_VERSION": "240801"}, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, True),
        ({"VTE_VERSION": "7600", "TMUX": "/tmp/x,1,0"}, False),
    ],
)
def test_a_terminal_that_orders_text_gets_it_as_it_is(environ: dict[str, str], itself: bool) -> None:
    assert orders_itself(environ) is itself


async def test_an_answer_is_seen_in_order(tmp_path: object) -> None:
    async with recorded(tmp_path, [TurnStarted(1), TextStreamed("שלום עולם")]) as stage:  # type: ignore[arg-type]
        await stage.until("םלוע םולש")
