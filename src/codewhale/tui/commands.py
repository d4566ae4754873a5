"""The slash commands of the interface itself: those that open a screen, and the lines of completion they add."""

from collections.abc import Mapping
from typing import TypeVar, cast

from codewhale.display.palette import theme_names
from codewhale.display.words import Words
from codewhale.protocol.requests import Query
from codewhale.protocol.screen import INTERFACE_COMMANDS
from codewhale.protocol.views import Choice, CommandRow, CompleteCommand, ListCommands
from codewhale.tui.keys import ACTIONS, first_key

T = TypeVar("T")

# Slash commands that open a screen, where they are given bare or with the one word that the screen takes.
COMMANDS: dict[str, str] = {
    "/agents": "agents",
    "/config": "config",
    "/connect": "firstrun",
    "/context": "context",
    "/cost": "cost",
    "/diff": "diff",
    "/help": "help",
    "/jobs": "jobs",
    "/keys": "keys",
    "/login": "login",
    "/memory": "memory",
    "/model": "models",
    "/models": "models",
    "/provider": "providers",
    "/providers": "providers",
    "/resume": "sessions",
    "/restore": "restore",
    "/rewind": "rewind",
    "/sessions": "sessions",
    "/task": "tasks",
    "/tools": "tools",
    "/undo": "undo",
    "/yolo": "yolo",
}
# Those whose first word is handed to the screen; the others run as commands where they have one.
_TAKE_A_WORD = frozenset({"/connect", "/login", "/diff", "/undo", "/restore", "/help"})
QUIT = ("/quit", "/exit")
# What belongs together in a list of commands, in this order; what is not here stands in the last group.
GROUPS: dict[str, str] = {
    "session": "/new /clear /sessions /resume /rename /fork /export /queue /jobs /agents /task /memory /status /quit "
    "/exit",
    "changes": "/diff /undo /restore /rewind /retry /review",
    "model": "/model /models /provider /providers /connect /login /doctor /effort",
    "context": "/context /compact /cost /tokens /cache /budget /relay /batonpass /接力",
    "safety": "/mode /plan /yolo /approval /permissions /network /trust /add-dir",
    "project": "/init /remember /rules /search /skill /skills /tools /mcp /hooks",
    "interface": "/help /keys /theme /config /voice",
    "other": "",
}
# Commands that a key does as well, beside those whose screen has one.
_KEYS = {
    "/mode": "composer.mode", "/effort": "composer.effort", "/quit": "app.leave", "/theme": "app.theme",
    "/queue": "composer.edit_queue",
}  # fmt: skip
OWN = (*INTERFACE_COMMANDS, "/diff", "/models")


def with_local(query: Query[T], answer: T, words: Words, home: str) -> T:
    """The answer to a query, with the interface's own commands among those of the engine."""
    asked: object = query
    match asked:
        case ListCommands():
            rows = cast(tuple[CommandRow, ...], answer)
            there = {row.name for row in rows}
            return cast(T, tuple(sorted((*rows, *_rows(words, there)), key=lambda row: row.name)))
        case CompleteCommand(line=line):
            choices = cast(tuple[Choice, ...], answer)
            return cast(T, (*choices, *_choices(line, {choice.value for choice in choices}, words, home)))
    return answer


def _rows(words: Words, there: set[str]) -> list[CommandRow]:
    usage = {"/theme": "NAME", "/diff": "PATH"}
    return [
        CommandRow(name, usage.get(name, ""), words(f"app.command_{name[1:]}"))
        for name in OWN
        if name not in there and (name in COMMANDS or name in QUIT or name == "/theme")
    ]


def _choices(line: str, there: set[str], words: Words, home: str) -> list[Choice]:
    if line.startswith("/theme "):
        begun = line.removeprefix("/theme ").strip()
        return [Choice(name) for name in theme_names(home) if name.startswith(begun)]
    if " " in line:
        return []
    return [
        Choice(row.name, row.summary)
        for row in _rows(words, there)
        if row.name.startswith(line) and row.name not in there
    ]


def screen_of(line: str) -> tuple[str, str] | None:
    """(screen, argument) of a slash command that opens one, None for a line that is to be run as a command."""
    words = line.split()
    if words == ["/mode", "yolo"]:
        return "yolo", ""
    if words[:2] == ["/memory", "edit"] and words[2:] in ([], ["workspace"], ["global"]):
        return "memory", ""
    if not words or words[0] not in COMMANDS:
        return None
    if len(words) == 1:
        return COMMANDS[words[0]], ""
    if len(words) == 2 and words[0] in _TAKE_A_WORD and words[1] not in ("yes", "preview"):
        return COMMANDS[words[0]], words[1]
    return None


def group_of(name: str) -> str:
    """The group of GROUPS in which a command stands."""
    return next((group for group, names in GROUPS.items() if name in names.split()), "other")


def key_of(name: str, changed: Mapping[str, str]) -> str:
    """The key that does what a command does, as it is shown; "" where there is none."""
    opens = f"open_screen('{COMMANDS.get(name, '')}')"
    action = _KEYS.get(name) or next((row.id for row in ACTIONS if row.does == opens), "")
    return first_key(action, changed) if action else ""
