"""What model calls took, summed over the sessions at rest: no engine is started and no log is locked."""

from typing import Any

from codewhale.lib.clock import SystemClock
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import Envelope, SessionOpened, TurnStarted, UsageReported
from codewhale.session.accounting import Accounts, Totals
from codewhale.session.store import SessionStore


class _Sums:
    """Totals over sessions, by model and by day."""

    def __init__(self, since: str) -> None:
        self._since = since
        self.sessions = self.turns = self.unreadable = 0
        self.total = Totals()
        self.models: dict[tuple[str, str], Totals] = {}
        self.days: dict[str, Totals] = {}

    def add(self, session: list[Envelope]) -> None:
        """Count a session. What a fork has taken over from its parent is the parent's."""
        first = session[0]
        begun = first.at if isinstance(first.event, SessionOpened) and first.event.parent else ""
        after = max(begun, self._since)
        accounts = Accounts()
        for envelope in session:
            event = envelope.event
            if isinstance(event, (UsageReported, TurnStarted)) and envelope.at < after:
                continue
            accounts.apply(event)
            if isinstance(event, UsageReported):
                self.days.setdefault(envelope.at[:10], Totals()).add(event)
        self.sessions += bool(accounts.turns or accounts.total.calls)
        self.turns += accounts.turns
        self.total.merge(accounts.total)
        for route, sums in accounts.by_model.items():
            self.models.setdefault(route, Totals()).merge(sums)


def usage_stats(home: str, workspace: str = "", since: str = "") -> dict[str, Any]:
    """Sums over the sessions of a workspace ("" is every one), of calls since a time (RFC 3339, UTC; "" is always):
    `total`, `models` (dearest first) and `days`, each with tokens, rates, money by currency and causes of misses.
    `unreadable` counts sessions that could not be read."""
    store = SessionStore(home, SystemClock())
    sums = _Sums(since)
    for row in store.summaries(workspace, owned=True):
        if row.updated < since:
            continue
        try:
            session = list(store.read(row.id))
        except (SessionError, OSError):
            sums.unreadable += 1
            continue
        if session:
            sums.add(session)
    dearest = sorted(sums.models.items(), key=lambda item: (-sum(item[1].cost.values()), -item[1].input, item[0]))
    return {
        "since": since or None,
        "workspace": workspace or None,
        "sessions": sums.sessions,
        "turns": sums.turns,
        "unreadable": sums.unreadable,
        "total": sums.total.as_object(),
        "models": [{"provider": name, "model": model, **one.as_object()} for (name, model), one in dearest],
        "days": [{"day": day, **sums.days[day].as_object()} for day in sorted(sums.days)],
    }
