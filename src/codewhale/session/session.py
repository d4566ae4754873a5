"""A session: sole owner of its log and of what the log adds up to.

`emit` is the one way anything happens: redact, append, fold, tell listeners. What waits for a person or for
the turn's end waits here, as data.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from msgspec import Struct

from codewhale.lib.clock import Clock, rfc3339
from codewhale.models.dialects.base import LoadImage, Provider
from codewhale.protocol.events import CallFinished, Envelope, Event, Notice, is_durable
from codewhale.protocol.messages import Image
from codewhale.protocol.modes import Approval, Authority, Rights, narrowest
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.session.accounting import Accounts
from codewhale.session.budget import Budget
from codewhale.session.fanout import Fanout
from codewhale.session.log import SessionLog
from codewhale.session.prefixcache import PrefixCache
from codewhale.session.projection import Projection
from codewhale.session.redaction import Redactor
from codewhale.session.state import SessionState

LOST = "Interrupted, outcome unknown: the process ended while this call ran. It was not repeated. Check its effects."
STOPPED = "Interrupted by the person before a result came. It was not repeated; part of its work may be done."
BROKEN = "Interrupted, outcome unknown: the turn ended while this call ran. It was not repeated. Check its effects."
NEVER_RUN = "Interrupted before it started: this call did not run and changed nothing."


class Letter(Struct, frozen=True):
    """A message on its way: the operation, and the images that its attachments came to."""

    op: SendMessage
    images: tuple[Image, ...] = ()


class Session:
    """One conversation with its log, state, wire projection and listeners."""

    def __init__(self, session_id: str, log: SessionLog, redactor: Redactor, clock: Clock) -> None:
        self.id = session_id
        self.log = log
        self.state = SessionState()
        self.accounts = Accounts()
        self.prefix = PrefixCache()
        self.fanout = Fanout()
        self.authority = Authority.HEADLESS
        self.approval = Approval.SUGGEST
        self.parent: Callable[[], Rights] | None = None
        self.owner = ""
        self.provider: Provider | None = None
        self.providers: list[Provider] = []
        self.projection: Projection | None = None
        self.budget: Budget | None = None
        self.steers: deque[Letter] = deque()
        self.queue: deque[Letter] = deque()
        self.answers: dict[str, asyncio.Future[Answer]] = {}
        self.task: asyncio.Task[Any] | None = None
        self.stop_reason = ""
        self.running = False
        self.ending = False
        self.fault: Exception | None = None
        self.waiting = ("", 0.0)
        self.request_effort = ""
        self.asked = ""
        self.load_image: LoadImage = _no_image
        self._redactor = redactor
        self.clock = clock

    @property
    def turn(self) -> tuple[str, int]:
        """Its own id and the turn it is in."""
        return self.id, self.state.turns

    @property
    def rights(self) -> Rights:
        """How far the session may go at this moment; a child's never reach beyond its parent's."""
        own = Rights(self.state.mode, self.authority, self.approval)
        return own if self.parent is None else narrowest(own, self.parent())

    @property
    def waiting_for(self) -> str:
        """What the running turn waits for; `waiting` holds since when, too."""
        return self.waiting[0]

    @waiting_for.setter
    def waiting_for(self, what: str) -> None:
        """It waits for this from now on, "" for nothing."""
        self.waiting = (what, self.clock.now() if what else 0.0)

    @property
    def busy(self) -> bool:
        """Whether a turn's task runs."""
        return self.task is not None and not self.task.done()

    @property
    def idle(self) -> bool:
        """Whether no turn runs, or the last one has told its end already."""
        return self.ending or not self.busy

    def emit(self, *events: Event) -> None:
        """Let events happen, in order. Raises StorageFullError or SessionError when the log refuses them; of durable
        events given together none has happened then."""
        for durable, together in groupby(events, is_durable):
            clean = [self._redactor.event(event) for event in together]
            if durable:
                self._happen(clean)
                continue
            at = rfc3339(self.clock.now())
            for event in clean:
                self.fanout.push(Envelope(self.log.seq, self.id, at, event))

    def _happen(self, events: list[Event]) -> None:
        for envelope in self.log.append(events):
            self._fold(envelope.event)
            self.fanout.push(envelope)

    def replay(self, events: Iterable[Event]) -> None:
        """Fold events that the log already holds."""
        for event in events:
            self._fold(event)

    def _fold(self, event: Event) -> None:
        self.state.apply(event)
        self.accounts.apply(event)
        self.prefix.apply(event)
        if self.projection is not None:
            self.projection.apply(event)

    def notice(self, level: str, text: str, code: str = "") -> None:
        """Tell the person one line."""
        self.emit(Notice(level, text, code))

    def close_calls(self, started: str) -> None:
        """Give every call without a result its one result: `started` for those that had begun."""
        for call in list(self.state.open_calls.values()):
            begun = call.id in self.state.started_calls
            text = started if begun else NEVER_RUN
            self.emit(CallFinished(call.id, call.sent_name, False, text, error="interrupted"))

    def stop(self, reason: str) -> None:
        """End the running turn; `reason` is interrupted or budget. The second time does nothing: the turn is being
        wound up. A turn whose task has not run yet sees the reason as soon as it does."""
        if self.task is None or not self.busy or self.ending or self.stop_reason:
            return
        self.stop_reason = reason
        if self.running:
            self.task.cancel()

    async def barrier(self) -> None:
        """Return once everything emitted so far is on disk."""
        await self.log.barrier()


def _no_image(image: Image) -> bytes:
    raise KeyError(image.artifact)
