"""Background jobs: what runs and prints, writing to it, ending it; the console of a command that is typed into."""

import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Input

from codewhale.display.text import Spans, flat, safe_lines
from codewhale.protocol.events import Envelope, JobEnded, JobOutput, JobStarted
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.protocol.views import JobRow, ListJobs
from codewhale.tui.input import is_letter, once
from codewhale.tui.keys import ACTIONS, bindings, first_key, keys_of
from codewhale.tui.rows import Item, RowList, unranked
from codewhale.tui.screens.context import ScreenContext
from codewhale.tui.screens.frame import Frame
from codewhale.tui.widgets import Field, Leafed, Page

LOOK_SECONDS = 1.0
# What comes with a burst of events is shown at once, so often at most.
SOON_SECONDS = 0.1
MOST_JOBS = 500
MOST_TAIL = 100_000
STATES = ("Running", "Completed", "Failed", "Killed", "TimedOut", "Stale")
_MARKS = {
    "Running": ("●", "success"),
    "Completed": ("✓", "muted"),
    "Failed": ("✗", "error"),
    "TimedOut": ("✗", "error"),
    "Killed": ("■", "warning"),
}
CONSOLE_SECONDS = 0.15
TWICE_SECONDS = 2.0
MOST_SHOWN = 20_000
MOST_WAITING = 100_000
INTERRUPT = "\x03"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_=>])")
_KEYS = {
    "enter": "\r", "tab": "\t", "backspace": "\x7f", "delete": "\x1b[3~", "up": "\x1b[A", "down": "\x1b[B",
    "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F", "pageup": "\x1b[5~", "pagedown": "\x1b[6~",
}  # fmt: skip


class JobsCentre(Leafed, Frame):
    """The jobs above, the end of the output of the one at hand below."""

    PANEL = "jobs"
    EVENTS: ClassVar[tuple[type, ...]] = (JobStarted, JobOutput, JobEnded)
    BINDINGS: ClassVar[list[BindingType]] = bindings("jobs")
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("jobs.output", "jobs.output"),
        ("jobs.write", "jobs.write"),
        ("jobs.stop", "jobs.stop"),
        ("jobs.close", "frame.close"),
    )
    WRITING: ClassVar[tuple[tuple[str, str], ...]] = (
        ("jobs.output", "jobs.write"),
        ("jobs.end_input", "jobs.end_input"),
        ("jobs.close", "frame.close"),
    )

    DEFAULT_CSS = """
    JobsCentre #rows { height: auto; max-height: 40%; }
    JobsCentre #output { border-top: solid $border; }
    JobsCentre.reading #rows { display: none; }
    JobsCentre #stdin { display: none; }
    JobsCentre.writing #stdin { display: block; }
    """

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self.list = RowList(context.palette, id="rows")
        self.page = Page(context.palette, id="output")
        self._stopping = ""
        self._soon = False
        self._shown: tuple[str, str] = ("", "")

    def body(self) -> Iterable[Widget]:
        yield self.list
        yield self.page
        yield Field(placeholder=self.words(f"{self.PANEL}.line"), id="stdin", max_length=10_000)

    def hints(self) -> tuple[tuple[str, str], ...]:
        if self.has_class("writing"):
            return self.WRITING
        return self.HINTS if self.list.current is not None else self.HINTS[-1:]

    def on_mount(self) -> None:
        self.page.can_focus = False
        self.list.focus()
        self.work(self._first)
        self.set_interval(LOOK_SECONDS, self._look_again)

    async def _first(self) -> None:
        self.say(self.words("frame.loading"))
        if await self.load():
            self.say("" if self.list.current is not None else self.words(f"{self.PANEL}.none"))

    def take(self, envelope: Envelope) -> None:
        """Something happened in a session: look soon where it is about what is listed."""
        if isinstance(envelope.event, self.EVENTS) and not self._soon:
            self._soon = True
            once(self, SOON_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._soon = False
        self.work(self.load)

    async def load(self) -> bool:
        """Get the rows again; whether that went well."""
        said = self.said
        rows = await self.rows()
        if rows is None:
            return False
        self.say(said)
        if self.has_class("writing") and not any(row.key == self._at() and self.writable(row.value) for row in rows):
            self._close_line()
        self.list.show(unranked(rows[:MOST_JOBS]), self._at())
        self._show_hints()
        running = sum(self.runs(row.value) for row in rows)
        self.retitle(self.words(f"{self.PANEL}.running", n=running) if rows else "")
        return True

    async def rows(self) -> Sequence[Item] | None:
        jobs: Sequence[JobRow] | None = await self.ask(self.context.query(ListJobs(self.context.session)))
        return None if jobs is None else [self._item(row) for row in jobs]

    def runs(self, row: Any) -> bool:
        return bool(row.status == "Running")

    def writable(self, row: Any) -> bool:
        """Whether it takes a line."""
        return self.runs(row)

    def _at(self) -> str:
        return self.list.current.key if self.list.current is not None else self.argument

    def _item(self, row: JobRow) -> Item:
        mark, tone = _MARKS.get(row.status, ("?", "muted"))
        state = self.words(f"jobs.state_{row.status}") if row.status in STATES else flat(row.status, 20)
        code = f" {row.exit_code}" if row.exit_code else ""
        said = f"{state}{code} · {row.seconds:,.0f} s · {flat(row.id, 30)}"
        return Item(row.id, row.command, said, "", mark, tone, value=row)

    # -------------------------------------------------------------- the one at hand

    @property
    def job(self) -> Any:
        """What the row at the cursor stands for, or None."""
        return self.list.current.value if self.list.current is not None else None

    @on(RowList.Moved)
    def _moved(self) -> None:
        self.show_at_hand()

    def show_at_hand(self) -> None:
        row = self.job
        shown = (self._at(), row.tail) if row is not None else ("", "")
        if shown != self._shown:
            self.show_output(shown, self._output(row) if row is not None else ())

    def show_output(self, shown: tuple[str, str], lines: Sequence[Spans]) -> None:
        """Show this of a row; what was at its end stays there."""
        follow = self._shown[0] != shown[0] or self.page.at_end()
        self._shown = shown
        self.page.show(lines, end=follow)

    def _output(self, row: JobRow) -> Sequence[Spans]:
        where = f"  ({flat(row.cwd)})" if row.cwd not in ("", ".") else ""
        lines: list[Spans] = [(("$ ", "muted"), (flat(row.command, 2000), "bold text"), (where, "muted"))]
        tail = row.tail[-MOST_TAIL:]
        size = len(tail.encode("utf-8", "replace"))
        if row.bytes > size:
            lines.append(((self.words("jobs.earlier", bytes=f"{row.bytes - size:,}"), "muted"),))
        if not tail:
            lines.append(((self.words("jobs.silent"), "muted"),))
            return lines
        return [*lines, *safe_lines(tail.rstrip("\n"))]

    # -------------------------------------------------------------- keys

    def action_previous(self) -> None:
        """The job before; while its output fills the screen, a line up."""
        if self.has_class("reading"):
            self.page.scroll_up(animate=False)
        else:
            self.list.move(-1)

    def action_next(self) -> None:
        """The next job; while its output fills the screen, a line down."""
        if self.has_class("reading"):
            self.page.scroll_down(animate=False)
        else:
            self.list.move(1)

    def action_output(self) -> None:
        if self.job is not None:
            self.toggle_class("reading")

    def action_stop(self) -> None:
        row = self.job
        if row is None:
            return
        if not self.runs(row):
            self.say(self.words(f"{self.PANEL}.ended_already"))
        elif self._stopping != self._at():
            self._stopping = self._at()
            press = first_key("jobs.stop", self.context.keys)
            self.say(self.words(f"{self.PANEL}.again", press=press, job=flat(self.called(row), 40)), "warning")
        else:
            self._stopping = ""
            self.work(lambda: self.end(row), "act")

    def called(self, row: Any) -> str:
        return str(row.id)

    async def end(self, row: Any) -> None:
        await self._run(f"/jobs cancel {row.id}")

    async def send(self, row: Any, text: str) -> None:
        """Hand a line that was written to what is at hand."""
        await self._run(f"/jobs stdin {row.id} {text}")

    def action_write(self) -> None:
        if self.job is not None and self.writable(self.job):
            self.set_class(True, "writing")
            self._show_hints()
            self.query_one("#stdin", Input).focus()
        else:
            self.say(self.words(f"{self.PANEL}.takes_none"))

    def action_end_input(self) -> None:
        row = self.job
        if row is not None and row.status == "Running":
            self._close_line()
            self.work(lambda: self._run(f"/jobs stdin {row.id} --eof"), "act")

    @on(Input.Submitted, "#stdin")
    def _written(self, event: Input.Submitted) -> None:
        event.stop()
        row, text = self.job, event.value
        event.input.value = ""
        if row is not None:
            self.work(lambda: self.send(row, text), "act")

    async def _run(self, line: str) -> None:
        said: CommandOutput | None = await self.ask(self.context.submit(RunCommand(self.context.session, line)))
        if said is not None:
            last = said.text.strip().splitlines()[-1:] or [""]
            self.say(last[0], "muted" if said.ok else "error")
            await self.load()

    def _close_line(self) -> None:
        self.set_class(False, "writing")
        self._show_hints()
        self.list.focus()

    def action_close(self) -> None:
        if self.has_class("writing"):
            self._close_line()
        elif self.has_class("reading"):
            self.set_class(False, "reading")
        else:
            self.dismiss(None)


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
    Console > #frame { border: round $cw-warning; border-title-color: $cw-warning; }
    """

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self.page = Page(context.palette, id="output")
        self._waiting = ""
        self._writing = False
        self._ending = False
        self._interrupted = 0.0
        self._own = {key for row in ACTIONS if row.panel == self.PANEL for key in keys_of(row, context.keys)}

    def body(self) -> Iterable[Widget]:
        yield self.page

    def on_mount(self) -> None:
        self.page.focus()
        self.work(self.load)
        self.set_interval(CONSOLE_SECONDS, self._look)

    def _look(self) -> None:
        self.work(self.load)

    async def load(self) -> None:
        """Get the output; leave when the command has ended."""
        rows: Sequence[JobRow] | None = await self.ask(self.context.query(ListJobs(self.context.session)))
        row = next((row for row in rows or () if row.id == self.argument), None)
        gone = self._ending if rows is None else row is None or row.status != "Running"
        if gone:
            self.dismiss(None)
        elif row is not None:
            lines: list[Spans] = [(("$ ", "muted"), (flat(row.command, 2000), "bold text"))]
            self.page.show([*lines, *safe_lines(settled(row.tail[-MOST_SHOWN:]))], end=True)

    # -------------------------------------------------------------- keys

    def on_key(self, event: events.Key) -> None:
        """Every key is for the command, but the few of the console."""
        if event.key not in self._own and (sent := sent_by(event)):
            event.stop()
            event.prevent_default()
            self._send(sent)

    def on_paste(self, event: events.Paste) -> None:
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
        said: CommandOutput | None = await self.ask(self.context.submit(RunCommand(self.context.session, line)))
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
        self._ending = True
        self.say(self.words("console.ending"))
        self.work(self._end, "act")

    async def _end(self) -> None:
        if not await self._run(f"/jobs cancel {self.argument}"):
            self.dismiss(None)


SCREENS: dict[str, type[Frame]] = {"jobs": JobsCentre, "console": Console}
