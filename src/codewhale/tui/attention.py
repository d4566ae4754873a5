"""Calling for the person: the title of the terminal tells what goes on, and a notification says that something needs
them while they look elsewhere."""

import time
from collections.abc import Callable, Mapping

from codewhale.lib.text import one_line
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Envelope,
    QuestionAnswered,
    QuestionAsked,
    SessionOpened,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.screen import Notify

# A turn that took less has hardly been left alone.
LONG_TURN_SECONDS = 10.0
# In a terminal that never tells whether it is looked at, so long without a key counts as away.
AWAY_SECONDS = 20.0
_SAVE_TITLE, _RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_OSC9 = ("iTerm.app", "WezTerm", "ghostty")


def way_of(notify: Notify, environ: Mapping[str, str]) -> Notify:
    """How this terminal is told of something: OSC 9 (iTerm2, WezTerm, Ghostty, kitty), OSC 777 (foot, rxvt), else the
    bell, which tmux and screen pass on where they swallow the others."""
    if notify != "auto":
        return notify
    if environ.get("TMUX") or environ.get("STY"):
        return "bell"
    term = environ.get("TERM", "")
    if environ.get("TERM_PROGRAM") in _OSC9 or "kitty" in term or "ghostty" in term:
        return "osc9"
    return "osc777" if term.startswith(("foot", "rxvt")) else "bell"


class Attention:
    """Writes to the terminal by `write`, and only whole sequences of its own making around cleaned text."""

    def __init__(
        self,
        write: Callable[[str], None],
        say: Callable[..., str],
        way: Notify,
        title: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._say = say
        self._way = way
        self._titled = title
        self._clock = clock
        self._focused: bool | None = None
        self._key_at = clock()
        self._began = 0.0
        self._place = ""
        self._asked: set[str] = set()
        self._busy = False
        self._shown = ""

    def begin(self, place: str) -> None:
        """Keep the title that is there, and name the folder in ours."""
        self._place = one_line(place, 60)
        if self._titled:
            self._write(_SAVE_TITLE)
        self._retitle()

    def end(self) -> None:
        if self._titled:
            self._write(_RESTORE_TITLE)

    def focus(self, on: bool) -> None:
        self._focused = on

    def key(self) -> None:
        """A key was pressed: somebody is there."""
        self._key_at = self._clock()

    def take(self, envelope: Envelope, live: bool = True) -> None:
        """An event; one of the past (not `live`) calls nobody."""
        event = envelope.event
        match event:
            case SessionOpened():
                self._asked.clear()
                self._busy = False
            case TurnStarted():
                self._asked.clear()
                self._busy = True
                self._began = self._clock()
            case ApprovalAsked(request_id=request) | QuestionAsked(request_id=request):
                self._asked.add(request)
                if live:
                    self._call("approval" if isinstance(event, ApprovalAsked) else "question")
            case ApprovalAnswered(request_id=request) | QuestionAnswered(request_id=request):
                self._asked.discard(request)
            case TurnFinished(status=status):
                self._asked.clear()
                self._busy = False
                if live and self._clock() - self._began >= LONG_TURN_SECONDS:
                    self._call("done" if status == "done" else "stopped")
            case _:
                return
        self._retitle()

    def _retitle(self) -> None:
        state = "asking" if self._asked else "busy" if self._busy else "idle"
        title = self._say(f"attention.title_{state}", place=self._place)
        if self._titled and title != self._shown:
            self._shown = title
            self._write(f"\x1b]2;{title}\x07")

    def _call(self, what: str) -> None:
        away = self._clock() - self._key_at >= AWAY_SECONDS if self._focused is None else not self._focused
        if not away or self._way == "off":
            return
        text = self._say(f"attention.{what}", place=self._place)
        match self._way:
            case "osc9":
                self._write(f"\x1b]9;{text}\x07")
            case "osc777":
                self._write(f"\x1b]777;notify;CodeWhale;{text.replace(';', ',')}\x07")
            case _:
                self._write("\x07")
