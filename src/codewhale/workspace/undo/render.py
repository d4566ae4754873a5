"""What is said of taking changes back, to models and people alike."""

from collections.abc import Iterable, Sequence

from codewhale.lib.text import one_line
from codewhale.protocol.files import FileChange
from codewhale.workspace.undo.history import UndoTurn
from codewhale.workspace.undo.resolve import UndoRefusal
from codewhale.workspace.undo.undo import UndoPlan

MOST_LISTED = 50
_PATH = 200


def capped(lines: Sequence[str]) -> list[str]:
    """The lines, at most fifty of them with a count of the rest."""
    more = len(lines) - MOST_LISTED
    return [*lines[:MOST_LISTED], *([f"... and {more} more"] if more > 0 else [])]


def turn_line(turn: UndoTurn) -> str:
    name = f"turn {turn.number}" if turn.number else "the last undo"
    paths = ", ".join(one_line(path, _PATH) for path in turn.paths[:3])
    more = f" and {len(turn.paths) - 3} more" if len(turn.paths) > 3 else ""
    return f"{name} ({', '.join(turn.tools)}): {paths or 'too many files to list'}{more}"


def plan_lines(plan: UndoPlan) -> list[str]:
    lines = []
    for one in plan.files:
        word = "removed" if one.then is None else "restored" if one.now is None else "reverted"
        lines.append(f"{word}: {one_line(one.path, _PATH)}")
    return [*capped(lines), *refusal_lines(plan.refused)]


def done_lines(changes: Iterable[FileChange], refused: Sequence[UndoRefusal]) -> list[str]:
    lines = []
    for change in changes:
        word = "removed" if change.after is None else "restored"
        lines.append(f"{word}: {one_line(change.path, _PATH)}")
    return [*capped(lines), *refusal_lines(refused)]


def refusal_lines(refused: Sequence[UndoRefusal]) -> list[str]:
    return capped([f"not undone: {place(one)}: {one.reason}" for one in refused])


def place(refusal: UndoRefusal) -> str:
    path = one_line(refusal.path, _PATH) or "some files"
    if refusal.lines is None:
        return path
    first, last = refusal.lines
    return f"{path}, line {first}" if last <= first else f"{path}, lines {first} to {last}"
