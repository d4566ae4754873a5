"""The screens and panels of this folder as rows, imported when one is first opened: nothing of them costs anything
before. Every screen is made as `load(name)(desk, argument)`, is pushed by the app, and dismisses itself with an outcome
(`screens/outcomes.py`) or None."""

import importlib
from typing import Any

_HERE = "codewhale.tui"

SCREENS: dict[str, str] = {
    "palette": f"{_HERE}.screens.commandpalette:CommandPalette",
    "sessions": f"{_HERE}.screens.pickers:SessionPicker",
    "models": f"{_HERE}.screens.pickers:ModelPicker",
    "providers": f"{_HERE}.screens.pickers:ProviderPicker",
    "jobs": f"{_HERE}.screens.jobs:JobsCentre",
    "config": f"{_HERE}.screens.config:ConfigScreen",
    "help": f"{_HERE}.screens.reports:HelpScreen",
    "keys": f"{_HERE}.screens.pickers:KeysScreen",
    "context": f"{_HERE}.screens.reports:ContextReport",
    "cost": f"{_HERE}.screens.reports:CostReport",
    "tools": f"{_HERE}.screens.reports:ToolsReport",
    "diff": f"{_HERE}.screens.reports:DiffReport",
    "report": f"{_HERE}.screens.reports:CommandReport",
    "undo": f"{_HERE}.screens.undo:UndoScreen",
    "restore": f"{_HERE}.screens.undo:RestoreScreen",
    "firstrun": f"{_HERE}.screens.firstrun:FirstRun",
    "console": f"{_HERE}.screens.jobs:Console",
    "leave": f"{_HERE}.screens.frame:LeaveScreen",
    "yolo": f"{_HERE}.screens.frame:YoloScreen",
}

# What is no screen but a widget, with a constructor of its own.
PANELS: dict[str, str] = {
    "approval": f"{_HERE}.asking.approval:ApprovalCard",
    "question": f"{_HERE}.asking.question:QuestionCard",
    "progress": f"{_HERE}.screens.reports:ProgressPanel",
}

# Slash commands that open a screen, where they are given bare or with the one word that the screen takes.
COMMANDS: dict[str, str] = {
    "/config": "config",
    "/connect": "firstrun",
    "/context": "context",
    "/cost": "cost",
    "/diff": "diff",
    "/help": "help",
    "/jobs": "jobs",
    "/keys": "keys",
    "/model": "models",
    "/models": "models",
    "/provider": "providers",
    "/providers": "providers",
    "/resume": "sessions",
    "/restore": "restore",
    "/sessions": "sessions",
    "/tools": "tools",
    "/undo": "undo",
    "/yolo": "yolo",
}
# Those whose first word is handed to the screen; the others run as commands where they have one.
_TAKE_A_WORD = frozenset({"/diff", "/undo", "/restore", "/help"})


def load(name: str) -> Any:
    """The class of a row of SCREENS or PANELS. Raises KeyError for another name."""
    module, _, attribute = (SCREENS.get(name) or PANELS[name]).partition(":")
    return getattr(importlib.import_module(module), attribute)


def screen_of(line: str) -> tuple[str, str] | None:
    """(screen, argument) of a slash command that opens one, None for a line that is to be run as a command."""
    words = line.split()
    if words == ["/mode", "yolo"]:
        return "yolo", ""
    if not words or words[0] not in COMMANDS:
        return None
    if len(words) == 1:
        return COMMANDS[words[0]], ""
    if len(words) == 2 and words[0] in _TAKE_A_WORD and words[1] not in ("yes", "preview"):
        return COMMANDS[words[0]], words[1]
    return None
