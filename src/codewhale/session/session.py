"""A session: sole owner of its log, of what the log adds up to, and of who listens.

`emit` is the one way anything happens: redact, append, fold, tell listeners. What a session is doing is its turn's.
"""

from collections.abc import Iterable
from itertools import groupby

from msgspec import Struct, field

from codewhale.lib.clock import Clock, rfc3339
from codewhale.models.dialects.base import Provider
from codewhale.protocol.decisions import Rule
from codewhale.protocol.events import (
    ApprovalChanged,
    CallFinished,
    Envelope,
    Event,
    Notice,
    RequestSent,
    is_durable,
)
from codewhale.protocol.modes import Approval, Authority, Rights, narrowest
from codewhale.protocol.scopes import Scope, within
from codewhale.session.accounting import Accounts
from codewhale.session.budget import Budget
from codewhale.session.fanout import Fanout
from codewhale.session.lanes import Lane
from codewhale.session.log import SessionLog
from codewhale.session.prefixcache import PrefixCache
from codewhale.session.projection import Projection
from codewhale.session.redaction import Redactor
from codewhale.session.state import SessionState

LOST = "Interrupted, outcome unknown: the process ended while this call ran. It was not repeated. Check its effects."
STOPPED = "The user interrupted this before a result came. It was not repeated; part of its work may be done."
BROKEN = "Interrupted, outcome unknown: the turn ended while this call ran. It was not repeated. Check its effects."
NEVER_RUN = "Interrupted before it started: this call did not run and changed nothing."


class Folds(Struct):
    """What a log adds up to beside its projection, which needs a dialect."""

    state: SessionState = field(default_factory=SessionState)
    accounts: Accounts = field(default_factory=Accounts)
    prefix: PrefixCache = field(default_factory=PrefixCache)
    asked_at: int = 0  # the record of the last request of the conversation itself

    def take(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, RequestSent) and not event.purpose:
            self.asked_at = envelope.seq
        self.apply(event)

    def apply(self, event: Event) -> None:
        self.state.apply(event)
        self.accounts.apply(event)
        self.prefix.apply(event)


class Session:
    """One conversation with its log, state, wire projection and listeners."""

    def __init__(
        self,
        log: SessionLog,
        folds: Folds,
        model: tuple[Provider, Projection],
        budget: Budget,
        redactor: Redactor,
        clock: Clock,
    ) -> None:
        """`folds` and the projection hold what the log does; the provider's life ends with the session."""
        self.id = log.session
        self.log = log
        self.state, self.accounts, self.prefix = folds.state, folds.accounts, folds.prefix
        self.provider, self.projection = model
        self.budget = budget
        self.fanout = Fanout()
        self.clock = clock
        self._folds = folds
        self._redactor = redactor
        self._providers = [self.provider]
        self._authority, self._approval = Authority.HEADLESS, Approval.SUGGEST
        self._owner: Session | None = None
        self.lane: Lane | None = None
        self._lifted: list[str] = []

    @property
    def rights(self) -> Rights:
        """How far the session may go at this moment; never beyond the session that owns it."""
        own = Rights(self.state.mode, self._authority, self._approval)
        return own if self._owner is None else narrowest(own, self._owner.rights)

    @property
    def scope(self) -> Scope | None:
        """What the session's role, its active skills and those of its owners leave of its rights; None is all."""
        scope = None if self._owner is None else self._owner.scope
        for own in (self.state.scope, *(skill.scope for skill in self.state.skills.values())):
            scope = scope if own is None else within(own, scope)
        return scope

    @property
    def approved(self) -> tuple[Rule, ...]:
        """What its active skills, and those of its owners, pre-approve."""
        own = tuple(rule for skill in self.state.skills.values() for rule in skill.approved)
        return own if self._owner is None else (*self._owner.approved, *own)

    @property
    def owners(self) -> "tuple[str, ...]":
        """The sessions that it works for, the nearest first."""
        return () if self._owner is None else (self._owner.id, *self._owner.owners)

    @property
    def lifted(self) -> list[str]:
        """The ids of clauses that the person lets through, once each, for this session and those that work for it."""
        return self._lifted if self._owner is None else self._owner.lifted

    @property
    def asked_at(self) -> int:
        """The record of the last request of the conversation; 0 before the first."""
        return self._folds.asked_at

    @property
    def owner(self) -> "Session | None":
        return self._owner

    def allow(self, *, authority: Authority | None = None, approval: Approval | None = None) -> None:
        """Change who can be asked and what becomes of asks; None leaves it."""
        self._authority = authority or self._authority
        self._approval = approval or self._approval

    def change_approval(self, approval: Approval) -> None:
        """What the person has chosen to become of asks, in this session."""
        if approval is not self._approval:
            self.emit(ApprovalChanged(approval, self._approval))
            self.allow(approval=approval)

    def belong(self, owner: "Session") -> None:
        """Work for another session: its rights bound this one's, and its listeners are told of both."""
        self._owner, self.fanout.owner = owner, owner.fanout

    def use(self, provider: Provider) -> None:
        """Ask another provider from now on. The former one is closed with the session: it may still be asked."""
        self.provider = provider
        self._providers.append(provider)

    def emit(self, *events: Event) -> None:
        """Let events happen, in order. Raises StorageFullError or SessionError when the log refuses them; of durable
        events given together none has happened then."""
        for durable, together in groupby(events, is_durable):
            if durable:
                self._happen(self.as_recorded(together))
            elif self.fanout.heard:
                at = rfc3339(self.clock.now())
                for event in self.as_recorded(together):
                    self.fanout.push(Envelope(self.log.seq, self.id, at, event))

    def as_recorded(self, events: Iterable[Event]) -> list[Event]:
        """Events as they would stand in the log."""
        return [self._redactor.event(event) for event in events]

    def _happen(self, events: list[Event]) -> None:
        for envelope in self.log.append(events):
            self._folds.take(envelope)
            self.projection.apply(envelope.event)
            self.fanout.push(envelope)

    def notice(self, level: str, text: str, code: str = "") -> None:
        """Tell the person one line."""
        self.emit(Notice(level, text, code))

    def close_calls(self, started: str) -> None:
        """Give every call without a result its one result: `started` for those that had begun."""
        for call in list(self.state.open_calls.values()):
            begun = call.id in self.state.started_calls
            text = started if begun else NEVER_RUN
            self.emit(CallFinished(call.id, call.sent_name, False, text, error="interrupted"))

    async def barrier(self) -> None:
        """Return once everything emitted so far is on disk."""
        await self.log.barrier()

    async def aclose(self) -> None:
        """Sync and release the log, end the listeners' streams, close every provider that was used."""
        try:
            await self.barrier()
        finally:
            self.fanout.close()
            self.log.close()
            for provider in self._providers:
                await provider.aclose()
