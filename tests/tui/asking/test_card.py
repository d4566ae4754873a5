"""What every card does: it counts how many wait, and never takes more than its share of the screen."""

from pathlib import Path

import pytest

from codewhale.display.setup import TuiSettings
from support.tuiapp import recorded
from support.tuiasking import approval, asked, question
from support.tuirecord import screen_text, until
from support.tuiscenes import APPROVAL, QUESTION, Scene, record


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
        assert "stop typing first" not in screen_text(stage.host)
        await stage.press("tab")
        await until(stage.pilot, lambda: "alt+y to answer" in screen_text(stage.host))


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
async def test_a_card_on_a_low_screen_leaves_the_end_of_the_transcript_and_scrolls_in_itself(
    tmp_path: Path, language: str
) -> None:
    settings = TuiSettings(language=language)  # type: ignore[arg-type]
    async with recorded(tmp_path, record(Scene("card", APPROVAL, "")), (34, 12), settings) as stage:
        card = await stage.until(lambda: stage.app.asking.card)
        await stage.until(lambda: card.armed and 0 < card.region.height <= 8 and card.region.y >= 1)
        assert "git push --force" in stage.text
        for number, row in enumerate(card.rows):
            await stage.until(lambda at=number: card.cursor == at)
            shown = next(line for line in stage.text.splitlines() if "› " in line and "│ › " in line)
            assert "".join(row.label.split())[:12] in "".join(shown.split())
            await stage.pilot.press("down")


@pytest.mark.parametrize("size", [(1, 1), (20, 5), (60, 3), (3, 60)])
async def test_no_size_of_a_terminal_breaks_a_card(tmp_path: Path, size: tuple[int, int]) -> None:
    for events in (APPROVAL, QUESTION):
        scene = Scene("card", events, "")
        async with recorded(tmp_path, record(scene), (80, 24)) as stage:
            card = await stage.until(lambda: stage.app.asking.card)
            await stage.pilot.resize_terminal(*size)
            await stage.pilot.press("down", "ctrl+o", "up", "pagedown")
            await stage.pilot.resize_terminal(80, 24)
            await stage.until(lambda card=card: card.region.height > 4)
