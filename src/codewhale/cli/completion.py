"""Print the completion script of a shell.

bash:  eval "$(codewhale completion bash)"      in ~/.bashrc
zsh:   eval "$(codewhale completion zsh)"       in ~/.zshrc, after compinit
fish:  codewhale completion fish | source       in ~/.config/fish/config.fish
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codewhale.cli.parser import Parser
from codewhale.cli.stdio import put
from codewhale.display.recent import recent
from codewhale.lib.text import one_line
from codewhale.models.names import model_names, provider_names

MOST = 100
Choices = Iterable[tuple[str, str]]

# The scripts stand beside in shells/: each asks the program itself, so that it never grows old.
SHELLS = ("bash", "zsh", "fish")


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = __doc__
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(args: argparse.Namespace) -> int:
    """Print it; returns the exit code."""
    put(Path(__file__).with_name("shells").joinpath(f"codewhale.{args.shell}").read_text())
    return 0


class SubCommands(Struct, frozen=True):
    """The sub-commands with what each does, and `build(name, parser)`, which declares the arguments of one (False where
    there is none)."""

    summaries: Mapping[str, str]
    build: Callable[[str, Parser], bool]


def complete(words: Sequence[str], commands: SubCommands) -> int:
    """Print what the last of the words behind `codewhale` may become, a line each with what it is."""
    *before, typed = words or [""]
    rows = {value: about for value, about in candidates(before, typed, commands) if value.startswith(typed)}
    plain = [(value, one_line(about, 80)) for value, about in rows.items() if value.isprintable() and " " not in value]
    put("".join(f"{value}\t{about}\n" for value, about in plain[:MOST]))
    return 0


def candidates(before: Sequence[str], typed: str, commands: SubCommands) -> Choices:
    """What may stand behind the words of a command line, with what each is."""
    parser = Parser(prog="codewhale")
    summaries = [*commands.summaries.items(), ("help", "show the help of a command")]
    if not before and not typed.startswith("-"):
        return summaries
    if not before or before[0].startswith("-"):
        from codewhale.cli.tui import build as build_interface

        build_interface(parser)
        more = [("--version", "print the version")] if not before else []
        return [*_next(parser, "", list(before), typed), *more]
    if before[0] == "help":
        return summaries if len(before) == 1 else ()
    if not commands.build(before[0], parser):
        return ()
    return _next(parser, before[0], list(before[1:]), typed)


def _next(parser: argparse.ArgumentParser, command: str, before: list[str], typed: str) -> Choices:
    places = [action for action in parser._actions if not action.option_strings]
    options = {name: action for action in parser._actions for name in action.option_strings}
    while before:
        word = before.pop(0)
        action = options.get(word)
        if action is not None and action.nargs != 0:
            if not before:
                return _values(command, action)
            if action.nargs != "?" or not before[0].startswith("-"):
                before.pop(0)
        elif action is None and not word.startswith("-") and places:
            place = places[0] if places[0].nargs in ("*", "+") else places.pop(0)
            if isinstance(place, argparse._SubParsersAction):
                inner = place.choices.get(word)
                return _next(inner, command, before, typed) if inner is not None else ()
    if typed.startswith("-"):
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        return [(name, action.help or "") for action in shown for name in action.option_strings]
    return _values(command, places[0]) if places else ()


def _values(command: str, action: argparse.Action) -> Choices:
    if isinstance(action, argparse._SubParsersAction):
        return [(row.dest, row.help or "") for row in action._choices_actions]
    if action.choices is not None:
        return [(str(choice), "") for choice in action.choices]
    kind = _KINDS.get((command, action.dest)) or _KINDS.get(("", action.dest))
    home = os.environ.get("CODEWHALE_HOME") or "~/.codewhale"
    return kind(Path(home).expanduser()) if kind is not None and not action.const else ()


def _sessions(home: Path) -> Choices:
    return [(name, str(fold.get("title", ""))) for name, fold in recent(home)]


def _model_ids(home: Path) -> Choices:
    return model_names(home, (str(fold.get("model", "")) for _, fold in recent(home)))


# What an argument takes, by sub-command ("" is any) and its name there.
_KINDS: dict[tuple[str, str], Callable[[Path], Choices]] = {
    ("", "resume"): lambda home: [("latest", "the latest session"), *_sessions(home)],
    **dict.fromkeys((("", "fork"), ("sessions", "id"), ("sessions", "ids")), _sessions),
    **dict.fromkeys((("", "provider"), ("provider", "name"), ("login", "name"), ("logout", "name")), provider_names),
    **dict.fromkeys((("", "model"), ("model", "id")), _model_ids),
}
