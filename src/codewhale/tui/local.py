"""The slash commands that concern the interface alone, and the lines of completion they add to the engine's."""

from typing import Any

from codewhale.display.palette import theme_names
from codewhale.display.words import Words
from codewhale.protocol.ops import Query
from codewhale.protocol.views import Choice, CommandRow, CompleteCommand, ListCommands
from codewhale.tui.screens.table import COMMANDS

QUIT = ("/quit", "/exit")
OWN = ("/connect", "/diff", "/exit", "/keys", "/models", "/provider", "/quit", "/resume", "/theme")


def with_local(query: Query, answer: Any, words: Words, home: str) -> Any:
    """The answer to a query, with the interface's own commands among those of the engine."""
    match query:
        case ListCommands():
            there = {row.name for row in answer}
            return tuple(sorted((*answer, *_rows(words, there)), key=lambda row: row.name))
        case CompleteCommand(line=line):
            return (*answer, *_choices(line, {choice.value for choice in answer}, words, home))
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
