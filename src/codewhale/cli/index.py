"""Build, refresh or inspect the code search index.

Without an option the index is brought up to date: changed files are read again.
"""

import argparse
import asyncio
import os
import sys
import time

from codewhale.cli.parser import add_workspace, workspace
from codewhale.cli.stdio import put, say, say_raw
from codewhale.lib.text import sanitise

_EVERY = 0.2
_ENDS = """exit codes:
  0 done   1 the index could not be built   2 wrong usage
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _ENDS
    add_workspace(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--status", action="store_true", help="show the state and change nothing")
    which.add_argument("--rebuild", action="store_true", help="rebuild from scratch")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    folder = workspace(args)

    from codewhale.cli.offline.index import index_build, index_status, warnings
    from codewhale.config import home_dir
    from codewhale.display.lines import object_line

    home = home_dir(os.environ)
    if args.status:
        told = asyncio.run(index_status(home, folder))
    else:
        bar = Bar(sys.stderr.isatty() and not args.json)
        try:
            told = asyncio.run(index_build(home, folder, rebuild=args.rebuild, progress=bar.show))
        finally:
            bar.clear()
    put(object_line(told) + "\n" if args.json else _text(told))
    for warning in warnings(told):
        say(f"codewhale index: {warning}")
    return 0


def _text(told: dict[str, object]) -> str:
    languages = told["languages"]
    assert isinstance(languages, dict)
    rows = [
        ("folder", told["root"]),
        ("database", told["db"]),
        ("state", told["state"]),
        ("files", told["files"]),
        ("chunks", told["chunks"]),
        ("symbols", told["symbols"]),
        ("bytes", told["bytes"]),
        ("languages", ", ".join(f"{name} {count}" for name, count in list(languages.items())[:8]) or None),
        ("branch", told["branch"]),
        ("built", told["built_at"]),
        ("skipped", ", ".join(f"{reason} {count}" for reason, count in _skipped(told)) or None),
    ]
    return "".join(sanitise(f"{name:<11}{value}") + "\n" for name, value in rows if value is not None)


def _skipped(told: dict[str, object]) -> list[tuple[str, int]]:
    skipped = told["skipped"]
    assert isinstance(skipped, dict)
    return list(skipped.items())


class Bar:
    """A progress bar on a terminal's standard error; nothing elsewhere."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._last = 0.0
        self._drawn = False

    def show(self, done: int, total: int) -> None:
        """Draw it, a few times a second."""
        now = time.monotonic()
        if not self._shown or not total or now - self._last < _EVERY:
            return
        self._last, self._drawn = now, True
        filled = 30 * done // total
        say_raw(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{total} files ")

    def clear(self) -> None:
        """Take it off the screen."""
        if self._drawn:
            say_raw("\r" + " " * 60 + "\r")
