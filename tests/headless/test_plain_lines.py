"""Events as plain lines."""

from typing import Any

from codewhale.display.words import Words
from codewhale.headless.plain_text import MOST_LINES, PlainRenderer
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import (
    AnswerDropped,
    CallFinished,
    CallStarted,
    ContextAppended,
    JobEnded,
    JobStarted,
    MessageAdded,
    Notice,
    RequestSent,
    RetryCountdown,
    SkillActivated,
    SkillReleased,
    TextStreamed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Message, Text, ToolCall
from codewhale.protocol.scopes import Scope
from support.tuirecord import envelopes


def told(*events: Any) -> list[str]:
    """The lines of events."""
    teller = PlainRenderer(Words("en"))
    return [line for envelope in envelopes(events) for line in teller.tell(envelope)]


def said(text: str, *calls: ToolCall) -> MessageAdded:
    """A message of the model."""
    return MessageAdded(Message("assistant", (Text(text), *calls)))


def test_words_come_line_by_line_and_once() -> None:
    assert told(TextStreamed("one\ntw"), TextStreamed("o\n"), TextStreamed("three"), said("one\ntwo\nthree\n")) == [
        "codewhale:",
        "one",
        "two",
        "three",
    ]
    assert told(said("all at once")) == ["codewhale:", "all at once"]
    assert told(TextStreamed("kept\n"), said("kept\n")) == ["codewhale:", "kept"]


def test_what_was_said_otherwise_in_the_end_is_said_again() -> None:
    assert told(TextStreamed("draft\nmore"), said("final")) == ["codewhale:", "draft", "codewhale:", "final"]
    assert told(TextStreamed("broken o"), RequestSent(2, 1, "", 1), said("whole"))[1:] == [
        "broken o",
        "codewhale:",
        "whole",
    ]


def test_a_call_is_told_when_it_runs_and_when_it_ended() -> None:
    call = ToolCall("c1", "exec_shell", '{"command":"pytest -q"}')
    output = "".join(f"line {number} \x1b[2J\n" for number in range(500))
    block = TerminalBlock("pytest -q", output, 1)
    lines = told(
        TurnStarted(1),
        said("", call),
        CallStarted("c1", "exec_shell", call.arguments, (), "rule"),
        CallFinished("c1", "exec_shell", False, "boom", 1200, "failed", display=(block,)),
    )
    assert lines[0] == "Running pytest -q"
    assert lines[1].startswith("failed: Ran pytest -q, exit 1")
    assert (
        len(lines) == MOST_LINES + 2
        and "line 499 \\x1b[2J" in lines[-1]
        and any("more lines" in line for line in lines)
    )


def test_an_answer_that_broke_is_said_once_in_a_line() -> None:
    lines = told(
        TurnStarted(1),
        TextStreamed("one\ntw"),
        AnswerDropped(1, "cut off", 2, 5, text="one\ntw"),
        RetryCountdown(2, 5, 2.0, "cut off", True),
        TextStreamed("three\n"),
    )
    assert lines[1:3] == ["one", "tw"] and lines[-1] == "three"
    assert [line for line in lines if "cut off" in line] == [
        "answer interrupted, retry 2 of 5; partial answer dropped: cut off"
    ]


def test_what_else_is_told() -> None:
    lines = told(
        TurnStarted(1),
        ContextAppended("mode", "Mode: agent."),
        Notice("warning", "care\x07ful"),
        JobStarted("j1", "sleep 9", "."),
        JobEnded("j1", "Completed", 0, 9.0),
        RetryCountdown(1, 3, 2.0, "overloaded"),
        TurnFinished(1, "done"),
    )
    text = "\n".join(lines)
    assert "care\\x07ful" in text and "overloaded" in text and "Mode: agent" not in text
    assert [line for line in lines if "sleep 9" in line][1].startswith("done: job j1")
    assert lines[-1].startswith("done")
    assert all(ord(char) >= 0x20 for line in lines for char in line)


def test_a_skill_is_one_line_and_its_text_none() -> None:
    used = SkillActivated("r", "r/SKILL.md", "0", "person", "session", Scope(tools=("read_file",)))
    update = ContextAppended("skill:r", "Look twice.\nLook again.")
    assert told(used, update, SkillReleased("r"), ContextAppended("skill:r", "It is off.")) == [
        "Using skill: r (r/SKILL.md); restricts the session to read_file until /skill off",
        "No longer using: r",
    ]
