"""A command that the person types into: its terminal, line by line, and every key for it. The terminal is one of ours,
of a fixed size, and never the person's own."""

import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.widget import Widget

from codewhale.display.tones import Line, flat, safe_lines
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.protocol.views import JobRow, ListJobs
from codewhale.tui.keys import ACTIONS, bindings, keys_of
from codewhale.tui.letters import is_letter
from codewhale.tui.screens.desk import Desk
from codewhale.tui.screens.frame import Frame
from codewhale.tui.screens.page import Page

LOOK_SECONDS = 0.15
TWICE_SECONDS = 2.0
MOST_SHOWN = 20_000
MOST_WAITING = 100_000
INTERRUPT = "\x03"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_=>])")
_KEYS = {
    "enter": "\r", "tab": "\t", "backspace": "\x7f", "delete": "\x1b[3~", "up": "\x1b[A", "down": "\x1b[B",
    "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F", "pageup": "\x1b[5~", "pagedown": "\x1b[6~",
}  # fmt: skip


def settled(text: str) -> str:
    """What a terminal would show of output, line by line: what is written over and rubbed out is gone."""
    lines = []
    for raw in _SEQUENCE.sub("", text).split("\n"):
        line: list[str] = []
        at = 0
        for char in raw:
            if char == "\r":
                at = 0
            elif char == "\b":
                at = max(0, at - 1)
            elif char != "\a":
                line[at : at + 1] = [char]
                at += 1
        lines.append("".join(line))
    return "\n".join(lines)


def sent_by(event: events.Key) -> str:
    """What a terminal sends for a key, "" for one that it has nothing for."""
    if event.key in _KEYS:
        return _KEYS[event.key]
    held, _, letter = event.key.partition("+")
    if held == "ctrl" and len(letter) == 1 and letter.isalpha():
        return chr(ord(letter.upper()) & 31)
    if held == "alt" and len(letter) == 1:
        return f"\x1b{letter}"
    return event.character or "" if is_letter(event.character) else ""


class Console(Frame):
    """Of the job `argument`. It closes itself when the command has ended."""

    PANEL = "console"
    BINDINGS: ClassVar[list[BindingType]] = bindings("console")
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("console.end", "console.end"),
        ("console.interrupt", "console.interrupt"),
        ("console.close", "console.close"),
    )
    DEFAULT_CSS = """
    Console > #frame { max-width: 124; max-height: 30; border: round $cw-warning; border-title-color: $cw-warning; }
    """

    def __init__(self, desk: Desk, argument: str = "") -> None:
        super().__init__(desk, argument)
        self.page = Page(desk.palette, id="output")
        self._waiting = ""
        self._writing = False
        self._ending = False
        self._interrupted = 0.0
        self._own = {key for row in ACTIONS if row.panel == self.PANEL for key in keys_of(row, desk.keys)}

    def body(self) -> Iterable[Widget]:
        """The output."""
        yield self.page

    def on_mount(self) -> None:
        """Show what was printed, and look again."""
        self.page.focus()
        self.work(self.load)
        self.set_interval(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self.work(self.load)

    async def load(self) -> None:
        """Get the output; leave when the command has ended."""
        rows: Sequence[JobRow] | None = await self.ask(self.desk.query(ListJobs(self.desk.session)))
        row = next((row for row in rows or () if row.id == self.argument), None)
        gone = self._ending if rows is None else row is None or row.status != "Running"
        if gone:
            self.dismiss(None)
        elif row is not None:
            lines: list[Line] = [(("$ ", "muted"), (flat(row.command, 2000), "bold text"))]
            self.page.show([*lines, *safe_lines(settled(row.tail[-MOST_SHOWN:]))], end=True)

    # -------------------------------------------------------------- keys

    def on_key(self, event: events.Key) -> None:
        """Every key is for the command, but the few of the console."""
        if event.key not in self._own and (sent := sent_by(event)):
            event.stop()
            event.prevent_default()
            self._send(sent)

    def on_paste(self, event: events.Paste) -> None:
        """A paste too."""
        event.stop()
        self._send(event.text)

    def _send(self, text: str) -> None:
        """Write in the order in which it was typed; what comes meanwhile goes together."""
        self._waiting = (self._waiting + text)[:MOST_WAITING]
        if not self._writing:
            self._writing = True
            self.run_worker(self._write(), group="keys")

    async def _write(self) -> None:
        try:
            while self._waiting:
                text, self._waiting = self._waiting, ""
                await self._run(f"/jobs keys {self.argument} {json.dumps(text)}")
        finally:
            self._writing = False

    async def _run(self, line: str) -> bool:
        said: CommandOutput | None = await self.ask(self.desk.submit(RunCommand(self.desk.session, line)))
        if said is not None and not said.ok:
            self.say(flat(said.text, 300), "error")
        return said is not None and said.ok

    def action_interrupt(self) -> None:
        """Interrupt it as a terminal does; the second time end it."""
        now = time.monotonic()
        if now - self._interrupted < TWICE_SECONDS:
            self.action_end()
        self._interrupted = now
        self._send(INTERRUPT)

    def action_end(self) -> None:
        """End the command with all its processes."""
        self._ending = True
        self.say(self.words("console.ending"))
        self.work(self._end, "act")

    async def _end(self) -> None:
        if not await self._run(f"/jobs cancel {self.argument}"):
            self.dismiss(None)
