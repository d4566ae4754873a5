"""Automations as data: durable tasks that begin by the clock."""

from msgspec import Struct

from codewhale.protocol.requests import Op, Query

MOST_AUTOMATIONS = 100  # of one listing


class AutomationRun(Struct, frozen=True, omit_defaults=True):
    """One run: the task that it queued and how that stands ("lost": its row is gone). `scheduled_for` is the moment it
    ran for, `missed` how many moments before that one passed with no run; `by` is clock, person or model."""

    task_id: str
    status: str
    scheduled_for: str
    created_at: str
    missed: int = 0
    by: str = "clock"
    started_at: str = ""
    ended_at: str = ""
    thread_id: str = ""
    error: str = ""


class AutomationView(Struct, frozen=True, omit_defaults=True):
    """An automation as it stands; times are RFC 3339, in UTC. `missed` counts the moments that passed with no run since
    it was made, `waiting` those of them since its last run. `note` is what a person should know of it."""

    id: str
    name: str
    prompt: str
    rrule: str
    timezone: str
    status: str
    workspace: str
    mode: str
    allow_shell: bool
    auto_approve: bool
    created_at: str
    updated_at: str
    next_run_at: str = ""
    last_run_at: str = ""
    missed: int = 0
    waiting: int = 0
    note: str = ""


class AutomationBoard(Struct, frozen=True, omit_defaults=True):
    """The newest automations; `notice` is what a person should know of all: that nobody works, so none runs."""

    automations: tuple[AutomationView, ...]
    notice: str = ""


class AutomationRecord(Struct, frozen=True, omit_defaults=True):
    """An automation with its last runs, newest first."""

    automation: AutomationView
    recent_runs: tuple[AutomationRun, ...] = ()
    notice: str = ""


class ListAutomations(Query[AutomationBoard], frozen=True, tag="list_automations", omit_defaults=True):
    """The newest automations. Raises JournalError where there can be none."""

    most: int = 50


class SwitchAutomation(Op[AutomationView], frozen=True, tag="switch_automation"):
    """Let an automation wait, or run again from now on. Raises AutomationError."""

    automation: str
    paused: bool
