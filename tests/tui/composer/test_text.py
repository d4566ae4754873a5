"""The keys of the text, and what is drawn of it."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual import events

from codewhale.tui.composer.composer import Composer
from support.composing import desk
from support.tuirecord import screen_text


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("a", "b", "ctrl+a", "x"), "xab"),
        (("a", "b", "home", "ctrl+e", "x"), "abx"),
        ((*"one two", "ctrl+w"), "one "),
        ((*"one two", "ctrl+u"), ""),
        ((*"one two", "ctrl+w", "ctrl+a", "ctrl+y"), "twoone "),
        ((*"one two", "ctrl+w", "ctrl+y", "ctrl+y"), "one twotwo"),
        ((*"one two", "ctrl+left", "alt+k"), "one "),
        ((*"one two", "home", "alt+d"), " two"),
        ((*"one two", "alt+left", "left", "backspace"), "on two"),
        ((*"ab", "ctrl+j", "ctrl+u"), "ab"),
        ((*"ab", "left", "delete"), "a"),
        ((*"one two", "ctrl+w", "ctrl+z"), "one two"),
        ((*"one two", "ctrl+w", "ctrl+z", "alt+z"), "one "),
        ((*"abc", "shift+left", "shift+left", "x"), "ax"),
        ((*"abc", "alt+a", "ctrl+x", "ctrl+y", "d"), "abcd"),
        ((*"one two", "ctrl+shift+left", "backspace"), "one "),
        (("ctrl+y", "a"), "a"),
    ],
)
async def test_keys_edit(tmp_path: Path, keys: tuple[str, ...], text: str) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*keys)
        assert here.text == text


async def test_a_paste_goes_in_at_the_cursor(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press("a", "b", "left")
        here.host.post_message(events.Paste("one\r\ntwo"))
        await here.until(lambda: here.text == "aone\ntwob")
        await here.pilot.press("x", "ctrl+z", "ctrl+z")
        assert here.text == "ab"


async def test_nothing_unseen_reaches_the_screen_and_all_of_it_is_sent(tmp_path: Path) -> None:
    hostile = "a\x1b]0;title\x07b\u202ec\u200dd\x9b2Je"
    async with desk(tmp_path) as here:
        here.host.post_message(events.Paste(hostile))
        await here.until(lambda: "title" in screen_text(here.host))
        assert not any(char in screen_text(here.host) for char in "\x1b\x07\u202e\u200d\x9b")
        assert here.text == hostile
        await here.pilot.press("enter")
        [sent] = await here.until(lambda: here.said(here.composer.Sent))
        assert sent.text == hostile


async def test_wide_letters_and_joiners_are_typed_and_wrapped(tmp_path: Path) -> None:
    async with desk(tmp_path, size=(20, 12)) as here:
        text = "你好世界，这是一个很长的句子，会换行。🙂🙂🙂"
        for letter in text:
            here.host.post_message(events.Key(letter, letter))
        here.host.post_message(events.Key("zero_width_non_joiner", "\u200c"))
        await here.until(lambda: here.text == text + "\u200c")
        await here.until(lambda: here.composer.text.size.height >= 3)
        assert all(cell_len(line) <= 20 for line in screen_text(here.host).split("\n"))
        await here.pilot.press("backspace", "backspace")
        assert here.text == text[:-1]


async def test_the_cursor_of_the_terminal_stands_where_one_writes(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press("你", "好")
        place = here.composer.text.cursor_screen_offset
        await here.until(lambda: here.host.cursor_position == place)
        assert place.x == 1 + 2 + 4


async def test_a_letter_with_alt_is_a_key_and_no_letter(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.pilot.press(*"old", "enter", "a")
        for letter in "xi":
            here.host.post_message(events.Key(f"alt+{letter}", letter))
        await here.until(lambda: here.said(Composer.EffortCycled))
        assert here.composer.draft.text == "a"
