"""Text that is held in private characters comes out as it went in."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from codewhale.lib.text import sanitise
from codewhale.tui.composer.text import drawn, hold, release

ANY = st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0xFFFFF), max_size=200)


@given(ANY)
def test_what_is_held_is_released_as_it_was(text: str) -> None:
    assert release(hold(text)) == text.replace("\r\n", "\n").replace("\r", "\n")


@given(ANY)
def test_nothing_that_moves_a_cursor_is_drawn(text: str) -> None:
    shown = drawn(hold(text))
    assert sanitise(shown) == shown and len(shown) == len(hold(text))


@given(ANY)
def test_lines_are_where_line_ends_are(text: str) -> None:
    held = hold(text)
    assert held.count("\n") == text.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    assert held.splitlines() == held.removesuffix("\n").split("\n") or not held


def test_what_the_invisible_looks_like() -> None:
    held = hold("a\x1b[31m\u200db\x7f\u202e\U000e0041")
    assert drawn(held) == "a\u241b[31m·b\u2421··" and cell_len(drawn(held)) == cell_len(held)
    assert hold("می\u200cشود \ud800 \U00100041") == "می\u200cشود \ufffd \ufffd"
    assert hold("a\u200cb") == "a\U0010200cb"
