"""What an automation is, as its row keeps it."""

import msgspec
from msgspec import Struct

from codewhale.automations.recurrence import AutomationError, Recurrence, recurrence
from codewhale.journal.model import JournalDamaged, Schedule
from codewhale.lib.clock import rfc3339
from codewhale.lib.text import one_line, sanitise
from codewhale.protocol.automations import AutomationView
from codewhale.tasks.model import TaskSpec

AUTOMATION_KIND = "automation"
NAME_LIMIT, KEPT_RUNS = 80, 20


class KeptRun(Struct, frozen=True, omit_defaults=True):
    """A run that was queued: its task, the moment it was for, when it was queued, and what was missed before it."""

    task: str
    moment: float
    at: float
    missed: int = 0
    by: str = "clock"


class Automation(Struct, frozen=True, omit_defaults=True):
    """What a row holds. `rrule` with `zone` and `start` is when; `task` is what, with the rights that its maker had
    then. `waiting` counts moments that passed since the last run without one. `runs` are the last 20, newest first."""

    name: str
    rrule: str
    zone: str
    start: float
    task: TaskSpec
    updated: float
    paused: bool = False
    missed: int = 0
    waiting: int = 0
    runs: tuple[KeptRun, ...] = ()

    @property
    def when(self) -> Recurrence:
        return recurrence(self.rrule, self.zone, self.start)

    @property
    def row(self) -> dict[str, object]:
        data: dict[str, object] = msgspec.to_builtins(self)
        return data


def automation_of(schedule: Schedule) -> Automation:
    """Raises JournalDamaged."""
    try:
        made = msgspec.convert(schedule.data, Automation)
        _ = made.when
    except (msgspec.ValidationError, AutomationError) as error:
        raise JournalDamaged(f"the automation {schedule.id} is not what was written ({error})") from None
    return made


def checked_name(name: str) -> str:
    """A name as it can stand in a list. Raises AutomationError."""
    text = " ".join(name.split())
    if not text or len(text) > NAME_LIMIT or one_line(text, NAME_LIMIT) != text:
        better = one_line("".join(char for char in text if sanitise(char) == char), NAME_LIMIT).strip() or "nightly"
        raise AutomationError(
            f"`name`: one line of 1 to {NAME_LIMIT} characters, such as: nightly check of the links", "name", better
        )
    return text


def view_of(schedule: Schedule, now: float) -> AutomationView:
    """How an automation stands, by its row."""
    made = automation_of(schedule)
    last = made.runs[0].at if made.runs else None
    behind = last is not None and last > now + 60
    return AutomationView(
        id=schedule.id,
        name=made.name,
        prompt=made.task.prompt,
        rrule=made.rrule,
        timezone=made.zone,
        status="paused" if made.paused else "active",
        workspace=made.task.workspace,
        mode=made.task.mode.value,
        allow_shell=made.task.allow_shell,
        auto_approve=made.task.auto_approve,
        created_at=rfc3339(schedule.created),
        updated_at=rfc3339(made.updated),
        next_run_at="" if schedule.next_at is None else rfc3339(schedule.next_at),
        last_run_at="" if last is None else rfc3339(last),
        missed=made.missed,
        waiting=made.waiting,
        note=_BEHIND if behind else "",
    )


_BEHIND = (
    "The clock was set back behind its last run; no moment runs twice, so it goes on at next_run_at. To begin "
    "anew from now, update its rrule."
)
