"""Find commits by what their subjects say and which paths they changed, best first."""

import argparse
import asyncio
import os
import sys

from codewhale.cli.index import Bar
from codewhale.cli.parser import UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.lib.text import told_line

_MOST = 100
_ENDS = """exit codes:
  0 done   1 the index failed   2 wrong usage
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _ENDS
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what was changed, in words, names or paths")
    parser.add_argument("--max-results", type=int, default=10, metavar="N", help=f"default 10, at most {_MOST}")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace(parser)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    if not 1 <= args.max_results <= _MOST:
        raise UsageError(f"--max-results must be 1 to {_MOST}, not {args.max_results}")
    query = " ".join(args.query).strip()
    if not query:
        raise UsageError("QUERY must not be empty")
    folder = workspace(args)

    from codewhale.cli.offline.relations import commits_of
    from codewhale.config import home_dir
    from codewhale.display.lines import object_line

    bar = Bar(sys.stderr.isatty() and not args.json)
    try:
        found, notes = asyncio.run(commits_of(home_dir(os.environ), folder, query, args.max_results, bar.show))
    finally:
        bar.clear()
    hint = "" if notes else found.hint
    if args.json:
        told = {"query": query, "results": found.best, "notes": notes}
        put(object_line(told | ({"hint": hint} if hint else {})) + "\n")
        return 0
    for commit in found.best:
        put(told_line(f"{commit.score:7.2f}  {commit.sha[:10]}  {commit.at[:10]}  {commit.subject}") + "\n")
        more = f" and {commit.more_paths} more" if commit.more_paths else ""
        put(told_line(f"           {', '.join(commit.paths[:4])}{more}") + "\n")
    for note in notes:
        say(f"codewhale history: {note}")
    if not found.best:
        say(f"codewhale history: no match{'. ' if hint else ''}{hint}")
    return 0
