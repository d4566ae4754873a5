"""Check folders of skills against the open Agent Skills standard, to the letter.

A DIR without a SKILL.md of its own stands for all skills beneath it.
"""

import argparse
import os

from codewhale.cli.parser import UsageError
from codewhale.cli.stdio import put
from codewhale.lib.text import told_line

_ENDS = """exit codes:
  0 all are valid   1 one is not   2 wrong usage, or no such folder
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="check", required=True)
    check = actions.add_parser("check", help="say what is wrong with skills, a line a fault")
    check.add_argument("dir", metavar="DIR", nargs="+", help="the folder of a skill, or one that holds several")
    check.add_argument("--json", action="store_true", help="one JSON list")
    check.epilog = parser.epilog = _ENDS


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    missing = next((path for path in args.dir if not os.path.isdir(path)), None)
    if missing is not None:
        raise UsageError(f"{told_line(missing)} is no folder")

    from codewhale.display.lines import object_line
    from codewhale.skills.validate import check

    checked = [one for path in args.dir for one in check(os.path.normpath(path))]
    if args.json:
        rows = [{"path": one.path, "valid": one.valid, "faults": one.faults, "notes": one.notes} for one in checked]
        put(object_line(rows) + "\n")
    else:
        for one in checked:
            put("".join(f"{one.path}: {fault}\n" for fault in one.faults) or f"{one.path}: valid\n")
            put("".join(f"{one.path}: note: {told_line(note)}\n" for note in one.notes))
    return 0 if all(one.valid for one in checked) else 1
