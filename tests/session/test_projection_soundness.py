"""Every request that the engine makes is sound in every dialect; what is not is never sent, and the turn says why."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

from codewhale.protocol.events import Event, MessageAdded, RequestSent, TurnFinished
from codewhale.protocol.messages import Image, Message, ResultPart, Text, ToolCall
from codewhale.protocol.ops import SendMessage
from codewhale.session.projection import Projection, pinned_dialect
from support.scenes import only
from support.stage import staged, until
from support.turns import HEADER, sessions

REASONS = {"replays_reasoning": True}
NOTHING_NEW = "is the model's, and nothing follows"


def load(image: Image) -> bytes:
    return b"\x89PNG"


def faults(events: Sequence[Event], dialect: str) -> set[str]:
    """What is wrong with the requests of a log, as incremental looks and one look at the end find it."""
    header = msgspec.structs.replace(HEADER, dialect=dialect, facts=REASONS)
    projection, found = Projection(pinned_dialect(header), load), set[str]()
    for event in events:
        if isinstance(event, RequestSent):
            found.add(projection.fault(header, event.extra))
        projection.apply(event)
    fresh = Projection(pinned_dialect(header), load)
    for event in events:
        fresh.apply(event)
    assert fresh.fault(header) == projection.fault(header)
    return {fault for fault in found if fault and NOTHING_NEW not in fault}


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
@settings(max_examples=40)
@given(events=sessions(models=True, compacts=True))
def test_requests_are_sound(dialect: str, events: list[Event]) -> None:
    assert faults(events, dialect) == set()


async def test_what_is_not_sound_is_not_sent(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "one"}, {"text": "two"}]) as stage:
        session = stage.open()
        await stage.engine.send(SendMessage(session.id, "Go"))
        await until(lambda: not stage.engine.turn(session.id).busy)
        call = ToolCall("call_9", "no name!", "{}")
        session.emit(
            MessageAdded(Message("user", (Text("and"),))),
            MessageAdded(Message("assistant", (call,))),
            MessageAdded(Message("tool", (ResultPart("call_9", "x"),))),
        )
        for _ in range(2):
            await stage.engine.send(SendMessage(session.id, "On"))
            await until(lambda: not stage.engine.turn(session.id).busy)
            events = [envelope.event for envelope in session.log.read()]
            end = only(events, TurnFinished)[-1]
            assert (end.status, len(stage.provider.requests)) == ("failed", 1)
            assert "nothing was sent: messages[4] calls 'no name!', which is no name" in end.result["error"]
            assert len(only(events, RequestSent)) == 1
