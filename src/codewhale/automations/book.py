"""The book of automations: making, changing and running them, and what is due.

Each change of a row names the version that it changes, and queues its task in the same step: of several processes that
act upon one moment one alone does.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from codewhale.automations.model import (
    AUTOMATION_KIND,
    KEPT_RUNS,
    Automation,
    KeptRun,
    automation_of,
    checked_name,
    view_of,
)
from codewhale.automations.recurrence import AutomationError, recurrence
from codewhale.journal.model import JournalDamaged, JournalError, Run, RunJournal, Schedule
from codewhale.lib import ids
from codewhale.lib.clock import rfc3339
from codewhale.lib.text import one_line
from codewhale.protocol.automations import (
    MOST_AUTOMATIONS,
    AutomationBoard,
    AutomationRecord,
    AutomationRun,
    AutomationView,
)
from codewhale.tasks.book import TaskBook, checked_task
from codewhale.tasks.model import TaskSpec, new_task, new_task_id

MOST_KEPT = 1_000
FIRST = 3
_ID = re.compile(r"(?:auto_)?[0-9a-f]{1,8}")
_BUSY = ("queued", "running", "waiting")
_TRIES = 20


class Wanted(Struct, frozen=True, omit_defaults=True):
    """What is to become of an automation; None leaves it as it is."""

    name: str | None = None
    rrule: str | None = None
    timezone: str | None = None
    paused: bool | None = None
    task: TaskSpec | None = None


class AutomationBook:
    """The automations of a home, over the journal of its tasks. All of it may take a moment. Raises AutomationError,
    TaskError and JournalError."""

    def __init__(self, tasks: TaskBook) -> None:
        self._tasks = tasks

    # ------------------------------------------------------------------ what is asked

    def board(self, most: int = 50) -> AutomationBoard:
        """The newest automations."""
        journal = self._tasks.journal
        rows = journal.schedules.rows(AUTOMATION_KIND, max(1, min(most, MOST_AUTOMATIONS)))
        now = journal.now()
        views, broken = list[AutomationView](), list[str]()
        for row in rows:
            try:
                views.append(view_of(row, now))
            except JournalDamaged as error:
                broken.append(f"{one_line(str(error), 200)}. It does not run.")
        return AutomationBoard(tuple(views), " ".join((*broken, self._notice(journal))) if rows else "")

    def record(self, name: str) -> AutomationRecord:
        """One with its last runs."""
        journal = self._tasks.journal
        schedule = self._one(journal, name)
        runs = tuple(_run(kept, journal.runs.get(kept.task)) for kept in automation_of(schedule).runs)
        return AutomationRecord(view_of(schedule, journal.now()), runs, self._notice(journal))

    def task(self, name: str) -> TaskSpec:
        """What each of its runs is made with."""
        return automation_of(self._one(self._tasks.journal, name)).task

    def preview(self, name: str, rrule: str, zone: str) -> tuple[str, ...]:
        """The first moments from now of one that would be called so, in its zone."""
        checked_name(name)
        now = self._tasks.journal.now()
        moments = recurrence(rrule, zone, now).moments(now)
        local = (datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(zone)) for moment in islice(moments, FIRST))
        return tuple(f"{moment:%a %Y-%m-%d %H:%M %Z}" for moment in local)

    def _notice(self, journal: RunJournal) -> str:
        return self._tasks.notice(journal)

    # ------------------------------------------------------------------ what is done

    def create(self, name: str, rrule: str, zone: str, task: TaskSpec, paused: bool = False) -> AutomationView:
        """Make one of a task."""
        journal = self._tasks.journal
        now = journal.now()
        when = recurrence(rrule, zone, now)
        checked_task(task)
        made = Automation(checked_name(name), when.text, zone, now, task, now, paused)
        if len(journal.schedules.rows(AUTOMATION_KIND, MOST_KEPT)) >= MOST_KEPT:
            raise AutomationError(f"There are {MOST_KEPT} automations, the most there may be: delete one first.")
        next_at = None if paused else when.after(now)
        for _ in range(_TRIES):
            row = Schedule(ids.short_id("auto"), AUTOMATION_KIND, made.row, next_at)
            if (put := journal.schedules.put(row)) is not None:
                return view_of(put, now)
        raise JournalError("no id for an automation could be made; try again")

    def update(self, name: str, wanted: Wanted) -> AutomationView:
        """Change one. A new rule, a new zone and the end of a pause begin from now; what passed is not made up for."""

        def changed(made: Automation, now: float) -> Automation:
            task = wanted.task or made.task
            if not wanted.paused:  # what waits needs no folder
                checked_task(task)
            zone = made.zone if wanted.timezone is None else wanted.timezone
            anew = wanted.rrule is not None or wanted.timezone is not None
            start = now if anew else made.start
            when = recurrence(made.rrule if wanted.rrule is None else wanted.rrule, zone, start)
            return replace(
                made,
                name=made.name if wanted.name is None else checked_name(wanted.name),
                rrule=when.text,
                zone=zone,
                start=start,
                task=task,
                paused=made.paused if wanted.paused is None else wanted.paused,
            )

        anew = wanted.rrule is not None or wanted.timezone is not None or wanted.paused is not None
        return self._change(name, changed, anew)

    def _change(self, name: str, do: Callable[[Automation, float], Automation], anew: bool) -> AutomationView:
        journal = self._tasks.journal
        for _ in range(_TRIES):
            schedule, now = self._one(journal, name), journal.now()
            made = replace(do(automation_of(schedule), now), updated=now)
            next_at = schedule.next_at
            if made.paused:
                next_at = None
            elif anew:
                next_at = made.when.after(now)
            put = journal.schedules.put(replace(schedule, data=made.row, next_at=next_at))
            if put is not None:
                return view_of(put, now)
        raise JournalError("the automation was changed by others at the same time; try again")

    def delete(self, name: str) -> AutomationView:
        """Remove one; what it has queued stays."""
        journal = self._tasks.journal
        schedule = self._one(journal, name)
        view = view_of(schedule, journal.now())
        journal.schedules.drop(schedule.id)
        return view

    def discard(self, name: str) -> str:
        """Remove one, also where it cannot be read; its id."""
        journal = self._tasks.journal
        schedule = self._one(journal, name)
        journal.schedules.drop(schedule.id)
        return schedule.id

    def run(self, name: str, by: str) -> AutomationRecord:
        """Queue a task of it now, beside its schedule."""
        journal = self._tasks.journal
        for _ in range(_TRIES):
            schedule, now = self._one(journal, name), journal.now()
            made = automation_of(schedule)
            kept = KeptRun(new_task_id(journal), now, now, made.waiting, by)
            if self._fire(journal, schedule, replace(made, waiting=0), kept, schedule.next_at):
                return self.record(schedule.id)
        raise JournalError("the automation was changed by others at the same time; try again")

    def fire_due(self) -> tuple[str, ...]:
        """Queue what is due; the ids of the tasks. Of the moments that have passed one alone runs, and the run says how
        many did not. While the task of the last run is not over, nothing is queued beside it: that moment is missed."""
        if not self._tasks.exists:
            return ()
        journal = self._tasks.journal
        queued = [self._due(journal, schedule) for schedule in journal.schedules.due(AUTOMATION_KIND)]
        return tuple(task for task in queued if task)

    def _due(self, journal: RunJournal, schedule: Schedule) -> str:
        now = journal.now()
        try:
            made = automation_of(schedule)
        except JournalDamaged:
            return ""  # the listing says so
        if schedule.next_at is None or schedule.next_at > now:
            return ""
        count, last = made.when.between(schedule.next_at, now)
        next_at = made.when.after(max(last, now))
        if self._busy(journal, made):
            waits = replace(made, missed=made.missed + count, waiting=made.waiting + count)
            journal.schedules.put(replace(schedule, data=waits.row, next_at=next_at))
            return ""
        kept = KeptRun(new_task_id(journal), last, now, made.waiting + count - 1)
        fresh = replace(made, missed=made.missed + count - 1, waiting=0)
        return kept.task if self._fire(journal, schedule, fresh, kept, next_at) else ""

    def _fire(
        self, journal: RunJournal, schedule: Schedule, made: Automation, kept: KeptRun, next_at: float | None
    ) -> bool:
        after = replace(made, runs=(kept, *made.runs)[:KEPT_RUNS])
        run = new_task(kept.task, replace(made.task, by=f"automation {schedule.id}"))
        return journal.schedules.fire(replace(schedule, data=after.row, next_at=next_at), run) is not None

    def _busy(self, journal: RunJournal, made: Automation) -> bool:
        last = journal.runs.get(made.runs[0].task) if made.runs else None
        return last is not None and last.state in _BUSY

    # ------------------------------------------------------------------ names

    def resolve(self, name: str) -> str:
        """The id that a name or the beginning of one stands for."""
        return self._one(self._tasks.journal, name).id

    def _one(self, journal: RunJournal, name: str) -> Schedule:
        newest = journal.schedules.rows(AUTOMATION_KIND, 1)
        near = newest[0].id if newest else ""
        hint = f" For example: {near}." if near else " There are no automations yet."
        shown = one_line(name, 80)
        if not _ID.fullmatch(name):
            text = f"`automation_id`: {shown!r} is no id of an automation; one looks like auto_1a2b3c4d.{hint}"
            raise AutomationError(text, "automation_id", near)
        full = name if name.startswith("auto_") else f"auto_{name}"
        matches = journal.schedules.named(AUTOMATION_KIND, full)
        matches = (full,) if full in matches else matches
        if len(matches) > 1:
            text = f"`automation_id`: {shown!r} is the beginning of several: {', '.join(matches[:5])}. Say more of it."
            raise AutomationError(text, "automation_id", matches[0])
        found = journal.schedules.get(matches[0]) if matches else None
        if found is None:
            raise AutomationError(f"`automation_id`: there is no automation {shown!r}.{hint}", "automation_id", near)
        return found


def _run(kept: KeptRun, task: Run | None) -> AutomationRun:
    return AutomationRun(
        task_id=kept.task,
        status="lost" if task is None else task.state,
        scheduled_for=rfc3339(kept.moment),
        created_at=rfc3339(kept.at),
        missed=kept.missed,
        by=kept.by,
        started_at="" if task is None or task.began is None else rfc3339(task.began),
        ended_at="" if task is None or task.ended is None else rfc3339(task.ended),
        thread_id="" if task is None else str(task.data.get("session", "")),
        error="" if task is None else str(task.result.get("error", "")),
    )
