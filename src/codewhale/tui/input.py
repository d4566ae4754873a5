"""When typed keys count and where they go: before anything can take them, to the composer, to a console."""

import asyncio
from collections.abc import Callable
from typing import Any

from textual import events
from textual.app import App
from textual.events import Event
from textual.message_pump import MessagePump
from textual.widget import AwaitMount, Widget
from textual.widgets import Input, TextArea

from codewhale.protocol.events import Envelope, JobEnded, JobStarted, SessionResumed, TurnFinished

HELD_KEYS = ("alt+", "ctrl+", "super+", "meta+", "hyper+")
IDLE_SECONDS = 0.7


def is_letter(character: str | None) -> bool:
    """Whether a character is text: anything printable, and the joiners and marks that are written between letters
    (Persian, Hindi, emoji); no control characters."""
    return character is not None and len(character) == 1 and (character.isprintable() or ord(character) >= 0xA0)


def misses(event: events.Event, focused: Widget | None) -> bool:
    """Whether a key or a paste is text and the focused widget takes none."""
    return not isinstance(focused, Input | TextArea) and writes(event)


def writes(event: Event) -> bool:
    """Whether a key or a paste is text."""
    if isinstance(event, events.Key):
        return is_letter(event.character) and not event.key.startswith(HELD_KEYS)
    return isinstance(event, events.Paste)


class Early:
    """Keeps keys and pastes, from the beginning on until they are released; then the app is given them again."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._kept: list[Event] | None = []
        self._let: Event | None = None

    def keeps(self, event: Event) -> bool:
        """Whether an event was kept for later: also a key of the app that would overtake letters before it."""
        if self._kept is None:
            text = self._app.focused
            if not isinstance(text, TextArea) or not text.message_queue_size or event is self._let or writes(event):
                return False
            self._kept, self._let = [], event
            text.call_later(self._app.call_later, self.release)
        self._kept.append(event)
        return True

    def until(self, opened: AwaitMount) -> None:
        """Keep what comes until a screen stands."""
        if self._kept is None:
            self._kept = []
            self._app.run_worker(self._stands(opened))

    async def _stands(self, opened: AwaitMount) -> None:
        try:
            await opened
        finally:
            self._app.call_later(self.release)  # behind the screen's own wish for the focus

    async def release(self) -> None:
        """Take what was kept, in its order."""
        kept, self._kept = self._kept or [], None
        for event in kept:
            await self._app.on_event(event)


def once(panel: MessagePump, seconds: float, callback: Callable[[], Any]) -> asyncio.TimerHandle:
    """Have a panel do something among its messages after so many seconds; nothing where it is gone by then. Textual's
    `set_timer` never does it when the process stands still for longer than that just as the timer begins."""
    return asyncio.get_running_loop().call_later(max(0.0, seconds), panel.call_next, callback)


class Consoles:
    """`quiet` tells for how many seconds no key was pressed, None while something stands in the composer; `free`
    whether nothing else is open or asked. No key may have been pressed for `idle` seconds."""

    def __init__(self, quiet: Callable[[], float | None], free: Callable[[], bool], idle: float) -> None:
        self._quiet = quiet
        self._free = free
        self._idle = idle
        self.job = ""

    def take(self, envelope: Envelope) -> bool:
        """Count an event in; whether a command waits for a console now that did not."""
        match envelope.event:
            case JobStarted(job_id=job, interactive=True):
                self.job = job
                return True
            case JobEnded(job_id=job) if job == self.job:
                self.job = ""
            case TurnFinished() | SessionResumed():
                self.job = ""
        return False

    def due(self) -> str:
        """The job whose console is to be opened now, "" for none; it is opened once."""
        quiet = self._quiet()
        if not self.job or quiet is None or quiet < self._idle or not self._free():
            return ""
        job, self.job = self.job, ""
        return job
