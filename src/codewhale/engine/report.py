"""What a turn adds up to for programs: the object that `exec --output-format json` prints."""

from typing import Any, Literal

from codewhale.engine.dispatch import Outcome
from codewhale.engine.session import Session
from codewhale.protocol.events import FileChanged
from codewhale.protocol.files import FileChange
from codewhale.protocol.stream import Usage

Status = Literal["done", "failed", "denied", "budget", "infra", "interrupted"]
SCHEMA_VERSION = 1
EXIT_CODES: dict[Status, int] = {"done": 0, "failed": 1, "denied": 3, "budget": 4, "infra": 75, "interrupted": 130}


class Report:
    """Collects one turn's calls, changes and answer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._before = session.state.usage
        self._tools: list[dict[str, Any]] = []
        self._changes: dict[str, FileChange] = {}
        self._denied: set[str] = set()
        self.answer = ""

    def add(self, outcome: Outcome) -> None:
        """Count one call."""
        self._tools.append({"id": outcome.call_id, "name": outcome.name, "ok": outcome.ok, "ms": outcome.ms})
        for event in outcome.events:
            if isinstance(event, FileChanged):
                self._change(event.change)
        if outcome.denied:
            self._denied.add(outcome.name)
        elif outcome.ok:
            self._denied.discard(outcome.name)

    def _change(self, change: FileChange) -> None:
        earlier = self._changes.get(change.path)
        before = change.before if earlier is None else earlier.before
        self._changes[change.path] = FileChange(change.path, before, change.after, change.before_artifact)

    @property
    def denied(self) -> bool:
        """Whether a refused call was never followed by a success of the same tool."""
        return bool(self._denied)

    def result(self, status: Status, error: str) -> dict[str, Any]:
        """The object, with fields in the documented order."""
        changes = [
            {"path": change.path, "before_sha256": change.before, "after_sha256": change.after}
            for change in self._changes.values()
            if change.before != change.after
        ]
        return {
            "schema_version": SCHEMA_VERSION,
            "session_id": self._session.id,
            "status": status,
            "exit_code": EXIT_CODES[status],
            "answer": self.answer,
            "tools": self._tools,
            "changes": changes,
            "usage": _difference(self._session.state.usage, self._before),
            "error": error or None,
        }


def _difference(now: Usage, before: Usage) -> dict[str, Any]:
    cost = None if now.cost is None else now.cost - (before.cost or 0.0)
    return {
        "input": now.input - before.input,
        "output": now.output - before.output,
        "cache_hit": now.cache_hit - before.cache_hit,
        "cache_miss": now.cache_miss - before.cache_miss,
        "cost": cost,
        "currency": now.currency,
    }
