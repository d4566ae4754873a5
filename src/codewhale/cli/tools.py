"""List the tools, and print the exact bytes a model is sent for them."""

import argparse
import os

from codewhale.cli.parser import ChoiceError, add_workspace, workspace
from codewhale.cli.stdio import put, put_bytes, stdin_lines
from codewhale.lib.text import sanitise
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.modes import Mode


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="list|head|check", required=True)
    every = actions.add_parser("list", help="every tool name and its lifecycle")
    every.add_argument("--json", action="store_true", help="one JSON array, with schemas")
    every.add_argument("--mode", choices=[mode.value for mode in Mode], default=Mode.AGENT.value, help="default agent")
    head = actions.add_parser("head", help="the tools value of every request, byte for byte, no newline")
    head.add_argument("--dialect", metavar="D", default="", help="the wire format (default the provider's)")
    head.add_argument("--system", action="store_true", help="the system text instead")
    add_workspace(head)
    for action in (every, head):
        action.add_argument("--profile", metavar="P", default="", help="default, arcee, compact or intent")
        action.add_argument("--provider", metavar="P", default="", help="as sent to this provider")
        action.add_argument("--model", metavar="M", default="", help="as sent to this model")
    check = actions.add_parser("check", help="what would happen to calls read from stdin, one JSON object a line")
    check.add_argument("--schemas", metavar="FILE", help="judge against the functions in FILE, a JSON array")
    check.add_argument("--text-channel", action="store_true", help="as for a model that writes its calls as text")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    if args.action == "check":
        return _check(args)
    return _list(args) if args.action == "list" else _head(args)


def _list(args: argparse.Namespace) -> int:
    from codewhale.cli.offline.catalog import View, tools_list
    from codewhale.display.lines import object_line

    try:
        rows = tools_list(Mode(args.mode), View(args.profile, args.provider, args.model))
    except ConfigError as error:
        raise ChoiceError(str(error)) from error
    if args.json:
        put(object_line(rows) + "\n")
        return 0
    for row in rows:
        same = "" if row["canonical"] == row["name"] else f"  = {row['canonical']}"
        shown = f"{row['bytes']:>6} " if row["in_head"] else " " * 7
        line = f"{row['name']:<26}{row['state']:<12}{shown}{row['approval']:<7}{' '.join(row['effects'])}{same}"
        put(sanitise(line.rstrip()) + "\n")
    return 0


def _head(args: argparse.Namespace) -> int:
    from codewhale.cli.offline.catalog import View, system_head, tools_head
    from codewhale.config import home_dir

    folder = workspace(args)
    try:
        view = View(args.profile, args.provider, args.model)
        text = system_head(home_dir(os.environ), folder, view) if args.system else tools_head(args.dialect, view)
    except ConfigError as error:
        raise ChoiceError(f"--dialect {args.dialect}: {error}" if args.dialect else str(error)) from error
    put_bytes(text.encode())
    return 0


def _check(args: argparse.Namespace) -> int:
    from codewhale.cli.offline.check import Checker, answers
    from codewhale.display.lines import object_line

    functions = None
    if args.schemas:
        try:
            with open(args.schemas, "rb") as file:
                functions = file.read()
        except OSError as error:
            raise ChoiceError(f"--schemas {args.schemas}: {error.strerror}") from error
    try:
        checker = Checker(functions, args.text_channel)
    except ConfigError as error:
        raise ChoiceError(str(error)) from error
    good = True
    for answer, readable in answers(stdin_lines(), checker):
        good = good and readable
        put(object_line(answer) + "\n")
    return 0 if good else 1
