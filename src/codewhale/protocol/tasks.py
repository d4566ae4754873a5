"""Durable tasks as data: work that outlives the window that it was given in, and who does it."""

from typing import Literal

from msgspec import Struct

from codewhale.protocol.gates import WorkReceipt
from codewhale.protocol.requests import Op, Query

TASK_KIND = "task"  # of the session that a task's conversation is
MOST_TASKS = 100  # of one listing
OnDeath = Literal["ask", "resume"]
TaskStatus = Literal["queued", "running", "waiting", "interrupted", "completed", "failed", "cancelled"]


class TaskView(Struct, frozen=True, omit_defaults=True):
    """How a task stands. `session` is its conversation, `worker` who has it; `unfinished` are the calls that had begun
    and not ended when its process died. Times are RFC 3339. `creator` is the session that made it, `by` who did."""

    id: str
    status: TaskStatus
    prompt: str
    workspace: str
    mode: str
    model: str = ""
    provider: str = ""
    created_at: str = ""
    started_at: str = ""
    ended_at: str = ""
    duration_ms: int | None = None
    attempt: int = 0
    session: str = ""
    worker: str = ""
    answer: str = ""
    error: str = ""
    unfinished: tuple[str, ...] = ()
    allow_shell: bool = True
    auto_approve: bool = False
    on_death: OnDeath = "ask"
    creator: str = ""
    by: str = "person"
    stopping: bool = False

    @property
    def over(self) -> bool:
        return self.status in ("completed", "failed", "cancelled", "interrupted")


class TaskLine(Struct, frozen=True):
    """One moment of a task: `kind` says of what, `text` what happened."""

    at: str
    kind: str
    text: str


class TaskRecord(Struct, frozen=True, omit_defaults=True):
    """A task with its history: what its conversation did and what became of its row, in the order of time. `updates`
    are what tools wrote into it, by kind; `receipt` is what of it was verified, and on which files."""

    task: TaskView
    timeline: tuple[TaskLine, ...] = ()
    checklist: tuple[dict[str, object], ...] = ()
    updates: dict[str, list[object]] = {}
    receipt: WorkReceipt | None = None

    def artifacts(self) -> tuple[dict[str, object], ...]:
        """What it has kept, each with its name, kind and hash."""
        rows = (
            row for kept in self.updates.get("artifacts", ()) for row in (kept if isinstance(kept, list) else [kept])
        )
        return tuple(row for row in rows if isinstance(row, dict))


class TaskBoard(Struct, frozen=True, omit_defaults=True):
    """The newest tasks and how many there are by status. `workers` are those who take tasks now, in words; `notice`
    is what a person should know: that nobody works, or that the journal was damaged."""

    tasks: tuple[TaskView, ...]
    counts: dict[str, int] = {}
    workers: tuple[str, ...] = ()
    notice: str = ""


class AddTask(Op[TaskView], frozen=True, tag="add_task", omit_defaults=True):
    """Queue a task for the workspace of a session, as far as that may go. Raises TaskError."""

    session: str
    prompt: str
    auto_approve: bool = False
    on_death: OnDeath = "ask"


class CancelTask(Op[TaskView], frozen=True, tag="cancel_task"):
    """End a task by its id or the beginning of it. Raises TaskError."""

    task: str


class ResumeTask(Op[TaskView], frozen=True, tag="resume_task"):
    """Queue the next attempt of a task that is over without being completed. Raises TaskError."""

    task: str


class ListTasks(Query[TaskBoard], frozen=True, tag="list_tasks", omit_defaults=True):
    """The newest tasks. Raises TaskError where there can be none."""

    most: int = 20


class GetTask(Query[TaskRecord], frozen=True, tag="read_task"):
    """One task with its history. Raises TaskError."""

    task: str
