"""What is imported when it is first needed: screens, cards, and what starts the person's own programs. Nothing of it
costs anything before the first frame."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codewhale.tui.asking.approval import ApprovalCard
    from codewhale.tui.asking.question import QuestionCard
    from codewhale.tui.composer.outside import EditorResult
    from codewhale.tui.proposals import ProposalsLine
    from codewhale.tui.screens.frame import Frame
    from codewhale.tui.screens.reports import ProgressPanel

SCREENS = (
    "agents", "config", "console", "context", "cost", "diff", "firstrun", "help", "jobs", "keys", "layers", "leave",
    "login", "memory", "models", "palette", "providers", "report", "restore", "rewind", "rewind_parts", "sessions",
    "tasks", "tools", "undo", "yolo",
)  # fmt: skip


def load(name: str) -> "type[Frame]":
    """A screen, made as `load(name)(context, argument)`; it dismisses itself with an outcome or None. Raises KeyError
    for a name that is not in SCREENS."""
    match name:
        case "palette" | "help":
            from codewhale.tui.screens.commandpalette import SCREENS as commands

            return commands[name]
        case "sessions" | "models" | "providers" | "keys":
            from codewhale.tui.screens.pickers import SCREENS as pickers

            return pickers[name]
        case "agents":
            from codewhale.tui.screens.agents import SCREENS as agents

            return agents[name]
        case "tasks":
            from codewhale.tui.screens.tasks import SCREENS as tasks

            return tasks[name]
        case "jobs" | "console":
            from codewhale.tui.screens.jobs import SCREENS as jobs

            return jobs[name]
        case "config":
            from codewhale.tui.screens.config import ConfigScreen

            return ConfigScreen
        case "memory" | "layers":
            from codewhale.tui.screens.memory import SCREENS as memory

            return memory[name]
        case "undo" | "restore":
            from codewhale.tui.screens.undo import SCREENS as undo

            return undo[name]
        case "rewind" | "rewind_parts":
            from codewhale.tui.screens.rewind import SCREENS as rewinds

            return rewinds[name]
        case "firstrun" | "login":
            from codewhale.tui.screens.firstrun import SCREENS as connecting

            return connecting[name]
        case "leave" | "yolo":
            from codewhale.tui.screens.frame import SCREENS as questions

            return questions[name]
    from codewhale.tui.screens.reports import SCREENS as reports

    return reports[name]


def approval_card() -> "type[ApprovalCard]":
    from codewhale.tui.asking.approval import ApprovalCard

    return ApprovalCard


def question_card() -> "type[QuestionCard]":
    from codewhale.tui.asking.question import QuestionCard

    return QuestionCard


def progress_panel() -> "type[ProgressPanel]":
    from codewhale.tui.screens.reports import ProgressPanel

    return ProgressPanel


def proposals_line() -> "type[ProposalsLine]":
    from codewhale.tui.proposals import ProposalsLine

    return ProposalsLine


def text_editor() -> "Callable[..., Awaitable[EditorResult]]":
    """`edit_text` of composer/outside.py."""
    from codewhale.tui.composer.outside import edit_text

    return edit_text


def text_shower() -> "Callable[..., Awaitable[EditorResult]]":
    """`show_text` of composer/outside.py."""
    from codewhale.tui.composer.outside import show_text

    return show_text


def file_editor() -> "Callable[..., Awaitable[EditorResult]]":
    """`edit_file` of composer/outside.py."""
    from codewhale.tui.composer.outside import edit_file

    return edit_file


def image_reader() -> Callable[[], Awaitable[bytes | None]]:
    """`image_of_clipboard` of composer/outside.py."""
    from codewhale.tui.composer.outside import image_of_clipboard

    return image_of_clipboard
