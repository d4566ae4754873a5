"""What a turn adds up to for programs: the object that `exec --output-format json` prints."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from codewhale.agent.pending_call import PendingCall
from codewhale.protocol.decisions import FOR_THE_MODEL
from codewhale.protocol.events import FileChanged
from codewhale.protocol.files import FileChange
from codewhale.protocol.ops import UsageView
from codewhale.protocol.stream import Usage
from codewhale.session.accounting import Totals
from codewhale.session.budget import Budget
from codewhale.session.session import Session

Status = Literal["done", "failed", "denied", "budget", "infra", "interrupted"]
SCHEMA_VERSION = 1
EXIT_CODES: dict[Status, int] = {"done": 0, "failed": 1, "denied": 3, "budget": 4, "infra": 75, "interrupted": 130}


class Report:
    """Collects one turn's calls, changes and answer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._before = session.accounts.with_children({})
        self._tools: list[dict[str, object]] = []
        self._changes: dict[str, FileChange] = {}
        self._denied: dict[str, str] = {}
        self.answer = ""

    def add(self, call: PendingCall, name: str = "") -> None:
        self._tools.append({"id": call.id, "name": name or call.name, "ok": call.ok, "ms": call.ms})
        for event in call.events:
            if isinstance(event, FileChanged):
                self._change(event.change)
        for change in call.changed:
            self._change(change)
        if call.denied:
            self._denied[call.name] = call.denied.replace(FOR_THE_MODEL, "")
        elif call.ok:
            self._denied.pop(call.name, None)

    def _change(self, change: FileChange) -> None:
        earlier = self._changes.get(change.path)
        before = change.before if earlier is None else earlier.before
        self._changes[change.path] = FileChange(change.path, before, change.after, change.before_artifact)

    @property
    def denied(self) -> str:
        """Which call was refused, and why; "" where none was, or the same tool has run since."""
        return " ".join(f"{name} was refused: {why}" for name, why in self._denied.items())

    def result(self, status: Status, error: str, unverified: list[dict[str, str]] | None = None) -> dict[str, object]:
        """The object, with fields in the documented order; `unverified` where the project's constitution wants
        something to have succeeded."""
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
            **({"unverified": unverified} if unverified is not None else {}),
            "usage": self._session.accounts.with_children({}).since(self._before).as_usage(),
            "error": error or None,
        }


def usage_view(session: Session, owned: Sequence[Session] = ()) -> UsageView:
    """What the model calls of a session and its children took, of which these are open, for people and programs."""
    provider, budget, accounts = session.provider, session.budget, session.accounts
    model, last = provider.model, accounts.last[-1].usage if accounts.last else Usage()
    live: dict[str, Totals] = {}
    for one in reversed(owned):  # who was opened last works for one before it
        live[one.id] = one.accounts.with_children({key: live[key] for key in one.state.children if key in live})
    live = {key: live[key] for key in session.state.children if key in live}
    total = accounts.with_children(live)
    models = [
        {"provider": name, "model": asked, **totals.as_object()} for (name, asked), totals in accounts.by_model.items()
    ]
    return UsageView(
        provider=session.state.provider, model=session.state.model, window=model.window,
        window_source=model.window_source, active=last.input + last.output, reserved=model.max_output,
        price=None if model.price is None else msgspec.to_builtins(model.price), turns=accounts.turns,
        total=total.as_object(), turn=accounts.with_children(live, turn=True).as_object(),
        children=total.since(accounts.total).as_object(), models=tuple(models),
        calls=tuple(msgspec.to_builtins(call) for call in accounts.last), limits=budget.life.limits,
        used=_used(budget.life), run_limits=budget.limits, run_used=_used(budget),
    )  # fmt: skip


def _used(budget: Budget) -> dict[str, object]:
    spent = budget.spent
    return {"turns": spent.steps, "tokens": spent.tokens, "cost": spent.money}
