"""List, show, rename, fork, export, replay, import and remove sessions.

ID is a session's id, a unique prefix of it, or latest.
"""

import argparse
import os

from codewhale.cli.parser import ChoiceError, UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, put_bytes, say
from codewhale.lib.text import one_line


def build(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="list|show|rename|fork|export|rm|replay|import", required=True
    )
    every = actions.add_parser("list", help="the sessions of this folder, newest first")
    every.add_argument("--json", action="store_true", help="one JSON array")
    every.add_argument("--all", action="store_true", help="sessions of every folder")
    every.add_argument(
        "--children", action="store_true", help="also sub-agents, below the session they work for, and tasks"
    )
    add_workspace(every)
    show = actions.add_parser("show", help="print a session")
    show.add_argument("id", metavar="ID")
    what = show.add_mutually_exclusive_group()
    what.add_argument("--events", action="store_true", help="every event, one JSON object a line")
    what.add_argument("--messages", action="store_true", help="the conversation, one JSON object a line")
    what.add_argument("--request", metavar="N", help="the exact body of model request N, counted from 1")
    rename = actions.add_parser("rename", help="give a session a title (inside an open session: /rename)")
    rename.add_argument("id", metavar="ID")
    rename.add_argument("title", metavar="TITLE")
    fork = actions.add_parser("fork", help="copy a session and print the id of the copy")
    fork.add_argument("id", metavar="ID")
    export = actions.add_parser("export", help="print a session as a document, or write it to a file")
    export.add_argument("id", metavar="ID")
    export.add_argument("--format", metavar="md|json|html", default="", help="default: from the file's name, else md")
    export.add_argument("-o", "--output", metavar="FILE", default="", help="write to this file")
    export.add_argument("--force", action="store_true", help="replace the file if it exists")
    rm = actions.add_parser("rm", help="remove sessions; an open one is kept")
    rm.add_argument("ids", metavar="ID", nargs="+")
    replay = actions.add_parser("replay", help="parse every call of a session again without running it")
    replay.add_argument("id", metavar="ID")
    replay.add_argument("--run-reads", action="store_true", help="run what only reads, in a copy of the workspace")
    replay.add_argument("--json", action="store_true", help="one JSON object a call")
    import_ = actions.add_parser("import", help="create a session from another program's session file")
    import_.add_argument("file", metavar="FILE")
    import_.add_argument("--json", action="store_true", help="what was imported, one JSON object")
    add_workspace(import_)


def run(args: argparse.Namespace) -> int:
    from codewhale.config import home_dir, refuse_unusable

    home = home_dir(os.environ)
    refuse_unusable(home)
    match args.action:
        case "list":
            return _list(home, args)
        case "show":
            return _show(home, args)
        case "rm":
            return _remove(home, args.ids)
        case "rename" | "fork" | "export":
            return _changed(home, args)
        case "replay":
            from codewhale.cli.replay import replay_session

            return replay_session(home, _resolve(home, args.id), args.run_reads, args.json)
        case _:
            from codewhale.cli.replay import import_file

            return import_file(home, args.file, workspace(args), args.json)


def _list(home: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.stored_sessions import summaries

    rows = summaries(home, "" if args.all else workspace(args), owned=args.children)
    if args.json:
        from codewhale.display.lines import object_line

        put(object_line(rows) + "\n")
        return 0
    if not rows:
        put("no sessions yet\n" if args.all else "no sessions of this folder; --all lists every one\n")
        return 0
    for row in rows:
        where = f"  {one_line(row.workspace)}" if args.all else ""
        work = " ".join(
            filter(None, (row.kind, row.name, row.role and f"({row.role})", row.owner and f"of {row.owner}"))
        )
        mark = "".join(f"  [{one_line(one)}]" for one in (row.state, work) if one not in ("", "idle"))
        line = f"{row.id}  {_minute(row.updated)}  {row.turns:>3} turns{mark}{where}  {one_line(row.title)}"
        put(f"{'  ' if row.owner else ''}{line}\n")
    return 0


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


def _resolve(home: str, name: str) -> str:
    from codewhale.cli.offline.stored_sessions import resolve
    from codewhale.protocol.errors import SessionError

    try:
        return resolve(home, name)
    except SessionError as error:
        raise ChoiceError(str(error)) from error


def _show(home: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.stored_sessions import envelopes, messages
    from codewhale.display.lines import envelope_line, object_line, read_aloud

    number = _number(args.request)
    session = _resolve(home, args.id)
    if number:
        return _request(home, session, number)
    events = envelopes(home, session)
    if args.events:
        for envelope in events:
            put(envelope_line(envelope) + "\n")
        return 0
    if args.messages:
        for message in messages(envelope.event for envelope in events):
            put(object_line(message) + "\n")
        return 0
    import asyncio

    from codewhale.app.receipts import receipt_now
    from codewhale.session.receipts import receipt_text

    log = [envelope.event for envelope in events]
    put("".join(read_aloud(event) for event in log) + receipt_text(asyncio.run(receipt_now(log))))
    return 0


def _changed(home: str, args: argparse.Namespace) -> int:
    """What makes something of a session: a title, a copy, a document."""
    from codewhale.cli.offline import sessions
    from codewhale.protocol.errors import SessionBusyError, SessionError

    session = _resolve(home, args.id)
    try:
        if args.action == "rename":
            sessions.rename(home, session, args.title)
        elif args.action == "fork":
            put(sessions.fork(home, session) + "\n")
        else:
            data = sessions.export(home, session, (args.output, args.format, args.force), os.environ)
            if args.output:
                say(f"codewhale: exported to {one_line(args.output, 500)}")
            else:
                put_bytes(data)
    except SessionBusyError as error:
        say(f"codewhale: {error}")
        return 1
    except SessionError as error:
        raise ChoiceError(str(error)) from error
    return 0


def _number(text: str | None) -> int:
    if text is None:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) == 0:
        raise UsageError(f"--request {text!r}: not a whole number above 0")
    return int(text)


def _request(home: str, session: str, number: int) -> int:
    from codewhale.cli.offline.stored_sessions import request_body

    body = request_body(home, session, number)
    if body is None:
        raise ChoiceError(f"session {session} has no model request {number}")
    put_bytes(body)
    return 0


def _remove(home: str, names: list[str]) -> int:
    from codewhale.cli.offline.stored_sessions import remove
    from codewhale.protocol.errors import SessionBusyError

    try:
        remove(home, [_resolve(home, name) for name in names])
    except SessionBusyError as error:
        say(f"codewhale: {error} Nothing was removed.")
        return 1
    return 0
