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

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The arguments; `words` are what they were read from."""
        parsed = super().parse_args(args, namespace)
        parsed.words = args
        return parsed

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
    parser.add_argument("-w", "--workspace", metavar="DIR", default=".", help="where to work (default: this folder)")


def add_session(parser: argparse.ArgumentParser) -> None:
    """Where a session works, with what model and rights, and which one it is: see usage.opening."""
    from codewhale.protocol.modes import Approval, Mode

    add_workspace(parser)
    what = "another folder that may be read and changed (repeatable)"
    parser.add_argument("--add-dir", metavar="FOLDER", action="append", help=what)
    what = "work in a git checkout of its own, on a branch of its own; removed at the end unless it has changes"
    what += "; NAME stands before the PROMPT of exec: the last word is the PROMPT"
    parser.add_argument("--worktree", metavar="NAME", nargs="?", const="", help=what)
    parser.add_argument("--provider", metavar="P", default="", help="the configured provider to use")
    parser.add_argument("--model", metavar="M", default="", help="the model to use")
    parser.add_argument("--mode", choices=[mode.value for mode in Mode], help="plan is read-only; default agent")
    approval = [approval.value for approval in Approval]
    parser.add_argument(
        "--approval", choices=approval, help="calls no rule decides: ask, ask outside the sandbox, run or deny"
    )
    earlier = parser.add_argument_group("sessions").add_mutually_exclusive_group()
    earlier.add_argument("--resume", metavar="ID", help="resume a session: its id, the start of it, or latest")
    earlier.add_argument(
        "--continue", dest="latest", action="store_true", help="resume the latest session of this folder"
    )
    earlier.add_argument("--fork", metavar="ID", help="continue in a copy of a session: its id or latest")


def add_api_key(parser: argparse.ArgumentParser) -> None:
    """The `--api-key` option."""
    parser.add_argument(
        "--api-key",
        metavar="KEY",
        default="",
        help="the key for this run; other users of this machine may see it: prefer codewhale login",
    )
