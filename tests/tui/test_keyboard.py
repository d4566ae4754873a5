"""Keys and pastes, however the bytes are cut."""

import os
import threading
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from codewhale.tui.terminal import END, MOST_PASTED, START, Keyboard, read_keys

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


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ("\x1bf", "alt+f"),
        ("\x1bb", "alt+b"),
        ("\x1bm", "alt+m"),
        ("\x1b1", "alt+1"),
        ("\x1b-", "alt+minus"),
        ("\x1b\r", "alt+enter"),
        ("\x1b[27;3;13~", "alt+enter"),
        ("\x1b[27;5;13~", "ctrl+enter"),
        ("\x1b[1;5C", "ctrl+right"),
        ("\x1b[1;3C", "alt+right"),
    ],
)
def test_alt_and_a_key_come_as_that_without_the_kitty_protocol(data: str, key: str) -> None:
    assert said(f"a{data}b") == ["a", key, "b"]
    assert data.endswith("~") or said("a", data[:1], data[1:], "b") == ["a", key, "b"]
    assert said(f"{data}{data}") == [key, key]


def test_letters_behind_a_lone_escape_are_letters() -> None:
    keyboard = Keyboard()
    found = list(keyboard.feed("\x1b"))
    while not found:
        found += keyboard.tick()
    found += keyboard.feed("fb")
    assert [getattr(event, "key", "") for event in found] == ["escape", "f", "b"]


def test_keys_are_as_before() -> None:
    assert said("\x1b[A", "\x01", "é", "\x1b[13;5u") == ["up", "ctrl+a", "é", "ctrl+enter"]


@pytest.mark.parametrize(
    "pieces", [("a\x1b\x03b",), ("a\x1b", "\x03b"), ("a", "\x1b\x03", "b"), ("a", "\x1b", "\x03", "b")]
)
def test_control_behind_escape_is_a_key_of_its_own(pieces: tuple[str, ...]) -> None:
    assert said(*pieces) == ["a", "escape", "ctrl+c", "b"]


def test_escape_before_a_paste_and_control_are_all_heard() -> None:
    assert said(f"\x1b\x0b{START}x{END}\x1b\x03") == ["escape", "ctrl+k", ("x",), "escape", "ctrl+c"]


REPORTS = [
    "\x1b]0;x\x07",
    "\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\",
    "\x1b]4;1;rgb:0/0/0\x07",
    "\x1bP>|a terminal(1.2) with a name of some length\x1b\\",
    "\x1bP1+r544e=787465726d\x1b\\",
    "\x1b_Gi=31;OK\x1b\\",
    "\x1b[?62;22;52c",
    "\x1b[>0;276;0c",
    "\x1b[?1u",
    "\x1b[0n",
    "\x1b[?997;1n",
    "\x1b[8;24;80t",
]


@pytest.mark.parametrize("report", REPORTS)
def test_what_a_terminal_says_of_itself_is_no_key_wherever_it_is_cut(report: str) -> None:
    assert said(f"a{report}b{report}") == ["a", "b"]
    assert said(f"{report}\x1bf\x07") == ["alt+f", "ctrl+g"]
    for at in range(1, len(report)):
        assert said(f"a{report[:at]}", f"{report[at:]}b") == ["a", "b"]
    assert said(*f"a{report}b") == ["a", "b"]
    assert said("]0;x\x07")[-1] == "ctrl+g"


def test_what_only_begins_like_a_report_is_keys_in_the_end() -> None:
    keyboard = Keyboard()
    found = list(keyboard.feed("\x1b]1"))
    assert not found
    while not found:
        found += keyboard.tick()
    assert [event.character for event in found] == ["]", "1"]
    assert [event.key for event in keyboard.feed("x")] == ["x"]


def test_alt_with_enter_and_backspace_stay_what_they_were() -> None:
    assert said("\x1b\x7f") == ["ctrl+w"]


def test_escape_right_before_a_paste_comes_first() -> None:
    assert said(f"\x1b{START}x{END}") == ["escape", ("x",)]
    assert said("\x1b", f"{START}x{END}") == ["escape", ("x",)]


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
