"""Print the completion script of a shell.

bash:  eval "$(codewhale completion bash)"      in ~/.bashrc
zsh:   eval "$(codewhale completion zsh)"       in ~/.zshrc, behind compinit
fish:  codewhale completion fish | source       in ~/.config/fish/config.fish
"""

import argparse
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from codewhale import models
from codewhale.cli.parser import Parser
from codewhale.cli.stdio import put
from codewhale.lib.text import one_line

MOST, READ_LIMIT = 100, 1 << 20
Choices = Iterable[tuple[str, str]]

# Each asks the program itself for what may stand there, so that a script never grows old; where it knows nothing the
# shell offers files. Bash cuts words at colons and equal signs, which model ids hold.
_BASH = r"""_codewhale() {
    local line="${COMP_LINE:0:COMP_POINT}" word cut value about
    local -a words
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    word="${words[${#words[@]}-1]}"
    cut="${word%"${word##*[:=]}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r value about; do
        COMPREPLY+=("${value#"$cut"}")
    done < <(codewhale completion --words "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _codewhale codewhale
"""
_ZSH = r"""#compdef codewhale
_codewhale() {
    local value about
    local -a found
    while IFS=$'\t' read -r value about; do
        found+=("${value//:/\\:}${about:+:$about}")
    done < <(codewhale completion --words "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then _describe -V -t codewhale codewhale found; else _files; fi
}
if [[ "$funcstack[1]" == _codewhale ]]; then _codewhale "$@"; else compdef _codewhale codewhale; fi
"""
_FISH = r"""function __codewhale_words
    set -l words (commandline -opc) (commandline -ct)
    set -l found (codewhale completion --words $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c codewhale -k -f -a '(__codewhale_words)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = __doc__
    parser.add_argument("shell", choices=list(SCRIPTS), help="the shell")


def run(args: argparse.Namespace) -> int:
    """Print it; returns the exit code."""
    put(SCRIPTS[args.shell])
    return 0


class SubCommands(Struct, frozen=True):
    """The sub-commands with what each does, and `build(name, parser)`, which declares the arguments of one (False where
    there is none)."""

    summaries: Mapping[str, str]
    build: Callable[[str, Parser], bool]


def complete(words: Sequence[str], commands: SubCommands) -> int:
    """Print what the last of the words behind `codewhale` may become, a line each with what it is."""
    *before, typed = words or [""]
    rows = {
        value: about
        for value, about in candidates(before, typed, commands)
        if value.startswith(typed) and _plain(value)
    }
    put("".join(f"{value}\t{one_line(about, 80)}\n" for value, about in list(rows.items())[:MOST]))
    return 0


def _plain(value: str) -> bool:
    return value.isprintable() and " " not in value


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


# -------------------------------------------------------------- what only this machine knows; nothing heavy is imported


def sessions(home: Path) -> Choices:
    """The latest sessions, those of the current folder first."""
    try:
        names = sorted((name for name in os.listdir(home / "sessions") if name[0] != "."), reverse=True)
    except OSError:
        return []
    here = os.path.realpath(".")
    rows = [(name, _read_json(home / "sessions" / name / "listing.json").get("fold", {})) for name in names[:MOST]]
    rows.sort(key=lambda row: row[1].get("workspace", here) != here)
    return [(name, str(fold.get("title", ""))) for name, fold in rows]


def providers(home: Path) -> Choices:
    """The configured providers, then those that are known."""
    configured, known = _config(home).get("providers", {}), _known()["providers"]
    rows = dict.fromkeys(configured, "configured") if isinstance(configured, dict) else {}
    return [*rows.items(), *((name, row.get("base_url", "")) for name, row in known.items() if name not in rows)]


def model_ids(home: Path) -> Choices:
    """Models that were configured or used, then those that are known by their whole name."""
    config, rows = _config(home), dict[str, str]()
    rows[str(config.get("model", ""))] = "configured"
    for name, _ in list(sessions(home))[:20]:
        used = _read_json(home / "sessions" / name / "listing.json").get("fold", {}).get("model", "")
        rows.setdefault(str(used), "used")
    for name, row in _known()["providers"].items():
        rows.setdefault(row.get("default_model", ""), name)
    for price in json.loads(_beside("prices.json").read_bytes()):
        for pattern in price["match"].split():
            rows.setdefault("" if re.search(r"[*?[]", pattern) else pattern, " ".join(price.get("providers", ())))
    rows.pop("", None)
    return rows.items()


def _known() -> Any:
    return json.loads(_beside("known.json").read_bytes())


def _beside(name: str) -> Path:
    return Path(models.__file__).with_name(name)


def _config(home: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((home / "config.toml").read_bytes()[:READ_LIMIT].decode())
    except (OSError, ValueError):
        return {}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes()[:READ_LIMIT])
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and isinstance(value.get("fold", {}), dict) else {}


# What an argument takes, by sub-command ("" is any) and its name there.
_KINDS: dict[tuple[str, str], Callable[[Path], Choices]] = {
    ("", "resume"): lambda home: [("latest", "the latest session"), *sessions(home)],
    ("", "fork"): sessions,
    ("", "provider"): providers,
    ("", "model"): model_ids,
    ("sessions", "id"): sessions,
    ("sessions", "ids"): sessions,
    ("provider", "name"): providers,
    ("login", "name"): providers,
    ("logout", "name"): providers,
    ("model", "id"): model_ids,
}
