"""List, show, cancel and resume durable tasks.

TASK is a task's id or an unambiguous beginning of it. `codewhale work` runs those that are queued.
"""

import argparse
import os
from typing import Any

from codewhale.cli.exec import whole_number
from codewhale.cli.parser import ChoiceError
from codewhale.cli.stdio import put


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="list|show|cancel|resume", required=True)
    every = actions.add_parser("list", help="the newest tasks, and who works")
    every.add_argument("--json", action="store_true", help="one JSON object")
    every.add_argument("--limit", metavar="N", type=whole_number, default=20, help="how many, 100 at most (default 20)")
    for name, what in (
        ("show", "one task with its history"),
        ("cancel", "end a task"),
        ("resume", "queue the next attempt of a task that is interrupted, failed or cancelled"),
    ):
        action = actions.add_parser(name, help=what)
        action.add_argument("task", metavar="TASK")
        action.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.config import home_dir, refuse_unusable
    from codewhale.lib.clock import SystemClock
    from codewhale.session.store import SessionStore
    from codewhale.tasks.book import TaskBook
    from codewhale.tasks.model import TaskError

    home = home_dir(os.environ)
    refuse_unusable(home)
    book = TaskBook(home, SessionStore(home, SystemClock()))
    try:
        _do(book, args)
    except TaskError as error:
        raise ChoiceError(str(error)) from error
    finally:
        book.close()
    return 0


def _do(book: Any, args: argparse.Namespace) -> None:
    from codewhale.display.lines import object_line
    from codewhale.tasks.shown import board_text, record_object, record_text, task_object

    if args.action == "list":
        board = book.board(args.limit)
        rows = {"tasks": [task_object(view) for view in board.tasks], "counts": board.counts}
        said = {"schema_version": 1, **rows, "workers": board.workers, "notice": board.notice}
        put((object_line(said) if args.json else board_text(board)) + "\n")
        return
    if args.action == "cancel":
        book.cancel(args.task)
    elif args.action == "resume":
        book.resume(args.task)
    record = book.record(args.task)
    put((object_line({"schema_version": 1, **record_object(record)}) if args.json else record_text(record)) + "\n")
