"""List, show, cancel and resume durable tasks, and print what they have kept.

TASK is a task's id or an unambiguous beginning of it. `codewhale work` runs those that are queued.
"""

import argparse
import os
from typing import Any

from codewhale.cli.exec import whole_number
from codewhale.cli.parser import ChoiceError
from codewhale.cli.stdio import put, put_bytes


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="list|show|cancel|resume|artifact", required=True)
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
    artifact = actions.add_parser("artifact", help="print what a task has kept under a name, as it is")
    artifact.add_argument("task", metavar="TASK")
    artifact.add_argument("name", metavar="NAME")


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
        if args.action == "artifact":
            put_bytes(_artifact(home, book.record(args.task), args.name))
        else:
            _do(book, args)
    except TaskError as error:
        raise ChoiceError(str(error)) from error
    finally:
        book.close()
    return 0


def _do(book: Any, args: argparse.Namespace) -> None:
    import asyncio

    from codewhale.app.receipts import with_receipt
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
    record = asyncio.run(with_receipt(book.record(args.task)))
    put((object_line({"schema_version": 1, **record_object(record)}) if args.json else record_text(record)) + "\n")


def _artifact(home: str, record: Any, name: str) -> bytes:
    """What a task has kept under a name. Raises ChoiceError where it has nothing of that name."""
    from codewhale.lib.text import one_line
    from codewhale.process.artifacts import ArtifactStore

    kept = {str(row.get("name")): str(row.get("sha256")) for row in record.artifacts()}
    if name not in kept:
        known = ", ".join(list(kept)[-5:]) or "nothing"
        raise ChoiceError(f"{record.task.id} has no artifact {one_line(name, 100)!r}; it has {known}")
    try:
        return ArtifactStore(os.path.join(home, "artifacts")).get(kept[name])
    except KeyError:
        raise ChoiceError(f"what {one_line(name, 100)} stood for is not kept any more") from None
