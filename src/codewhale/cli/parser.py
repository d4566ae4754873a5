"""The argument parser all sub-commands share: one clear line for a mistake, exit 2, no abbreviations."""

import argparse
from typing import Any, NoReturn

from codewhale.cli.stdio import say
from codewhale.cli.usage import ChoiceError, UsageError, workspace

__all__ = ["ChoiceError", "Parser", "UsageError", "add_api_key", "add_workspace", "workspace"]


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
