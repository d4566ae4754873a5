"""The captures in docs/captures are what is drawn today, every text on them can be read, and no label is cut."""

import re

import pytest

from codewhale.tui.widgets import TagLine
from support.tuiapp import Stage
from support.tuicapture import names, staged, taken, unreadable
from support.tuiscenes import SCENES, SIZES, THEMES, Scene

OTHERS = [(size, theme) for size in SIZES for theme in THEMES][1:]
ALL = [(scene, SIZES[0], THEMES[0]) for scene in SCENES]
ALL += [(scene, *OTHERS[number % len(OTHERS)]) for number, scene in enumerate(SCENES)]


def title(value: object) -> str:
    """A name for a test."""
    return value.name if isinstance(value, Scene) else str(value)


@pytest.mark.parametrize(("scene", "size", "theme"), ALL, ids=title)
async def test_captures_are_what_is_drawn(scene: Scene, size: tuple[int, int], theme: str) -> None:
    text, picture = names(scene, size, theme)
    async with staged(scene, size, theme) as stage:
        drawn, svg = taken(stage, scene, size, theme)
        if (size, theme) == (SIZES[0], THEMES[0]):
            check_words(stage)
    assert drawn == text.read_text(), f"run: make captures, and look at {text.name}"
    assert svg == picture.read_text(), f"run: make captures, and look at {picture.name}"


def check_words(stage: Stage) -> None:
    """Every text can be read and no label is cut."""
    strips = stage.app.screen._compositor.render_strips()
    assert list(unreadable(segment for strip in strips for segment in strip)) == []
    shown = re.sub(r"[\s│╭╮╰╯─]", "", stage.text)
    for line in stage.app.screen.query(TagLine):
        if line.id == "hints" or line.region.height:
            assert re.sub(r"\s", "", line.text) in shown, line.text
    if len(stage.app.screen_stack) == 1:
        assert "…" not in "".join(stage.text.splitlines()[-2:])


@pytest.mark.parametrize("theme", ["light", "contrast"])
@pytest.mark.parametrize("scene", SCENES, ids=title)
async def test_every_text_can_be_read_and_no_label_is_cut(scene: Scene, theme: str) -> None:
    """As in the dark, where the capture itself is looked at."""
    language = "zh-Hans" if theme == "contrast" else "en"
    async with staged(scene, SIZES[0], theme, language) as stage:
        check_words(stage)
