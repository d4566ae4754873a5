"""The argument parser all sub-commands share: one clear line for a mistake, exit 2, no abbreviations."""

import argparse
import re
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
        say(f"{self.prog}: {message}{self._near(message)}; try: {self.prog} --help")
        raise SystemExit(2)

    def _near(self, message: str) -> str:
        """What was likely meant by a choice or an option that there is not."""
        import difflib

        if choice := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            near = difflib.get_close_matches(choice[1], re.findall(r"[\w.-]+", choice[2]), n=1)
        elif option := re.search(r"unrecognized arguments: (--[\w-]+)", message):
            near = difflib.get_close_matches(option[1], self._option_string_actions, n=1)
        else:
            return ""
        return f"; did you mean {near[0]}?" if near else ""

    def _print_message(self, message: str, file: Any = None) -> None:
        from codewhale.cli.stdio import put

        if message:
            put(message)


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """The `-w DIR` option."""
    parser.add_argument("-w", "--workspace", metavar="DIR", default=".", help="the folder to work in (default: this)")


def add_folders(parser: argparse.ArgumentParser) -> None:
    """The `--add-dir` option."""
    what = "a folder beside the workspace that may be read and changed too (repeatable)"
    parser.add_argument("--add-dir", metavar="FOLDER", action="append", help=what)


def add_worktree(parser: argparse.ArgumentParser) -> None:
    """The `--worktree [NAME]` option."""
    what = "work in a git checkout of its own, on a branch of its own; removed at the end unless it has changes"
    parser.add_argument("--worktree", metavar="NAME", nargs="?", const="", help=what)


def add_api_key(parser: argparse.ArgumentParser) -> None:
    """The `--api-key` option."""
    parser.add_argument(
        "--api-key",
        metavar="KEY",
        default="",
        help="the key for this run; other users of this machine may see it: prefer codewhale login",
    )
