"""List, show, pause, resume, run and delete automations: durable tasks that begin by the clock.

AUTOMATION is an automation's id or an unambiguous beginning of it. `codewhale work` runs those that are due.
"""

import argparse
import os
from typing import TYPE_CHECKING, Any, NoReturn

from codewhale.cli.exec import whole_number
from codewhale.cli.parser import ChoiceError
from codewhale.cli.stdio import put
from codewhale.protocol.errors import SessionError

if TYPE_CHECKING:
    from codewhale.app.tasking import Tasking
    from codewhale.protocol.automations import AutomationRecord, AutomationView


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="list|show|pause|resume|run|delete", required=True)
    every = actions.add_parser("list", help="the newest automations, and whether anybody runs them")
    every.add_argument("--json", action="store_true", help="one JSON object")
    every.add_argument("--limit", metavar="N", type=whole_number, default=50, help="how many, 100 at most (default 50)")
    for name, what in (
        ("show", "one automation with its last runs"),
        ("pause", "let it wait until it is resumed"),
        ("resume", "let a paused one run again from now on"),
        ("run", "queue a task of it now, beside its schedule"),
        ("delete", "remove it; the tasks that it has queued stay"),
    ):
        action = actions.add_parser(name, help=what)
        action.add_argument("automation", metavar="AUTOMATION")
        action.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.app.tasking import Tasking
    from codewhale.config import home_dir, refuse_unusable
    from codewhale.display.lines import object_line
    from codewhale.lib.clock import SystemClock
    from codewhale.session.store import SessionStore
    from codewhale.tasks.model import TaskError, TaskSettings

    home = home_dir(os.environ)
    refuse_unusable(home)
    tasking = Tasking(home, SessionStore(home, SystemClock()), _no_engine, TaskSettings())
    try:
        said, text = _list(tasking, args.limit) if args.action == "list" else _one(tasking, args)
    except TaskError as error:
        raise ChoiceError(str(error)) from error
    finally:
        tasking.close()
    put((object_line({"schema_version": 1, **said}) if args.json else text) + "\n")
    return 0


def _no_engine() -> NoReturn:
    raise SessionError("no session is open here")


def _list(tasking: "Tasking", most: int) -> tuple[dict[str, Any], str]:
    import msgspec

    board = tasking.automations.board(most)
    rows = [_row(view) for view in board.automations] or ["There are no automations. Ask a model to make one."]
    return msgspec.to_builtins(board), "\n".join(filter(None, (*rows, board.notice)))


def _one(tasking: "Tasking", args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Do what is asked with one automation, and show it as it is then."""
    import asyncio

    import msgspec

    book = tasking.automations
    if args.action == "delete":
        name = book.discard(args.automation)
        return {"deleted": name}, f"{name} is deleted."
    if args.action in ("pause", "resume"):
        asyncio.run(tasking.switch(args.automation, args.action == "pause"))
    record = book.run(args.automation, "person") if args.action == "run" else book.record(args.automation)
    return msgspec.to_builtins(record), _record_text(record)


def _record_text(record: "AutomationRecord") -> str:
    from codewhale.lib.text import one_line

    view = record.automation
    rights = [f"{view.mode} mode", "" if view.allow_shell else "no programs", "asks for nothing" * view.auto_approve]
    facts = [
        ("prompt", view.prompt),
        ("folder", view.workspace),
        ("may", ", ".join(filter(None, rights))),
        ("missed", f"{view.missed} moments, {view.waiting} of them since its last run" if view.missed else ""),
        ("note", view.note),
    ]
    lines = [f"{label}: {one_line(text, 4000)}" for label, text in facts if text]
    for one in record.recent_runs:
        missed = f", {one.missed} missed before" if one.missed else ""
        lines.append(f"{_local(one.scheduled_for, view)}  {one.task_id} {one.status}, by {one.by}{missed}")
    return "\n".join(filter(None, (_row(view), *lines, record.notice)))


def _row(view: "AutomationView") -> str:
    from codewhale.lib.text import one_line

    following = f", next {_local(view.next_run_at, view)}" if view.next_run_at else ""
    return f"{view.id}  {view.status}: {one_line(view.name, 80)}; {view.rrule} in {view.timezone}{following}"


def _local(moment: str, view: "AutomationView") -> str:
    """A moment in the zone of its automation."""
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return f"{datetime.fromisoformat(moment).astimezone(ZoneInfo(view.timezone)):%a %Y-%m-%d %H:%M %Z}"
