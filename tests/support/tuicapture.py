"""Captures of scenes: what stands on the screen as text, and as a picture."""

import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from rich.segment import Segment
from textual.app import App
from textual.widgets import Input

from codewhale.display.palette import LEAST_CONTRAST, contrast
from codewhale.display.setup import TuiSettings
from support.tuiapp import Stage, recorded
from support.tuiscenes import Scene, Still, record

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "captures"
# Textual gives each picture names of its own, so that several can stand on one page.
_VOLATILE = re.compile(r"terminal-\d+-")
_FONT = re.compile(r"@font-face \{.*?\}\n?", re.S)
# Lines, bars and shades are no text.
LINES = re.compile(r"[\u2500-\u259f\s]*")


@asynccontextmanager
async def staged(scene: Scene, size: tuple[int, int], theme: str, language: str = "en") -> AsyncIterator[Stage]:
    """A scene on the screen, come to rest."""
    with tempfile.TemporaryDirectory() as home:
        settings = TuiSettings(theme=theme, language=language)  # type: ignore[arg-type]
        async with recorded(Path(home), record(scene), size, settings, scene.answers, Still()) as stage:
            if scene.keys:
                await stage.until("deepseek/deepseek-v4")
                await stage.pilot.press(*scene.keys)
            if language == "en":
                await stage.until(scene.shows)
            for line in stage.app.screen.query(Input):
                line.cursor_blink = False
            await settle(stage)
            yield stage


async def capture(scene: Scene, size: tuple[int, int], theme: str) -> tuple[str, str]:
    """The text and the picture of a scene at a size in a theme."""
    async with staged(scene, size, theme) as stage:
        return taken(stage, scene, size, theme)


def taken(stage: Stage, scene: Scene, size: tuple[int, int], theme: str) -> tuple[str, str]:
    """The text and the picture of what is on the screen."""
    return stage.text + "\n", picture(stage.app, f"{scene.name} {size[0]}x{size[1]} {theme}")


async def settle(stage: Stage) -> None:
    """Wait until nothing more is drawn: no worker runs, no timer is to ring once more, and the text stays the same."""
    same, last = 0, ""
    for _ in range(2000):
        await stage.pilot.pause()
        now = stage.text
        same, last = (same + 1, now) if now == last and not busy(stage.app) else (0, now)
        if same >= 3:
            return
    raise AssertionError("the screen never came to rest:\n" + last)


def busy(app: App[int]) -> bool:
    """Whether something is still to come by itself: a worker, or a timer that soon rings for the last time."""
    pumps = (app, *(node for screen in app.screen_stack for node in screen.walk_children(with_self=True)))
    timers = (timer for pump in pumps for timer in pump._timers if timer._task is not None and not timer._task.done())
    soon = (timer for timer in timers if timer._repeat is not None and timer._interval < 1 and timer._active.is_set())
    return any(worker.is_running for worker in app.workers) or any(soon)


def picture(app: App[int], title: str) -> str:
    """The screen as an SVG that loads nothing from anywhere, with the same names every time."""
    drawn = app.export_screenshot(title=title)
    return _FONT.sub("", _VOLATILE.sub("t-", drawn))


def names(scene: Scene, size: tuple[int, int], theme: str) -> tuple[Path, Path]:
    """Where the text and the picture are kept. The text is the same in every theme."""
    stem = f"{scene.name}-{size[0]}x{size[1]}"
    return FOLDER / f"{stem}.txt", FOLDER / f"{stem}-{theme}.svg"


def unreadable(segments: Iterator[Segment]) -> Iterator[str]:
    """Texts whose colours are too close, with the ratio."""
    for segment in segments:
        style = segment.style
        if style is None or LINES.fullmatch(segment.text) or style.color is None or style.bgcolor is None:
            continue
        text, ground = (colour.get_truecolor().hex for colour in (style.color, style.bgcolor))
        if style.reverse:
            text, ground = ground, text
        if contrast(text, ground) < LEAST_CONTRAST or style.dim:
            yield f"{segment.text!r} {text} on {ground}: {contrast(text, ground):.2f}{' dim' if style.dim else ''}"
