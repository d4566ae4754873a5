"""Find where a name is defined, used or called, what it calls, or what a file imports and who imports it.

A definition or an import proves a place; one that only shares the name is marked "?".
"""

import argparse
import asyncio
import os
import sys

from codewhale.cli.index import Bar
from codewhale.cli.parser import UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, say
from codewhale.lib.text import told_line

_ENDS = """exit codes:
  0 done   1 the index failed, or there is no such file   2 wrong usage
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "codewhale symbols [-h] [-w DIR] [--json] NAME [--refs|--callers|--callees]\n" + (
        "       codewhale symbols [-h] [-w DIR] [--json] --imports PATH | --importers PATH"
    )
    parser.epilog = _ENDS
    parser.add_argument("name", nargs="?", metavar="NAME", help="a symbol: resolve_key, Store.open, net::Client")
    which = parser.add_mutually_exclusive_group()
    for option, relation, text in (
        ("--refs", "references", "where the name is used"),
        ("--callers", "callers", "where it is called"),
        ("--callees", "callees", "what it calls"),
    ):
        which.add_argument(option, dest="relation", action="store_const", const=relation, help=text)
    which.add_argument("--imports", metavar="PATH", help="what a file imports")
    which.add_argument("--importers", metavar="PATH", help="who imports a file")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace(parser)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    path = args.imports if args.imports is not None else args.importers
    name = args.name if path is None else path
    if (args.name is None) == (path is None) or not name.strip():
        raise UsageError("give one NAME, or --imports PATH, or --importers PATH")
    relation = args.relation or "definitions"
    if path is not None:
        relation = "imports" if args.imports is not None else "importers"
    folder = workspace(args)

    from codewhale.cli.offline.relations import symbols_of
    from codewhale.config import home_dir
    from codewhale.display.lines import object_line

    bar = Bar(sys.stderr.isatty() and not args.json)
    try:
        found, notes = asyncio.run(symbols_of(home_dir(os.environ), folder, name, relation, bar.show))
    finally:
        bar.clear()
    hint = "" if notes else found.hint
    if args.json:
        told = {"name": name, "relation": relation, "total": found.total, "results": found.spots, "notes": notes}
        told |= {"did_you_mean": found.alike} if found.alike else {"hint": hint} if hint else {}
        put(object_line(told) + "\n")
        return 0
    for spot in found.spots:
        label = spot.name or spot.inside
        place = f"{' ' if spot.certain else '?'} {spot.path}:{spot.line}"
        put(told_line(f"{place}  {label}{'  ' if label else ''}{spot.text}  ({spot.why})") + "\n")
    for note in notes:
        say(f"codewhale symbols: {note}")
    if not found.spots:
        meant = f"; do you mean {', '.join(found.alike)}?" if found.alike else ""
        say(f"codewhale symbols: no match{meant}{'. ' if hint else ''}{hint}")
    elif found.total > len(found.spots):
        say(f"codewhale symbols: {found.total - len(found.spots)} more places not shown")
    return 0
