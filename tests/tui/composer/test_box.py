"""The text with its lists and attachments."""

from pathlib import Path

from codewhale.tui.composer.composer import Composer
from support.composing import desk
from support.tuirecord import screen_text


async def test_the_stash_parks_and_gives_back(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press("ctrl+s")
        assert "no stashed drafts" in screen_text(here.host)
        await here.pilot.press(*"one", "ctrl+s", *"two", "ctrl+s")
        assert here.text == ""
        await here.pilot.press("ctrl+s")
        assert "one" in screen_text(here.host) and "two" in screen_text(here.host)
        await here.pilot.press("o", "n", "enter")
        assert here.text == "one"
        await here.pilot.press("ctrl+u", "ctrl+s")
        assert here.text == "two"


async def test_a_list_gives_back_what_stood_here(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*"old", "enter", *"being written", "ctrl+r", "o")
        assert "old" in screen_text(here.host) and here.composer.draft.text == "being written"
        await here.pilot.press("escape")
        assert here.text == "being written"
        await here.pilot.press("ctrl+r", "tab")
        assert here.text == "old"
        await here.pilot.press("ctrl+u", "ctrl+s")
        assert here.text == "being written"


async def test_up_and_down_walk_and_keep_the_draft(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*"one", "enter", *"two", "ctrl+j", *"lines", "enter", *"draft")
        await here.pilot.press("up")
        assert here.text == "two\nlines"
        await here.pilot.press("up")
        assert here.text == "one"
        await here.pilot.press("up")
        assert here.text == "one"
        await here.pilot.press("down", "down")
        assert here.text == "draft"
        await here.pilot.press("up", "x", "up", "down")
        assert here.text == "two\nlinesx"


async def test_long_text_is_attached_where_a_message_is_written(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.composer.text._pasted("a line\r\n" * 30)
        await here.until(lambda: "pasted text, 30 lines" in screen_text(here.host))
        assert here.text == ""
        here.composer.text._pasted("short\r\npaste")
        assert here.text == "short\npaste"
        await here.pilot.press("enter")
        [sent] = await here.until(lambda: here.said(Composer.Sent))
        assert Path(sent.attachments[0].path).read_text() == "a line\n" * 30


async def test_a_disk_that_takes_nothing_is_said_once_and_typing_goes_on(tmp_path: Path) -> None:
    (tmp_path / "composer").write_text("in the way")
    async with desk(tmp_path) as here:
        await here.type("abc")
        await here.until(lambda: "cannot be saved to disk" in screen_text(here.host))
        await here.pilot.press("escape")
        assert here.text == ""
        await here.pilot.press("ctrl+s")
        assert here.text == "abc"
        await here.pilot.press("enter")
        assert here.said(Composer.Sent)
