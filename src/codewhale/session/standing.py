"""Which events of a log the conversation stands on: a rewind takes back what was said since a turn began."""

from collections.abc import Iterable

from msgspec import Struct

from codewhale.protocol.events import (
    CallFinished,
    Compacted,
    CompactionUndone,
    ContextAppended,
    Envelope,
    Event,
    ListChanged,
    MessageAdded,
    RequestSent,
    ResultsPruned,
    Rewound,
    ToolActivated,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.views import FormerMessage
from codewhale.session.forgetting import forget
from codewhale.session.log import SessionLog
from codewhale.session.state import SessionState

# What a rewind takes back. The model, the mode, costs and files stay as they are; the tools that were found since go.
TAKEN_BACK = (
    TurnStarted, TurnFinished, MessageAdded, CallFinished, ContextAppended, Compacted, CompactionUndone, ResultsPruned,
    RequestSent, ListChanged, ToolActivated,
)  # fmt: skip


class _Before(Struct):
    """What stood before a rewind, and how much stood after it."""

    kept: list[Event]
    turns: dict[int, int]
    left: int


def standing(events: Iterable[Event]) -> list[Event]:
    """The events that stand, in order. A rewind can be undone until the next turn begins."""
    kept: list[Event] = []
    turns: dict[int, int] = {}
    rewinds: list[_Before] = []
    for event in events:
        if isinstance(event, Rewound):
            if event.back and rewinds:
                before = rewinds.pop()
                kept, turns = [*before.kept, *kept[before.left :]], before.turns
            elif not event.back and event.turn in turns:
                place = turns[event.turn]
                left = [*kept[:place], *(one for one in kept[place:] if not isinstance(one, TAKEN_BACK))]
                rewinds.append(_Before(kept, turns, len(left)))
                kept, turns = left, {turn: at for turn, at in turns.items() if at < place}
            continue
        if isinstance(event, TurnStarted):
            turns[event.turn] = len(kept)
            rewinds.clear()
        kept.append(event)
    return kept


def of_conversation(log: SessionLog, state: SessionState) -> Iterable[Event]:
    """The events of an open log on which its conversation stands; one without a rewind is read as it is."""
    events: Iterable[Event] = (envelope.event for envelope in log.read())
    events = standing(events) if state.rewound else events
    return forget(events) if state.forgotten else events


def former_messages(log: Iterable[Envelope]) -> tuple[FormerMessage, ...]:
    """What the person said at the beginning of each turn that stands, oldest first."""
    times: dict[int, str] = {}
    events: list[Event] = []
    for envelope in log:
        if isinstance(envelope.event, TurnStarted):
            times[envelope.event.turn] = envelope.at
        events.append(envelope.event)
    rows: list[FormerMessage] = []
    turn = 0
    for event in standing(events):
        if isinstance(event, TurnStarted):
            turn = event.turn
        elif isinstance(event, MessageAdded) and turn:
            said = (part.text for part in event.message.parts if isinstance(part, Text) and part.source == "person")
            person = event.message.role == "user" and not event.child
            rows += [FormerMessage(turn, next(said, ""), times[turn])] if person else []
            turn = 0
    return tuple(rows)


def last_asked(log: SessionLog, state: SessionState) -> tuple[Message | None, bool]:
    """The message of the person that began a turn last, without what the harness added, and whether the conversation
    still ends with it, or with what a child has reported: nothing has answered it yet."""
    asked, ends, began = None, False, False
    for event in of_conversation(log, state):
        if isinstance(event, TurnStarted):
            began = True
        elif isinstance(event, MessageAdded):
            ends = began and event.message.role == "user"
            if ends and not event.child:
                asked = event.message
            began = False
        elif isinstance(event, Compacted):
            ends = False
    if asked is None:
        return None, False
    kept = tuple(part for part in asked.parts if not isinstance(part, Text) or part.source == "person")
    return Message("user", kept), ends
