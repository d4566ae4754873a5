"""What all screens share: keys told in few words, failures told in words."""

import asyncio

import pytest

from codewhale.display.text import columns
from codewhale.protocol.ops import ListSessions
from codewhale.tui.keys import first_key, key_shown
from codewhale.tui.screens import frame
from codewhale.tui.screens.table import SCREENS
from codewhale.tui.widgets import hint, in_rows
from support.tuiscreens import opened


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
