"""`codewhale memory`: what is remembered, what is wrong with it, and how it comes into a repository."""

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from codewhale.cli.parser import ChoiceError, add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.lib.text import counted, sanitise, told_line

if TYPE_CHECKING:
    from codewhale.memory.doctor import MemoryDoctor
    from codewhale.memory.model import Fact
    from codewhale.memory.service import Memory

_WHAT = """List and check what you want remembered: facts, each a line of a file that
you can edit.

doctor says what is wrong with these files and with what is beside them (an older
home, the index, proposals, rules that name files that are gone). --fix repairs
what needs no decision of yours, and what it removes goes to the trash.
--take-over copies the facts of an older home, which doctor shows first, and
leaves that home as it is. promote prints a patch of one line for the nearest
AGENTS.md or CLAUDE.md; nothing is written: codewhale memory promote ID | git apply
"""
_ENDS = """exit codes:
  0 done; of doctor: no error remains   1 an error remains; of search: nothing
  was found   2 wrong usage
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description, parser.epilog = _WHAT, _ENDS
    actions = parser.add_subparsers(dest="action", metavar="list|search|doctor|path|promote", required=True)
    rows = actions.add_parser("list", help="the facts for everything and for this workspace")
    search = actions.add_parser("search", help="find facts by their words, the best first")
    search.add_argument("query", metavar="QUERY", nargs="+", help="words of the fact")
    doctor = actions.add_parser("doctor", help="say what is wrong with memory, errors first")
    doctor.add_argument("--fix", action="store_true", help="repair what needs no decision of yours")
    doctor.add_argument("--take-over", action="store_true", help="copy the facts of an older home")
    path = actions.add_parser("path", help="the files that the facts stand in")
    promote = actions.add_parser("promote", help="print a patch that adds a fact to AGENTS.md or CLAUDE.md")
    promote.add_argument("id", metavar="ID", help="the id of a fact, or its beginning")
    for action in (rows, search, doctor):
        action.add_argument("--json", action="store_true", help="as JSON")
    for action in (rows, search, doctor, path, promote):
        action.epilog = _ENDS
        add_workspace(action)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.app.memories import MemoryParts
    from codewhale.config import home_dir, refuse_unusable
    from codewhale.lib.clock import SystemClock
    from codewhale.memory.layers import MemoryRefused
    from codewhale.session.redaction import Redactor

    home, folder = home_dir(os.environ), workspace(args)
    refuse_unusable(home)
    hide = Redactor(os.environ).text
    parts = MemoryParts(home, SystemClock(), hide)
    try:
        if args.action == "doctor":
            return _doctor(parts.doctor(folder), args)
        return (
            _promote(parts.facts, folder, args, hide) if args.action == "promote" else _facts(parts.facts, folder, args)
        )
    except MemoryRefused as error:
        raise ChoiceError(str(error)) from error


def _promote(memory: "Memory", folder: str, args: argparse.Namespace, hide: Callable[[str], str]) -> int:
    from codewhale.memory.promote import answer, promote

    made = promote(memory.find(folder, args.id)[1], folder, hide)
    put(made.diff)
    for line in answer(made):
        say(f"codewhale memory: {line}")
    return 0


def _facts(memory: "Memory", folder: str, args: argparse.Namespace) -> int:
    from codewhale.display.lines import object_line

    if args.action == "path":
        put("".join(f"{told_line(path)}\n" for path in memory.paths(folder).values()))
        return 0
    searched = args.action == "search"
    rows = memory.search(folder, " ".join(args.query), 20) if searched else ()
    facts = tuple(row.fact for row in rows) if searched else memory.facts(folder)
    lines = [
        f"{fact.id:<8}  {fact.scope:<9}  {fact.created or '-':<20}  {fact.text}{_origin(fact)}\n" for fact in facts
    ]
    put(object_line(facts) + "\n" if args.json else sanitise("".join(lines)))
    if not facts:
        say(f"codewhale memory: {'nothing found' if searched else 'no facts yet'}")
    return 1 if searched and not facts else 0


def _origin(fact: "Fact") -> str:
    source = fact.source or ("foreign text" if fact.tainted else "")
    return f"  (from {source}{', not verified' if fact.tainted else ''})" if source else ""


def _doctor(doctor: "MemoryDoctor", args: argparse.Namespace) -> int:
    from codewhale.display.lines import object_line
    from codewhale.memory.doctor import fault_lines
    from codewhale.memory.originals import plan_lines

    planned = plan_lines(doctor.plan())
    taken = doctor.take_over() if args.take_over else 0
    repaired = doctor.repair() if args.fix else ()
    faults = doctor.examine()
    ok = all(fault.level != "error" for fault in faults)
    if args.json:
        put(
            object_line({"ok": ok, "plan": planned, "taken_over": taken, "repaired": repaired, "faults": faults}) + "\n"
        )
        return 0 if ok else 1
    for line in planned:
        put(f"plan   {line}\n")
    if args.take_over:
        put(f"taken over: {counted(taken, 'fact')}; the older home is as it was\n")
    put("".join(f"fixed  {fault.code:<15} {fault.text}\n" for fault in repaired))
    put("".join(f"{line}\n" for line in fault_lines(faults)))
    return 0 if ok else 1
