"""Keys and pastes, however the bytes are cut."""

import os
import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from codewhale.frontends.tui.keyboard import END, MOST_PASTED, START, Keyboard, read_keys

HOSTILE = "a\x1b[31mred\x1b[0m that is longer than thirty-two characters\r\x07\x1b]0;x\x07\x1b[200~\x1b[201 \x03end\x1b"


def said(*pieces: str) -> list[Any]:
    """What comes of pieces of input: keys by name, pastes as (text,)."""
    keyboard = Keyboard()
    found: list[Any] = []
    for piece in pieces:
        for event in keyboard.feed(piece):
            found.append((event.text,) if isinstance(event, events.Paste) else getattr(event, "key", event))
    return found


def test_no_byte_of_a_paste_is_a_key() -> None:
    assert said(f"x{START}{HOSTILE}{END}y\r") == ["x", (HOSTILE,), "y", "enter"]
    assert said(START + END) == [("",)]
    assert said(f"{START}one{END}{START}two{END}") == [("one",), ("two",)]


@given(st.lists(st.integers(0, len(HOSTILE) + 20), max_size=8))
def test_it_does_not_matter_where_the_bytes_are_cut(cuts: list[int]) -> None:
    whole = f"a{START}{HOSTILE}{END}b"
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(places) if start < end]
    assert said(*pieces) == ["a", (HOSTILE,), "b"]


def test_keys_are_as_before() -> None:
    assert said("\x1b[A", "\x01", "é", "\x1b[13;5u") == ["up", "ctrl+a", "é", "ctrl+enter"]


@pytest.mark.parametrize(
    "pieces", [("a\x1b\x03b",), ("a\x1b", "\x03b"), ("a", "\x1b\x03", "b"), ("a", "\x1b", "\x03", "b")]
)
def test_control_behind_escape_is_a_key_of_its_own(pieces: tuple[str, ...]) -> None:
    assert said(*pieces) == ["a", "escape", "ctrl+c", "b"]


def test_escape_before_a_paste_and_control_are_all_heard() -> None:
    assert said(f"\x1b\x0b{START}x{END}\x1b\x03") == ["escape", "ctrl+k", ("x",), "escape", "ctrl+c"]


def test_alt_with_enter_and_backspace_stay_what_they_were() -> None:
    assert said("\x1b\x7f") == ["ctrl+w"]


def test_a_paste_has_a_bound() -> None:
    [(text,)] = said(START, "x" * (MOST_PASTED + 5), "y", END)
    assert len(text) == MOST_PASTED


def test_a_terminal_is_read_until_the_end() -> None:
    out, into = os.pipe()
    ended = threading.Event()
    found: list[str] = []

    def take(event: Any) -> None:
        found.append(event.key)
        if event.key == "z":
            ended.set()

    os.write(into, b"a\xff\xc3")
    os.write(into, b"\xa9z")
    read_keys(out, ended, take)
    assert found[0] == "a" and found[-2:] == ["é", "z"]
    ended.clear()
    os.close(into)
    with pytest.raises(OSError):
        read_keys(out, ended, take)
    os.close(out)
