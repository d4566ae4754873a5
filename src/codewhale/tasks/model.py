"""What a task is, as its row keeps it, and what is wrong with one."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from codewhale.journal.model import JournalDamaged, NewRun, Run, RunJournal
from codewhale.lib import ids
from codewhale.lib.clock import rfc3339
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import Limits
from codewhale.protocol.scopes import Scope
from codewhale.protocol.tasks import TASK_KIND, OnDeath, TaskView

PROMPT_LIMIT = 50_000
DEFAULT_WORKERS, MOST_WORKERS = 2, 8
LEASE_SECONDS = 15.0


class TaskError(CodeWhaleError):
    """What was asked of a task cannot be: `field` is the argument at fault, `task` one that could be meant."""

    def __init__(self, text: str, field: str = "", task: str = "") -> None:
        super().__init__(text)
        self.field = field
        self.task = task


class TaskSpec(Struct, frozen=True, omit_defaults=True):
    """What a task was made with. Its rights are those that its creator had then: `mode`, `scope`, `folders` and
    `limits` bound every attempt. `creator` is the session of a model that made it: where that may less by now, the task
    may no more. `auto_approve` and `on_death` are what a person allowed. `session` is its conversation so far,
    `left` what the former attempt had begun and not ended."""

    prompt: str
    workspace: str
    mode: Mode = Mode.AGENT
    provider: str = ""
    model: str = ""
    effort: str = ""
    allow_shell: bool = True
    auto_approve: bool = False
    on_death: OnDeath = "ask"
    folders: tuple[str, ...] = ()
    limits: Limits = Limits()
    scope: Scope | None = None
    creator: str = ""
    by: str = "person"
    session: str = ""
    left: tuple[str, ...] = ()


class TaskSettings(Struct, frozen=True):
    """The `[tasks]` table. `workers` is how many tasks one process works at, `lease_seconds` how long a task stays its
    own without a sign of life."""

    workers: Annotated[int, Meta(ge=1, le=MOST_WORKERS)] = DEFAULT_WORKERS
    lease_seconds: Annotated[float, Meta(ge=1, le=3600)] = LEASE_SECONDS


def new_task_id(journal: RunJournal) -> str:
    """An id that no task has: eight digits come twice among some ten thousand."""
    while journal.runs.get(task := ids.short_id("task")) is not None:
        pass
    return task


def new_task(task: str, spec: TaskSpec) -> NewRun:
    return NewRun(task, TASK_KIND, msgspec.to_builtins(spec))


def spec_of(run: Run) -> TaskSpec:
    """Raises JournalDamaged."""
    try:
        return msgspec.convert(run.data, TaskSpec)
    except msgspec.ValidationError as error:
        raise JournalDamaged(f"the task {run.id} is not what was written ({error})") from None


def view_of(run: Run) -> TaskView:
    """How a task stands, by its row."""
    spec, result = spec_of(run), run.result
    unfinished = result.get("unfinished")
    began = run.began
    lasted = None if began is None or run.ended is None else max(0, int((run.ended - began) * 1000))
    return TaskView(
        id=run.id,
        status=run.state,
        prompt=spec.prompt,
        workspace=spec.workspace,
        mode=spec.mode.value,
        model=spec.model,
        provider=spec.provider,
        created_at=rfc3339(run.created),
        started_at="" if began is None else rfc3339(began),
        ended_at="" if run.ended is None else rfc3339(run.ended),
        duration_ms=lasted,
        attempt=run.attempt,
        session=spec.session,
        worker=run.owner,
        answer=str(result.get("answer", "")),
        error=str(result.get("error", "")),
        unfinished=tuple(map(str, unfinished)) if isinstance(unfinished, list) else (),
        allow_shell=spec.allow_shell,
        auto_approve=spec.auto_approve,
        on_death=spec.on_death,
        creator=spec.creator,
        by=spec.by,
        stopping=run.stop,
    )
