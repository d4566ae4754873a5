"""Events that are one line of the record each: what changed for the session, its model or its memory."""

from collections.abc import Callable
from typing import Any

from codewhale.display.transcript.blocks import Note
from codewhale.lib.text import one_line
from codewhale.protocol.events import (
    AnswerDropped,
    BudgetChanged,
    Compacted,
    CompactionUndone,
    ContextAppended,
    Edge,
    EffortChanged,
    ModeChanged,
    ModelChanged,
    Notice,
    ResultsPruned,
    SessionOpened,
    SessionResumed,
    ToolActivated,
    UnknownEvent,
)

# Reasons of edges whose own event has a line.
_TOLD = frozenset({"pruned", "compaction", "compaction undone", "model", "effort", "activation"})
_MOST_DETAIL = 20_000


def note_of(event: Any) -> Note | None:
    """The line of an event, None for one that has no line of its own."""
    make = _NOTES.get(type(event))
    return None if make is None else make(event)


def _opened(event: SessionOpened) -> Note:
    values = {"model": event.model, "provider": event.provider, "folder": event.workspace}
    if event.parent:
        return Note(key="forked", values={**values, "parent": event.parent, "seq": event.parent_seq})
    return Note(key="opened", values=values)


def _resumed(event: SessionResumed) -> Note:
    if event.cut_bytes or event.skipped_lines:
        return Note(key="mended", values={"bytes": event.cut_bytes, "lines": event.skipped_lines}, level="warning")
    return Note(key="resumed")


def _edge(event: Edge) -> Note | None:
    return None if event.reason in _TOLD else Note(key="edge", values={"reason": one_line(event.reason, 80)})


def _compacted(event: Compacted) -> Note:
    values = {
        "number": event.number,
        "reason": one_line(event.reason, 80),
        "before": f"{event.tokens_before:,}",
        "after": f"{event.tokens_after:,}",
    }
    detail = "\n\n".join(message.text for message in event.messages)
    return Note(key="compacted", values=values, detail=detail[:_MOST_DETAIL])


def _dropped(event: AnswerDropped) -> Note:
    """An answer that broke: what had come of it is folded behind the line, and void."""
    values = {"attempt": event.attempt, "attempts": event.attempts, "reason": one_line(event.reason, 300)}
    came = "\n\n".join(filter(None, (event.text, ", ".join(event.calls))))
    key = "dropped" if event.attempt else "dropped_last"
    return Note(key=key, values=values, detail=came[:_MOST_DETAIL], level="warning")


def _budget(event: BudgetChanged) -> Note:
    limits = event.limits
    bounds = {"turns": limits.turns, "tokens": limits.tokens, "s": limits.seconds, "cost": limits.cost}
    said = ", ".join(f"{value:g} {name}" for name, value in bounds.items() if value is not None)
    return Note(key="budget", values={"limits": said}) if said else Note(key="unbounded")


_NOTES: dict[type, Callable[[Any], Note | None]] = {
    SessionOpened: _opened,
    SessionResumed: _resumed,
    Edge: _edge,
    Compacted: _compacted,
    BudgetChanged: _budget,
    AnswerDropped: _dropped,
    CompactionUndone: lambda event: Note(key="restored", values={"number": event.number}),
    ResultsPruned: lambda event: Note(key="pruned", values={"n": len(event.results)}),
    ModeChanged: lambda event: Note(key="mode", values={"mode": str(event.mode), "previous": str(event.previous)}),
    ModelChanged: lambda event: Note(key="model", values={"model": event.model, "provider": event.provider}),
    EffortChanged: lambda event: Note(key="effort" if event.effort else "own_effort", values={"effort": event.effort}),
    ToolActivated: lambda event: Note(key="activated", values={"name": event.name, "bytes": f"{event.bytes:,}"}),
    ContextAppended: lambda event: Note(
        key="told", values={"kind": one_line(event.kind, 40)}, detail=event.text[:_MOST_DETAIL]
    ),
    Notice: lambda event: Note(text=event.text[:_MOST_DETAIL], level=event.level, code=event.code),
    UnknownEvent: lambda event: Note(key="unknown", values={"type": one_line(event.type, 60)}),
}
