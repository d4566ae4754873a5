"""The console: keys become what a terminal sends, and output what a terminal would show."""

import json
from typing import Any

import pytest
from textual import events

from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.protocol.views import JobRow, ListJobs
from codewhale.tui.screens.jobs import sent_by, settled
from support.tuirecord import until
from support.tuiscreens import opened


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("Name? ", "Name? "),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("10%\r20%\r100%", "100%"),
        ("abcd\b\b  ", "ab  "),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2Kend\a", "red end"),
    ],
)
def test_output_is_what_a_terminal_would_show(output: str, shown: str) -> None:
    assert settled(output) == shown


@pytest.mark.parametrize(
    ("key", "character", "sent"),
    [
        ("y", "y", "y"),
        ("space", " ", " "),
        ("enter", "\r", "\r"),
        ("backspace", "\x7f", "\x7f"),
        ("up", None, "\x1b[A"),
        ("ctrl+d", "\x04", "\x04"),
        ("alt+b", "b", "\x1bb"),
        ("f5", None, ""),
    ],
)
def test_keys_are_sent_as_a_terminal_does(key: str, character: str | None, sent: str) -> None:
    assert sent_by(events.Key(key, character)) == sent


class Job:
    """A job that answers, and ends when it is told to."""

    def __init__(self) -> None:
        self.status = "Running"
        self.lines: list[str] = []

    def rows(self, query: Any) -> tuple[JobRow, ...]:
        return (JobRow("j1", "read x", ".", self.status, 1.0, None, "Name? ", 6),)

    def run(self, op: RunCommand) -> CommandOutput:
        self.lines.append(op.line)
        if op.line == "/jobs cancel j1":
            self.status = "Killed"
        return CommandOutput("")

    @property
    def typed(self) -> str:
        prefix = "/jobs keys j1 "
        return "".join(json.loads(line.removeprefix(prefix)) for line in self.lines if line.startswith(prefix))


async def test_what_is_typed_goes_to_the_command_until_it_ends() -> None:
    job = Job()
    async with opened("console", {ListJobs: job.rows, RunCommand: job.run}, "j1") as stage:
        await stage.shown("$ read x", "Name?")
        await stage.press(*"Ada y1", "enter", "ctrl+d")
        await until(stage.pilot, lambda: job.typed == "Ada y1\r\x04")
        await stage.press("ctrl+c")
        await until(stage.pilot, lambda: job.typed.endswith("\x03"))
        assert job.status == "Running"
        await stage.press("escape")
        assert await stage.done() is None
        assert job.lines[-1] == "/jobs cancel j1"


async def test_interrupting_twice_ends_it() -> None:
    job = Job()
    async with opened("console", {ListJobs: job.rows, RunCommand: job.run}, "j1") as stage:
        await stage.shown("Name?")
        await stage.press("ctrl+c", "ctrl+c")
        assert await stage.done() is None
        assert "/jobs cancel j1" in job.lines


async def test_it_can_be_left_while_the_command_goes_on() -> None:
    job = Job()
    async with opened("console", {ListJobs: job.rows, RunCommand: job.run}, "j1") as stage:
        await stage.shown("Name?")
        await stage.press("ctrl+right_square_bracket")
        assert await stage.done() is None
        assert job.status == "Running" and job.lines == []
