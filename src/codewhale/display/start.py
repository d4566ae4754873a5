"""What stands there before the first message: where we are, what holds, and what can be done."""

import os

from msgspec import Struct

from codewhale import __version__
from codewhale.display.text import Span, StyledLine, cells, columns, fit, flat, wrap
from codewhale.display.when import ago
from codewhale.display.words import Words
from codewhale.protocol.ops import StatusView
from codewhale.protocol.views import SessionSummary, WorkspaceRow

_INDENT: Span = ("  ", "text")
_WIDEST = 100


class StartFacts(Struct, frozen=True):
    """How a new session stands; `last` is the one to go on with, None for none, at `now` in seconds since the epoch.
    `help` is the key that shows all keys."""

    status: StatusView
    place: WorkspaceRow
    last: SessionSummary | None = None
    now: float = 0.0
    help: str = ""


def last_session(rows: list[SessionSummary], session: str) -> SessionSummary | None:
    """The session that was worked in last, of those that can be gone on with."""
    fit = (row for row in rows if row.id != session and row.turns and row.state == "idle" and not row.owner)
    return max(fit, key=lambda row: row.updated, default=None)


def start_lines(facts: StartFacts, words: Words, width: int) -> list[StyledLine]:
    """The lines of the start screen."""
    status = facts.status
    rows: list[tuple[str, list[Span]]] = [
        ("model", [(f"{flat(status.model, 60)} · {flat(status.provider, 40)}", "text")]),
        ("folder", _folder(facts, words)),
        ("instructions", _instructions(facts, words)),
        ("sandbox", [(words("start.held"), "text") if status.sandbox else (words("start.free"), "warning")]),
    ]
    room = min(width, _WIDEST)
    label = (
        max(cells(words(f"start.{name}")) for name in ("model", "folder", "instructions", "sandbox", "continue")) + 2
    )
    lines = [StyledLine((_INDENT, ("CodeWhale", "accent bold"), (f" {__version__}", "muted"))), StyledLine()]
    for name, spans in rows:
        lines += _row(words(f"start.{name}"), spans, label, room)
    lines.append(StyledLine())
    if facts.last is not None:
        lines += _last(facts.last, facts.now, words, (label, room))
    for at, name in enumerate(("question", "marks", "keys")):
        tip = words(f"start.tip_{name}", help=facts.help)
        lines += _row("" if at else words("start.try"), [(tip, "text")], label, room)
    return lines


def _row(name: str, spans: list[Span], label: int, width: int) -> list[StyledLine]:
    """A name and what is said of it, which goes on in its own column."""
    first: list[Span] = [_INDENT, (name + " " * (label - cells(name)), "muted")]
    return wrap(spans, width, first, [(" " * (label + 2), "text")])


def _last(last: SessionSummary, now: float, words: Words, sizes: tuple[int, int]) -> list[StyledLine]:
    """The session to go on with, on one line with its key where there is room."""
    label, width = sizes
    name, key = words("start.continue"), words("start.enter")
    pieces = [ago(words, last.updated, now), words("sessions.files", n=last.files) if last.files else ""]
    about = " · ".join(piece for piece in pieces if piece)
    first: list[Span] = [_INDENT, (name + " " * (label - cells(name)), "accent bold")]
    room = width - columns(first) - cells(key) - 2
    title = flat(last.title) or words("sessions.untitled")
    if room < 12:
        return wrap([(f"{fit(title, 40)} ", "text"), (key, "accent bold")], width, first, [(" " * (label + 2), "text")])
    shown = fit(title, max(4, room - cells(about) - 2 if room > cells(about) + 12 else room))
    more: list[Span] = [("  ", "text"), (about, "muted")] if cells(shown) + cells(about) + 2 <= room else []
    return [StyledLine((*first, (shown, "text"), *more, ("  ", "text"), (key, "accent bold")))]


def _folder(facts: StartFacts, words: Words) -> list[Span]:
    home = os.path.expanduser("~")
    root = facts.status.workspace
    shown = f"~{root[len(home) :]}" if root == home or root.startswith(home + os.sep) else root
    branch = flat(facts.place.branch, 60)
    changed = words("start.changed", n=facts.place.changed) if facts.place.changed else words("start.clean")
    return [(flat(shown, 200), "text"), *([(f"  {branch}, {changed}", "muted")] if branch else [])]


def _instructions(facts: StartFacts, words: Words) -> list[Span]:
    read = [f"{flat(name, 80)} {max(1, round(size / 1024))} KB" for name, size in facts.status.instructions]
    return [(", ".join(read), "text")] if read else [(words("start.no_instructions"), "muted")]
