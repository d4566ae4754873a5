"""What a task's conversation has come to, read from its session's log: its end, what had begun, and its history."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from codewhale.journal.model import RunState
from codewhale.lib.text import one_line
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import (
    AttemptRecorded,
    CallFinished,
    CallStarted,
    ChildClosed,
    ChildOpened,
    Envelope,
    FileChanged,
    GateRecorded,
    JobEnded,
    JobStarted,
    ListChanged,
    MessageAdded,
    SessionOpened,
    SessionResumed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Text
from codewhale.protocol.modes import Authority
from codewhale.protocol.tasks import TASK_KIND, TaskLine
from codewhale.protocol.tools import Effect
from codewhale.session.store import SessionStore

MOST_LINES = 500
_LINE = 200
OWN_EVENTS = ("attempt", "checklist", "gate")  # what is an event of its own beside that
UPDATES = "task_updates"  # the key of a result's metadata under which a tool writes into its task


class TaskConversation(Struct):
    """A fold over one log. `begun` are the calls without a result, `jobs` the commands that ran beside; `end` is the
    last turn's, None while one is open. `by_person`: a person has taken it up, whose turns are not the task's."""

    opened: SessionOpened | None = None
    prompt: str = ""
    turns: int = 0
    attempts: int = 0
    by_person: bool = False
    end: TurnFinished | None = None
    begun: dict[str, CallStarted] = field(default_factory=dict)
    jobs: dict[str, JobStarted] = field(default_factory=dict)
    lines: list[TaskLine] = field(default_factory=list)
    checklist: tuple[dict[str, object], ...] = ()
    updates: dict[str, list[object]] = field(default_factory=dict)

    def take(self, envelope: Envelope) -> None:
        """Fold one event in."""
        event, at = envelope.event, envelope.at
        match event:
            case SessionOpened():
                self.opened = self.opened or event
                self._attempt()
            case SessionResumed():
                self.by_person = event.authority is Authority.PERSON
                self._attempt()
            case TurnStarted():
                self.turns, self.end = event.turn, None
            case MessageAdded(message=message) if message.role == "user" and not self.prompt:
                texts = (part.text for part in message.parts if isinstance(part, Text) and part.source == "person")
                self.prompt = next(texts, "")
            case TurnFinished():
                self.end = event
                self._line(at, "turn", " ".join(filter(None, (event.status, event.reason))))
            case _:
                self._work(envelope)

    def _attempt(self) -> None:
        self.attempts += 1
        self.end, self.begun, self.jobs = None, {}, {}

    def _work(self, envelope: Envelope) -> None:
        event, at = envelope.event, envelope.at
        match event:
            case CallStarted():
                self.begun[event.call_id] = event
                self._line(at, "call", f"{event.name} {event.arguments}")
            case CallFinished():
                self.begun.pop(event.call_id, None)
                self._finished(event, at)
            case JobStarted():
                self.jobs[event.job_id] = event
            case JobEnded():
                self.jobs.pop(event.job_id, None)
            case FileChanged(change=change):
                self._line(at, "file", change.path)
            case ChildOpened():
                self._line(at, "agent", f"{event.name} opened: {event.objective}")
            case ChildClosed():
                self._line(at, "agent", f"{event.name or event.child} {event.status}: {event.summary}")
            case GateRecorded(gate=gate):
                self.updates.setdefault("gate", []).append(msgspec.to_builtins(gate))
                self._line(at, "gate", f"{gate.gate} {gate.status}: {gate.command}")
            case AttemptRecorded(attempt=attempt):
                self.updates.setdefault("attempt", []).append(msgspec.to_builtins(attempt))
                self._line(at, "attempt", f"{attempt.id}: {attempt.summary}")
            case ListChanged(kind="checklist", items=items):
                self.checklist = tuple(dict(item) for item in items)

    def _finished(self, event: CallFinished, at: str) -> None:
        if not event.ok:
            first, error = event.content.strip().partition("\n")[0], event.metadata.get("error")
            said = error.get("message") if isinstance(error, dict) else ""
            self._line(at, "failed", f"{event.name}: {said or first or event.error}")
        written = event.metadata.get(UPDATES)
        for kind, value in written.items() if isinstance(written, dict) else ():
            if kind not in OWN_EVENTS:
                self.updates.setdefault(str(kind), []).append(value)

    def _line(self, at: str, kind: str, text: str) -> None:
        self.lines.append(TaskLine(at, kind, one_line(" ".join(text.split()), _LINE)))
        del self.lines[:-MOST_LINES]

    @property
    def unfinished(self) -> tuple[str, ...]:
        """What had begun and not ended: calls, and commands that ran beside."""
        calls = (f"{call.name} {call.arguments}" for call in self.begun.values())
        jobs = (f"{job.job_id}: {job.command}" for job in self.jobs.values())
        return tuple(one_line(" ".join(text.split()), _LINE) for text in (*calls, *jobs))

    @property
    def half_done(self) -> bool:
        """Whether something that changes things may be half done."""
        changing = any(set(call.effects) - {Effect.READS} for call in self.begun.values())
        return changing or bool(self.jobs)


def fold_log(events: Iterable[Envelope]) -> TaskConversation:
    fold = TaskConversation()
    for envelope in events:
        fold.take(envelope)
    return fold


def read_conversation(sessions: SessionStore, session: str) -> TaskConversation | None:
    """None where there is no log, or none that can be read."""
    if not session:
        return None
    try:
        return fold_log(sessions.read(session))
    except (SessionError, OSError):
        return None


def ending(conversation: TaskConversation) -> tuple[RunState, dict[str, object]] | None:
    """The state that a task whose last turn has ended is in, with its result; None where it did not come to that."""
    end = conversation.end
    if end is None or end.status == "interrupted" or conversation.by_person:
        return None
    answer = str(end.result.get("answer", "")).strip()
    if end.status == "done":
        return "completed", {"answer": answer}
    return "failed", {"answer": answer, "error": end.reason or f"It ended with status {end.status}."}


def conversations(sessions: SessionStore) -> dict[str, list[str]]:
    """The sessions that are conversations of tasks, by the task that each names, oldest first."""
    found: dict[str, list[str]] = {}
    for row in reversed(sessions.summaries(owned=True)):
        if row.kind == TASK_KIND and row.name and not row.owner:
            found.setdefault(row.name, []).append(row.id)
    return found
