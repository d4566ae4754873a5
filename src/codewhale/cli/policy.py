"""Show what the permissions decide about a command, without running it."""

import argparse
import os
import shlex
from typing import TYPE_CHECKING

from codewhale.cli.parser import UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, stdin_lines
from codewhale.lib.text import sanitise
from codewhale.protocol.modes import Approval, Mode

if TYPE_CHECKING:
    from codewhale.cli.offline.policy import PolicyCheck

EXITS = {"allow": 0, "deny": 3, "ask": 4}
_ENDS = """exit codes:
  0 allow   3 deny   4 ask   2 wrong usage   with --batch: 0, or 1 if a line of stdin could not be read

example:
  codewhale policy check 'git log --oneline | head'
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="check", required=True)
    check = actions.add_parser("check", help="what the permissions decide about a command", epilog=_ENDS)
    check.add_argument("--mode", choices=[mode.value for mode in Mode], default=Mode.AGENT.value, help="default: agent")
    approval = [approval.value for approval in Approval]
    check.add_argument("--approval", choices=approval, default="suggest", help="what happens to calls no rule decides")
    check.add_argument("--rules", metavar="FILE", default="", help="also use the rules in FILE (like permissions.toml)")
    check.add_argument("--no-user-rules", action="store_true", help="ignore the rules of permissions.toml")
    check.add_argument("--json", action="store_true", help="one JSON object")
    check.add_argument("--batch", action="store_true", help='check each line of stdin, {"id","cmd"}')
    add_workspace(check)
    check.add_argument("command", metavar="CMD", nargs="*", help="the command line, as one word; several are quoted")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    if args.batch == bool(args.command):
        raise UsageError("give one command line, or --batch and lines on stdin")

    from codewhale.cli.offline.policy import CheckOptions, PolicyCheck

    rules, mode, approval = (args.rules, not args.no_user_rules), Mode(args.mode), Approval(args.approval)
    options = CheckOptions(workspace(args), mode, *rules, approval)
    check = PolicyCheck(options, os.environ)
    return _batch(check) if args.batch else _one(args, check)


def _one(args: argparse.Namespace, check: "PolicyCheck") -> int:
    from codewhale.cli.offline.policy import told
    from codewhale.display.lines import object_line

    command = args.command[0] if len(args.command) == 1 else shlex.join(args.command)
    decision = check.judge(command)
    if args.json:
        put(object_line({"cmd": command, **told(decision)}) + "\n")
    else:
        put(sanitise(f"{decision.verdict}  {decision.rule}  {decision.reason}") + "\n")
        put(f"sandbox: {decision.sandbox}\n")
    return EXITS[decision.verdict]


def _batch(check: "PolicyCheck") -> int:
    from codewhale.cli.offline.policy import checked
    from codewhale.display.lines import object_line

    good = True
    for answer, readable in checked(stdin_lines(), check):
        good = good and readable
        put(object_line(answer) + "\n")
    return 0 if good else 1
