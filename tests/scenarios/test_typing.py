"""Keys on a real terminal: what is typed never answers a card, never ends the program and never changes rights."""

import re
import time
from typing import Any

import pytest

from codewhale.protocol.events import (
    ApprovalAnswered,
    CallFinished,
    JobStarted,
    ModeChanged,
    QuestionAnswered,
    TurnFinished,
)
from support.patience import HANG
from support.terminal import FRAME_END, Terminal
from support.ttyworld import World

OPTIONS = [{"label": "SQLite", "description": "a file"}, {"label": "PostgreSQL", "description": "a server"}]
QUESTION = {"id": "db", "header": "Database", "question": "Which one?", "options": OPTIONS}
CARDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "command": ("exec_shell", {"command": "make thing"}, "Run this command?"),
    "file": ("edit_file", {"path": "a.txt", "search": "old", "replace": "new"}, "Change this file?"),
    "patch": ("apply_patch", {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"}, "Change this file?"),
    "network": ("exec_shell", {"command": "curl http://127.0.0.1:9/x"}, "Run this command?"),
    "question": ("request_user_input", {"questions": [QUESTION]}, "Which one?"),
}
LETTERS = ("yes please, all of it", "always do that", "s", "1", "2", "no, but look at a.txt", "y", "a")


@pytest.fixture
def world(world: World) -> World:
    """With files to change, and rules that ask about each change."""
    (world.work / "a.txt").write_text("old\n")
    (world.work / "Makefile").write_text("thing:\n\ttouch ran\n")
    (world.home / "permissions.toml").write_text(
        "".join(f'[[rules]]\naction = "ask"\ntool = "{name}"\n' for name in ("edit_file", "apply_patch"))
    )
    (world.home / "permissions.toml").chmod(0o600)
    return world


def asked(world: World, card: str, **how: Any) -> Terminal:
    """A terminal on which a card of this kind takes answers."""
    name, arguments, title = CARDS[card]
    world.says(
        {"text": "I ask.", "calls": [{"name": name, "arguments": arguments}]}, {"text": "Over."}, approval="suggest"
    )
    term = world.open(**how)
    term.type("go\r")
    term.sees(title)
    term.until(lambda text: "↑↓ move" in text and "stop typing first" not in text)
    return term


def untouched(world: World) -> None:
    """Nothing was answered, and nothing was done."""
    assert not any(isinstance(event, ApprovalAnswered | QuestionAnswered) for event in world.events())
    assert (world.work / "a.txt").read_text() == "old\n" and not (world.work / "ran").exists()
    assert "allow" not in (world.home / "permissions.toml").read_text()


@pytest.mark.parametrize("card", CARDS)
def test_a_sentence_with_enter_is_queued_and_answers_no_card(world: World, card: str) -> None:
    term = asked(world, card)
    for number, sentence in enumerate(LETTERS, 1):
        term.type(f"{sentence}\r")
        term.sees("1 message queued" if number == 1 else f"{number} messages queued")
        term.sees(*(f"queued: {text}" for text in LETTERS[: min(number, 4)]))
    untouched(world)


@pytest.mark.parametrize("card", CARDS)
def test_a_paste_that_ends_with_enter_answers_no_card(world: World, card: str) -> None:
    term = asked(world, card)
    term.paste("y\r\n" * 5_000)
    term.sees("pasted text")
    term.type("\r")
    term.sees("1 message queued")
    untouched(world)


def test_a_card_that_comes_up_under_the_hands_of_a_typist_is_not_answered(world: World) -> None:
    calls = [{"name": "exec_shell", "arguments": {"command": f"make step{number}; touch ran"}} for number in range(3)]
    world.says(*({"text": "Next.", "calls": [call]} for call in calls), {"text": "Over."}, approval="suggest")
    term = world.open()
    term.type("go\r")
    count = 0
    while "Run this command?" not in term.text:
        drawn = len(term.raw)
        term.type("y\r" if count % 3 == 0 else "a")
        count += 1
        term.until_raw(FRAME_END, drawn)
    term.type("yes, all of it\ry\ra\r")
    term.sees("messages queued")
    term.until_quiet(0.3)
    untouched(world)


def test_enter_on_a_row_answers_once_and_what_lasts_is_asked_again(world: World) -> None:
    term = asked(world, "command")
    for key, row in (
        ("\x1b[B", "Don't ask"),
        ("\x1b[B", "Yes, in this session"),
        ("\x1b[B", 'Always allow "make thing"'),
        ("\r", "Go back"),
    ):
        term.type(key)
        term.sees(f"› {row}")
    term.sees("Always allow this")
    term.type("\r")
    term.sees('› Always allow "make thing"')
    untouched(world)
    term.type("\x1b[A\x1b[A\x1b[A")
    term.sees("› Yes, once")
    term.type("\r")
    world.until_recorded(ApprovalAnswered)
    term.sees("Over.")
    assert (world.work / "ran").exists() and "allow" not in (world.home / "permissions.toml").read_text()


def test_what_was_written_before_is_kept_while_a_card_is_answered(world: World) -> None:
    term = asked(world, "command")
    term.type("half a thought")
    term.sees("› half a thought", "(your text is kept")
    term.type("\x1by")
    term.until(lambda text: "half a thought" not in text and "(your text is kept" not in text)
    term.until(lambda text: "stop typing first" not in text)
    term.type("\r")
    term.sees("Over.")
    term.type("\x13")
    term.sees("half a thought")


def test_no_key_leads_to_yolo(world: World) -> None:
    world.says({"text": "Over."}, approval="suggest")
    term = world.open()
    for _ in range(4):
        term.type("\x1b[Z")
        term.sees("─ plan ─", "read-only")
        term.type("\x1b[Z")
        term.sees("─ agent ─", "asks")
    term.type("/yolo\r")
    term.sees("Switch to yolo mode?")
    term.type("y\r")
    term.until(lambda text: "Switch to yolo" not in text)
    term.type("/mode yolo\r")
    term.sees("Switch to yolo mode?")
    term.type("\x1b[B\r")
    term.sees("─ yolo ─", "never asks")
    assert {event.mode.value for event in world.events() if isinstance(event, ModeChanged)} == {"plan", "agent", "yolo"}


@pytest.mark.parametrize("key", ["\x04", "/quit\r"])
def test_leaving_in_the_middle_asks(world: World, key: str) -> None:
    term = asked(world, "command")
    term.type(key)
    term.sees("Quit?", "A question is waiting for your answer")
    term.type("\r")
    term.until(lambda text: "Quit?" not in text)
    untouched(world)
    term.type(key)
    term.sees("Quit?")
    term.type("\x1b[B\r")
    assert term.wait() == 0


def test_leaving_with_a_job_names_it_and_leaving_idle_does_not_ask(world: World) -> None:
    call = {"name": "exec_shell", "arguments": {"command": "sleep 300", "background": True}}
    world.says({"text": "I start it.", "calls": [call]}, {"text": "It runs."})
    term = world.open("--mode", "yolo")
    term.type("go\r")
    term.sees("It runs.", "1 job")
    world.until_recorded(JobStarted)
    term.type("\x04")
    term.sees("1 job would be killed: sleep 300")
    term.type("\x1b")
    term.until(lambda text: "Quit?" not in text)
    idle = world.open("--mode", "yolo")
    idle.type("\x04")
    assert idle.wait() == 0


def test_alt_keys_arrive_without_the_kitty_protocol(world: World) -> None:
    world.says({"text": "Here:\n\n```python\nprint('copied')\n```\n"})
    term = world.open()
    term.type("go\r")
    term.sees("print('copied')")
    world.until_recorded(TurnFinished)
    term.type("\x1bb")
    term.sees("copied")
    term.type("one\x1b\rtwo")
    term.sees("› one", "  two")
    term.type("\x1bs")
    term.sees("Sessions")
    term.type("\x1bf")
    term.sees("forked")


def test_fork_is_a_command(world: World) -> None:
    world.says({"text": "Over."})
    term = world.open()
    term.type("go\r")
    term.sees("Over.")
    world.until_recorded(TurnFinished)
    term.type("/fork\r")
    term.sees("A copy of this session")


def test_sending_from_far_up_shows_what_comes(world: World) -> None:
    lines = "".join(f"line {number}\n\n" for number in range(100))
    world.says({"text": lines}, {"text": "The second answer."})
    term = world.open()
    term.type("go\r")
    term.sees("line 99")
    world.until_recorded(TurnFinished)
    term.type("\x1b[1;5H")
    term.until(lambda text: "line 99" not in text and "line 3" in text)
    term.type("more\r")
    term.sees("The second answer.")


@pytest.mark.parametrize("long", [True, False], ids=["done", "not done"])
def test_after_a_compaction_the_bar_says_that_nothing_goes_on(world: World, long: bool) -> None:
    filling = "word " * 4_000 if long else ""
    world.says({"text": f"{filling}One."}, {"text": f"{filling}Two."}, {"text": "A summary."})
    term = world.open()
    for said in ("One.", "Two."):
        term.type("go\r")
        term.sees(said)
        term.sees("f1 help")
    term.type("/compact\r")
    term.sees("tokens became" if long else "not compacted")
    term.sees("f1 help")
    assert "compacting the conversation" not in term.text


@pytest.mark.parametrize("size", [(40, 16), (80, 24), (200, 60)])
def test_a_card_stands_through_other_sizes_and_garbage(world: World, size: tuple[int, int]) -> None:
    term = asked(world, "command", size=size)
    for columns, rows in ((60, 20), (30, 10), (120, 40), size):
        term.resize(columns, rows)
        term.type(b"\x1b[999;999~\x00\xff\x1b]0;x\x07\x1bO\x80")
        term.until_quiet(0.2)
    untouched(world)
    term.type("\x15" * 3 + "\x13")
    term.type("\x1by")
    term.until(lambda text: "› " in text and "stop typing first" not in text and "to answer" not in text)
    untouched(world)


def test_an_interactive_command_is_typed_into_and_its_output_is_kept(world: World) -> None:
    command = "read -p 'Name? ' name; stty -echo; read -p 'Key? ' key; echo; echo \"$name has ${#key}\""
    call = {"name": "exec_shell", "arguments": {"command": command, "interactive": True}}
    world.says({"text": "I ask you.", "calls": [call]}, {"text": "Thank you."})
    term = world.open("--mode", "yolo")
    term.type("go\r")
    term.sees("your keys go to it", "Name?")
    term.type("Ada\r")
    term.until(lambda text: re.search(r"^ *│ Key\?", text, re.M))
    term.type("secret\r")
    term.sees("Thank you.", "Ada has 6")
    assert "secret" not in term.text
    (finished,) = (event for event in world.events() if isinstance(event, CallFinished))
    assert finished.ok and "Ada has 6" in finished.content


def test_an_interactive_command_waits_for_whoever_is_writing_and_ends_by_escape(world: World) -> None:
    call = {"name": "exec_shell", "arguments": {"command": "read -p 'Sure? ' x; echo $x", "interactive": True}}
    world.says({"text": "I ask you.", "calls": [call]}, {"text": "Over."})
    term = world.open("--mode", "yolo")
    term.type("go\rhalf a thou")
    term.sees("1 job", "half a thou")
    term.type("ght")
    term.until(lambda text: re.search(r"Running +[3-9] s", text))
    assert "your keys go to it" not in term.text and "half a thought" in term.text
    term.type("\x15")
    term.sees("your keys go to it", "Sure?")
    term.type("\x1b")
    term.sees("Over.")
    (finished,) = (event for event in world.events() if isinstance(event, CallFinished))
    assert not finished.ok and "Sure?" in finished.content


def test_what_an_interrupted_command_printed_is_seen_and_told(world: World) -> None:
    call = {"name": "exec_shell", "arguments": {"command": "echo first line; touch printed; sleep 300"}}
    world.says({"text": "I run it.", "calls": [call]}, {"text": "Over."})
    term = world.open("--mode", "yolo")
    term.type("go\r")
    term.sees("esc to stop")
    deadline = time.monotonic() + HANG
    while not (world.work / "printed").exists():
        assert time.monotonic() < deadline, term.text
        time.sleep(0.02)
    term.type("\x1b")
    world.until_recorded(TurnFinished)
    term.sees("first line")
    (finished,) = (event for event in world.events() if isinstance(event, CallFinished))
    assert "first line" in finished.content


def test_enter_in_a_list_of_the_composer_answers_no_card(world: World) -> None:
    call = {"name": "exec_shell", "arguments": {"command": "make thing"}}
    world.says({"text": "Hello."}, {"text": "I ask.", "calls": [call]}, {"text": "Over."}, approval="suggest")
    term = world.open()
    term.type("hi\r")
    term.sees("Hello.", "f1 help")
    term.type("go\r\x12")  # at once, for a card takes the keys of whoever has been still for a moment
    term.sees("Run this command?", "Type to search your prompts")
    term.until(lambda text: re.search(r"denied in (4 m ([0-4]\d|5[0-7])|[0-3] m \d+) s", text))
    term.type("\r")
    term.sees("(your text is kept")
    untouched(world)


def test_the_end_says_how_to_go_on(world: World) -> None:
    world.says({"text": "Over."})
    term = world.open()
    term.type("go\r")
    term.sees("Over.", "f1 help")
    term.type("\x04")
    assert term.wait() == 0
    assert b"codewhale --resume " in term.raw
