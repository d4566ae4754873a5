"""Find code by what it does: the best files of a folder with line, snippet and reasons.

With --batch, queries are read from stdin, one JSON object a line, and answered in their order.
"""

import argparse
import asyncio
import os
import sys
from typing import Any

from codewhale.cli.index import Bar
from codewhale.cli.parser import ChoiceError, UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, say, stdin_lines
from codewhale.protocol.errors import CodeWhaleError

_MOST = 100
_ENDS = """--batch reads {"id","query"} and prints {"id","results":[{"path","line","end_line","score"}]}; the index is
built or refreshed first, and with --no-wait answers come from the index as it is, and say so.

exit codes:
  0 done   1 the index failed, or a line of a batch could not be read   2 wrong usage
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ENDS
    parser.add_argument("query", nargs="*", metavar="QUERY", help="what the code does, or a name")
    parser.add_argument("--batch", action="store_true", help="queries from stdin")
    parser.add_argument("--no-wait", action="store_true", help="answer before the index is up to date")
    parser.add_argument("--max-results", type=int, default=10, metavar="N", help=f"default 10, at most {_MOST}")
    parser.add_argument("--path-glob", default="", metavar="G", help="only paths that match")
    parser.add_argument("--lang", default="", metavar="L", help="only this language")
    parser.add_argument("--kind", default="", metavar="K", help="only files that define one: fn, class, struct ...")
    parser.add_argument("--json", action="store_true", help="the tool's result, unchanged")
    add_workspace(parser)


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    if not 1 <= args.max_results <= _MOST:
        raise UsageError(f"--max-results must be 1 to {_MOST}, not {args.max_results}")
    query = " ".join(args.query).strip()
    if args.batch == bool(args.query) or (args.query and not query):
        raise UsageError("give one QUERY that is not empty, or --batch")
    folder = workspace(args)

    from codewhale.cli.offline.search import Asked, Searcher
    from codewhale.config import home_dir

    asked = Asked(args.max_results, args.path_glob, args.lang, args.kind, args.no_wait)
    try:
        searcher = Searcher(home_dir(os.environ), folder, asked)
    except CodeWhaleError as error:
        raise ChoiceError(str(error)) from error
    return asyncio.run(_batch(searcher) if args.batch else _one(searcher, query, args.json))


async def _one(searcher: Any, query: str, as_json: bool) -> int:
    bar = Bar(sys.stderr.isatty() and not as_json)
    try:
        if as_json:
            put(await searcher.told(query, bar.show) + "\n")
            return 0
        text, notes = await searcher.listed(query, bar.show)
    finally:
        bar.clear()
        await searcher.aclose()
    put(text + "\n")
    for note in notes:
        say(f"codewhale search: {note}")
    return 0


async def _batch(searcher: Any) -> int:
    from codewhale.cli.offline.search import refused
    from codewhale.display.lines import object_line

    good = True
    if searcher.is_built_elsewhere():
        say("codewhale search: another process is building the index of this folder; waiting for it")
    try:
        for number, line in enumerate(stdin_lines(), 1):
            try:
                found = await searcher.line(line)
            except ValueError as error:
                found, good = refused(number, error), False
            put(object_line(found) + "\n")
    finally:
        await searcher.aclose()
    return 0 if good else 1
