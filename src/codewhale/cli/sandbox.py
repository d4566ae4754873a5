"""Test the sandbox of this machine, or run a command in it."""

import argparse
import asyncio
import os

from codewhale.cli.parser import UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.lib.text import sanitise


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="check|run", required=True)
    check = actions.add_parser("check", help="which sandbox this machine has, tested; exit 1 if it does not work")
    check.add_argument("--json", action="store_true", help="one JSON object")
    command = actions.add_parser("run", help="run a command under a profile; exits with its exit code")
    command.add_argument("--profile", metavar="P", default="workspace-write", help="none, read-only, workspace-write")
    command.add_argument(
        "--allow",
        metavar="A",
        action="append",
        default=[],
        help="more than the profile allows: network, cache:FAMILY (npm, pip, cargo, go, ...), write:/absolute/folder",
    )
    add_workspace(command)
    command.add_argument("command", metavar="-- CMD...", nargs=argparse.REMAINDER, help="the command and its arguments")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    return _check(args.json) if args.action == "check" else _run(args)


def _run(args: argparse.Namespace) -> int:
    from codewhale.cli.offline.sandbox import configured, own_allowances, run_in_sandbox, wrong_order
    from codewhale.process.launch import Launch

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("run needs a command: codewhale sandbox run -- make test")
    problem = wrong_order(args.profile, args.allow)
    if problem:
        raise UsageError(problem)
    root = workspace(args)
    own = own_allowances(configured(root, os.environ), args.profile)
    launch = Launch(
        tuple(command),
        root,
        args.profile,
        allowances=(*args.allow, *own),
        workspace=root,
        attached=True,
    )
    try:
        return asyncio.run(run_in_sandbox(launch))
    except FileNotFoundError:
        say(f"codewhale sandbox: {command[0]}: no such program")
        return 127
    except PermissionError:
        say(f"codewhale sandbox: {command[0]}: cannot be run")
        return 126


def _check(as_json: bool) -> int:
    from codewhale.cli.offline.sandbox import check_sandbox, configured, told
    from codewhale.display.lines import object_line

    found = asyncio.run(check_sandbox())
    if as_json:
        put(object_line(found) + "\n")
        return 0 if found.ok else 1
    for one in found.tried:
        put(sanitise(f"{'uses' if one.name == found.mechanism else 'not '}  {one.name:<11} {one.detail}") + "\n")
    for attempt in found.attempts:
        detail = f": {attempt.detail}" if attempt.detail else ""
        put(sanitise(f"{'ok  ' if attempt.ok else 'FAIL'}  {attempt.profile:<16} {attempt.name}{detail}") + "\n")
    for limit in found.limits:
        put(sanitise(f"limit {limit}") + "\n")
    if found.available:
        put(sanitise(f"home  commands that run without asking can see: {', '.join(found.home) or 'nothing'}") + "\n")
    for line in told(configured(os.getcwd(), os.environ)):
        put(sanitise(f"set   {line}") + "\n")
    if found.fix:
        put(sanitise(f"better: {found.fix}") + "\n")
    within = ", with these limits" if found.limits else ""
    holds = (
        f"{found.mechanism} confines commands{within}" if found.ok else f"{found.mechanism} does NOT confine commands"
    )
    put(f"{holds if found.available else 'no sandbox: no command runs unless you allow it'}\n")
    return 0 if found.ok else 1
