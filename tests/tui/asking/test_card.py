"""What every card does: it counts how many wait, and never takes more than its share of the screen."""

import pytest

from support.tuiasking import approval, asked, question
from support.tuirecord import screen_text, until


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_card_takes_its_share_at_most(size: tuple[int, int]) -> None:
    async with asked([approval("x\n" * 500), question()], size) as stage:
        card = await stage.armed("ask_1")
        assert card.outer_size.height <= size[1] * 0.6
        text = screen_text(stage.host)
        assert "1 of 2" in text and "╰" in text
        await stage.pilot.resize_terminal(100, 30)
        await until(stage.pilot, lambda: card.outer_size.height == 18)


async def test_a_card_tells_when_answers_count() -> None:
    async with asked([approval()]) as stage:
        await stage.armed()
        assert "answers count" not in screen_text(stage.host)
        await stage.press("tab")
        await until(stage.pilot, lambda: "alt+y to answer" in screen_text(stage.host))
