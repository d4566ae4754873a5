"""What all screens share: keys told in few words, failures told in words."""

import asyncio

import pytest

from codewhale.display.text import cells, columns
from codewhale.protocol.ops import ListSessions
from codewhale.protocol.views import PreviewSession, PreviewUndo, UndoView
from codewhale.tui.keys import first_key, key_shown
from codewhale.tui.screens import frame
from codewhale.tui.screens.table import SCREENS
from codewhale.tui.widgets import hint, in_rows
from support.tuiscreens import opened, preview, session

UNDO = UndoView(((1, "Fix the discount"), (2, "Round half up")), (), (), (), "")


def test_keys_are_told_as_people_write_them() -> None:
    assert [key_shown(key) for key in ("ctrl+k", "slash", "escape", "shift+up", "pageup", "G")] == [
        "ctrl+k", "/", "esc", "shift+↑", "pgup", "G",
    ]  # fmt: skip
    assert first_key("app.palette", {}) == "ctrl+k" and first_key("app.palette", {"app.palette": "f9"}) == "f9"
    rows = in_rows([hint("app.palette", "everything there is", {})] * 5, 60)
    assert len(rows) == 3 and all(columns(row) <= 60 for row in rows)
    assert in_rows([], 10) == []


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
async def test_every_screen_opens_tells_what_fails_and_closes(language: str) -> None:
    """Nothing is answered here: each query fails, and the screen stays usable."""
    async with opened("keys", language=language) as stage:
        for name in SCREENS:
            await stage.press("escape")
            await stage.done()
            await stage.open(name, "/x" if name == "report" else "")
            text = stage.clean()
            hints = stage.screen._hints.text.split()
            assert hints and all(word in text for word in hints), (name, text)
            assert 1 <= len(stage.screen.hints()) <= 4, name


@pytest.mark.parametrize("size", [(120, 40), (200, 60), (40, 12)])
async def test_screens_fit_terminals_of_all_sizes(size: tuple[int, int]) -> None:
    async with opened("palette") as stage:
        for name in ("sessions", "jobs", "config", "undo"):
            await stage.press("escape")
            await stage.open(name)
            await stage.pilot.resize_terminal(*size)
            await stage.pilot.pause()
            text = stage.clean()
            assert all(word in text for word in stage.screen._hints.text.split()), (name, text)


async def test_an_answer_that_never_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "ANSWER_SECONDS", 0.2)
    async with opened("sessions", {ListSessions: lambda query: asyncio.sleep(60)}) as stage:
        await stage.shown("No answer within")
        await stage.press("escape")
        assert await stage.done() is None


async def test_a_dialog_is_as_large_as_what_it_holds_and_stands_still_while_rows_are_filtered() -> None:
    rows = tuple(session(number) for number in range(1, 4))
    async with opened("restore", {PreviewUndo: UNDO}, size=(120, 40)) as stage:
        frame = stage.screen.query_one("#frame")
        small = frame.region
        assert small.width < 80 and small.height < 14
        assert abs(small.x * 2 + small.width - 120) <= 1 and abs(small.y * 2 + small.height - 40) <= 1
        await stage.type("zzz")
        await stage.shown("No matching turns.")
        assert frame.region.size.width == small.width and frame.region.height <= small.height + 1
        await stage.press("escape")
        await stage.open("leave", "A turn is running: it would be stopped.")
        assert stage.screen.query_one("#frame").region.height < 10
    async with opened("sessions", {ListSessions: rows, PreviewSession: preview(rows[0])}, size=(200, 60)) as stage:
        assert stage.screen.query_one("#frame").region.height < 30


async def test_no_size_of_a_terminal_breaks_a_dialog() -> None:
    async with opened("keys") as stage:
        for name in SCREENS:
            await stage.press("escape")
            await stage.done()
            await stage.open(name, "/x" if name == "report" else "")
            for size in ((1, 1), (220, 60), (2, 40), (60, 3), (34, 12), (80, 24)):
                await stage.pilot.resize_terminal(*size)
                await stage.pilot.pause()
                lines = stage.clean().split("\n")
                assert len(lines) <= size[1] and all(cells(line) <= size[0] for line in lines)
                region = stage.screen.query_one("#frame").region
                assert region.right <= max(size[0], 4) and region.bottom <= max(size[1], 2), (name, region)
