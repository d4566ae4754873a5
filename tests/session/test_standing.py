"""Which events stand after rewinds, for every order of turns, rewinds and their undoing."""

import random

import pytest

from codewhale.protocol.events import Envelope, Event, MessageAdded, ModelChanged, Rewound, TurnFinished, TurnStarted
from codewhale.protocol.messages import Message, Text
from codewhale.session.standing import former_messages, standing
from codewhale.session.state import SessionState


def turn(number: int) -> list[Event]:
    return [TurnStarted(number), MessageAdded(Message("user", (Text(f"m{number}"),))), TurnFinished(number, "done")]


def said(events: list[Event]) -> list[str]:
    return [event.message.text for event in standing(events) if isinstance(event, MessageAdded)]


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_a_stack_of_conversations_says(seed: int) -> None:
    dice = random.Random(seed)
    events: list[Event] = []
    now: list[int] = []
    undone: list[list[int]] = []
    last = 0
    state = SessionState()
    for _ in range(30):
        step = dice.choice(("turn", "turn", "rewind", "back", "nonsense"))
        if step == "turn":
            last += 1
            events += turn(last)
            now, undone = [*now, last], []
        elif step == "rewind" and now:
            to = dice.choice(now)
            events.append(Rewound(to))
            undone.append(now)
            now = [one for one in now if one < to]
        elif step == "back":
            events.append(Rewound(0, True))
            now = undone.pop() if undone else now
        elif step == "nonsense":
            gone = [one for one in range(1, last + 2) if one not in now]
            events += [Rewound(dice.choice(gone)), ModelChanged("p", f"m{last}")]
        assert said(events) == [f"m{number}" for number in now]
    for event in events:
        state.apply(event)
    assert len(state.rewinds) == len(undone)
    envelopes = [Envelope(seq, "s", f"t{seq}", event) for seq, event in enumerate(events, 1)]
    assert [row.turn for row in former_messages(envelopes)] == now
    assert sum(isinstance(event, ModelChanged) for event in standing(events)) == sum(
        isinstance(event, ModelChanged) for event in events
    )


def test_a_report_of_a_child_is_no_message_to_go_back_to() -> None:
    report = MessageAdded(Message("user", (Text("<subagent_done>", source="harness"),)), child="c")
    events: list[Event] = [*turn(1), TurnStarted(2), report, *turn(3)]
    envelopes = [Envelope(seq, "s", f"t{seq}", event) for seq, event in enumerate(events, 1)]
    assert [(row.turn, row.text) for row in former_messages(envelopes)] == [(1, "m1"), (3, "m3")]
