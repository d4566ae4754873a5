"""The terminal interface on a record: a client that plays envelopes, a host for one panel, waiting for a condition."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App, ComposeResult
from textual.events import Event as Event_
from textual.events import Key, Paste
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widget import Widget

from codewhale.display.palette import Palette, load_palette
from codewhale.protocol.events import Envelope, Event, is_durable
from codewhale.protocol.ops import Answer, CommandOutput, OpenSession, RunCommand
from codewhale.protocol.requests import Op, Query
from codewhale.tui.input import misses
from support.patience import HANG

SESSION = "s-recorded"
BEGAN = "2026-03-02T09:00:00.000Z"


def envelopes(events: Iterable[Event], session: str = SESSION, at: str = BEGAN) -> list[Envelope]:
    """Events in their places: the durable ones are counted from 1."""
    found, seq = [], 0
    for event in events:
        seq += is_durable(event)
        found.append(Envelope(seq, session, at, event))
    return found


class RecordedClient:
    """A client whose session is a list of envelopes. `ops` are the operations that were submitted, `asked` the queries;
    `answers` gives what is answered by operation or query type: a value, or a callable that is given it."""

    def __init__(self, record: Iterable[Envelope] = (), answers: Mapping[type, Any] | None = None) -> None:
        self._record = list(record)
        self._answers = dict(answers or {})
        self._grown = asyncio.Event()
        self._closed = False
        self.ops: list[Op] = []
        self.asked: list[Query] = []

    @property
    def session(self) -> str:
        """The id of its session."""
        return self._record[0].session if self._record else SESSION

    def feed(self, *events: Event) -> None:
        """Let events happen now."""
        seq = self._record[-1].seq if self._record else 0
        for event in events:
            seq += is_durable(event)
            self._record.append(Envelope(seq, self.session, BEGAN, event))
        self._grown.set()

    def end(self) -> None:
        """Let the stream of events end."""
        self._closed = True
        self._grown.set()

    async def submit(self, op: Op) -> Any:
        """Note the operation and answer it."""
        self.ops.append(op)
        if type(op) in self._answers:
            return await _answer(self._answers[type(op)], op)
        match op:
            case OpenSession():
                return self.session
            case RunCommand():
                return CommandOutput("")
            case Answer():
                return True
        return None

    async def query(self, query: Query) -> Any:
        """Note the query and answer it. Raises KeyError where no answer was given for its type."""
        self.asked.append(query)
        return await _answer(self._answers[type(query)], query)

    async def events(self, session: str, from_seq: int = 0, durable: bool = True) -> AsyncIterator[Envelope]:
        """What was recorded after `from_seq`, then what is fed, until `end`."""
        told = 0
        if from_seq < 0:
            told = len(self._record)
        while True:
            while told < len(self._record):
                told += 1
                if self._record[told - 1].seq > from_seq:
                    yield self._record[told - 1]
            if self._closed:
                return
            self._grown.clear()
            await self._grown.wait()


async def _answer(answer: Any, asked: Any) -> Any:
    found = answer(asked) if callable(answer) else answer
    return await found if asyncio.iscoroutine(found) else found


async def until(pilot: Pilot[Any], condition: Callable[[], Any], seconds: float = HANG) -> Any:
    """Wait until a condition holds; its value. Raises AssertionError with what is on the screen when it never does."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError("it never came about; the screen:\n" + screen_text(pilot.app))
        await pilot.pause()
        await asyncio.sleep(0.005)
    return value


async def typed(pilot: Pilot[Any], keys: Iterable[str]) -> None:
    """Press keys one after the other as fast as a person's terminal sends them, then let what they do happen."""
    driver = pilot.app._driver
    assert driver is not None
    for key in keys:
        char = key if len(key) == 1 else {"space": " "}.get(key)
        event = Key(_character_to_key(key) if len(key) == 1 and not key.isalnum() else key, char)
        event.set_sender(pilot.app)
        driver.send_message(event)
    await pilot.pause()


def screen_text(app: App[Any]) -> str:
    """What is on the screen, line by line, trailing blanks left out."""
    lines = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in lines)


class PanelHost(App[None]):
    """An app that holds one panel and notes the messages that reach it. `make` builds the panel from the palette."""

    CSS = "PanelHost { background: $background; }"

    def __init__(self, make: Callable[[Palette], Widget], theme: str = "dark") -> None:
        super().__init__()
        self.palette = load_palette(theme, "")
        self._make = make
        self.said: list[Any] = []
        self.pressed = time.monotonic()

    def compose(self) -> ComposeResult:
        """The panel."""
        self.panel = self._make(self.palette)
        yield self.panel

    async def on_event(self, event: Event_) -> None:
        """What is typed reaches the line to type into, as in the whole interface."""
        lines = self.screen.query("#composer") if isinstance(event, Key | Paste) else ()
        if isinstance(event, Key | Paste):
            self.pressed = time.monotonic()
        if lines and misses(event, self.focused):
            self.screen.set_focus(lines.first())
        await super().on_event(event)

    def on_load(self) -> None:
        """Its colours."""
        theme = self.palette.theme()
        self.register_theme(theme)
        self.theme = theme.name

    def note(self, message: Any) -> None:
        """Keep a message once, whatever it passes on its way."""
        if not any(message is said for said in self.said):
            self.said.append(message)


@asynccontextmanager
async def hosted(
    make: Callable[[Palette], Widget], size: tuple[int, int] = (80, 24), theme: str = "dark"
) -> AsyncIterator[tuple[PanelHost, Pilot[None]]]:
    """One panel on a screen of `size`, and the pilot; `host.said` are the messages of our own that bubbled up."""
    host = PanelHost(make, theme)

    def note(message: Any) -> None:
        if type(message).__module__.startswith("codewhale"):
            host.note(message)

    async with host.run_test(size=size, message_hook=note) as pilot:
        yield host, pilot
