"""The argument parser all sub-commands share: one clear line for a mistake, exit 2, no abbreviations."""

import argparse
import os
from typing import Any, NoReturn

from codewhale.cli.stdio import say
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError


class UsageError(Exception):
    """The command line makes no sense; the text says why."""


class ChoiceError(CodeWhaleError):
    """The command line names something that is not there; ends like any wrong usage."""


class Parser(argparse.ArgumentParser):
    """ArgumentParser with our manners."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """One line and a hint on stderr, exit 2."""
        say(f"{self.prog}: {message}; try: {self.prog} --help")
        raise SystemExit(2)

    def _print_message(self, message: str, file: Any = None) -> None:
        from codewhale.cli.stdio import put

        if message:
            put(message)


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """The `-w DIR` option."""
    parser.add_argument("-w", "--workspace", metavar="DIR", default=".", help="the folder to work in (default: this)")


def add_api_key(parser: argparse.ArgumentParser) -> None:
    """The `--api-key` option."""
    parser.add_argument(
        "--api-key",
        metavar="KEY",
        default="",
        help="the key for this run; other users of this machine may see it: prefer codewhale login",
    )


def workspace(args: argparse.Namespace) -> str:
    """The absolute real path that -w names. Raises UsageError when it is no folder that can be read."""
    given = one_line(args.workspace)
    if not args.workspace:
        raise UsageError("-w needs the path of a folder; it is empty")
    try:
        path: str = os.path.realpath(args.workspace, strict=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"-w {given}: {reason}") from error
    if not os.path.isdir(path):
        raise UsageError(f"-w {given}: not a folder")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"-w {given}: this folder cannot be read")
    return path
