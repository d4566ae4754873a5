"""Every screen at four widths, in all looks and both languages: nothing is clipped, and every text can be read."""

import re

import pytest

from codewhale.tui.rows import RowList
from codewhale.tui.widgets import TagLine
from support.tuiapp import Stage
from support.tuicapture import unreadable
from support.tuiscenes import Scene
from support.tuisheets import LANGUAGES, LOOKS, SCREENS, WIDTHS, shown, strips

# Each screen at each width; the looks and the languages go round, so that each screen is seen in all of them.
CASES = [
    (scene, size, LOOKS[(number + at) % len(LOOKS)], LANGUAGES[(number + at // 2) % len(LANGUAGES)])
    for number, scene in enumerate(SCREENS)
    for at, size in enumerate(WIDTHS)
]


def title(value: object) -> str:
    """A name for a test."""
    return value.name if isinstance(value, Scene) else str(value)


@pytest.mark.parametrize(("scene", "size", "look", "language"), CASES, ids=title)
async def test_a_screen_is_whole_and_can_be_read(scene: Scene, size: tuple[int, int], look: str, language: str) -> None:
    async with shown(scene, size, look, language) as stage:
        lines = strips(stage)
        assert len(lines) == size[1] and {line.cell_length for line in lines} == {size[0]}
        if look != "none":
            assert list(unreadable(segment for line in lines for segment in line)) == []
        texts = [line.text for line in lines]
        assert clipped(stage, texts) == []


def clipped(stage: Stage, texts: list[str]) -> list[str]:
    """Labels, hints and sentences that are cut without a sign of it."""
    found = []
    screen = stage.app.screen
    for part in screen.query(TagLine):
        region = part.region
        if region.height and part.text:
            own = "".join(text_at(row, region.x, region.width) for row in texts[region.y : region.bottom])
            if bare(part.text) not in bare(own):
                found.append(part.text)
    for rows in screen.query(RowList):
        region = rows.region
        for row in texts[region.y : region.bottom]:
            own = text_at(row, region.x, region.width)
            if (
                not any(bare(match.label) in bare(own) for match in rows.matches)
                and "…" not in own
                and known(own, rows)
            ):
                found.append(own)
    return found


def known(own: str, rows: RowList) -> bool:
    """Whether a row is one of the list, and no heading or gap."""
    return bool(own.strip()) and not any(bare(own).startswith(bare(item.group)) for item in rows.items if item.group)


def text_at(row: str, x: int, width: int) -> str:
    """The cells of a row from x on."""
    cut, at = "", 0
    for char in row:
        cut += char if x <= at < x + width else ""
        at += 1 + (char >= "\u2e80")
    return cut


def bare(text: str) -> str:
    """A text without its blanks."""
    return re.sub(r"\s", "", text)
