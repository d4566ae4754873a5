"""A session: one way for anything to happen, and one result for every call."""

from pathlib import Path

import pytest

from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import CallFinished, CallStarted, Envelope, MessageAdded, Notice, TextStreamed
from codewhale.protocol.messages import Message, ToolCall
from codewhale.protocol.tools import Effect
from codewhale.session.session import NEVER_RUN, STOPPED
from support.stage import Stage, staged

CALLS = (ToolCall("a", "read_file", "{}"), ToolCall("b", "todo_write", "{}", wire_name="checklist_write"))


async def told(stage: Stage, session_id: str) -> list[Envelope]:
    """What a listener is told of a notice, a delta and another notice."""
    session = stage.engine.session(session_id)
    listener = session.fanout.subscribe()
    session.emit(Notice("info", "one"), TextStreamed("x"), Notice("info", "two"))
    return await listener.drain()


async def test_what_lasts_is_numbered_and_what_is_only_shown_repeats_the_last_number(
    home: Path, workspace: Path
) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        first = session.log.seq + 1
        envelopes = await told(stage, session.id)
        logged = [envelope.event for envelope in session.log.read(first)]
    assert [envelope.seq for envelope in envelopes] == [first, first, first + 1]
    assert {envelope.session for envelope in envelopes} == {session.id}
    assert logged == [Notice("info", "one"), Notice("info", "two")]


async def test_an_event_happens_in_log_state_and_projection_together(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        before = session.projection.count
        session.emit(MessageAdded(Message("assistant", CALLS)))
        assert session.projection.count == before + 1
        assert list(session.state.open_calls) == ["a", "b"]


async def test_every_open_call_gets_one_result_under_the_name_that_was_sent(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        session.emit(
            MessageAdded(Message("assistant", CALLS)), CallStarted("a", "read_file", "{}", (Effect.READS,), "")
        )
        session.close_calls(STOPPED)
        session.close_calls(STOPPED)
        found = [item.event for item in session.log.read() if isinstance(item.event, CallFinished)]
    assert found == [
        CallFinished("a", "read_file", False, STOPPED, error="interrupted"),
        CallFinished("b", "checklist_write", False, NEVER_RUN, error="interrupted"),
    ]


async def test_what_the_log_refuses_has_not_happened(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        listener = session.fanout.subscribe()
        session.log.close()
        with pytest.raises(SessionError):
            session.emit(MessageAdded(Message("assistant", CALLS)))
        assert session.state.open_calls == {}
        listener.close()
        assert await listener.drain() == []


async def test_stopping_an_idle_session_leaves_it_ready(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        turn = stage.engine.turn(stage.open().id)
        turn.stop("interrupted")
        assert (turn.idle, turn.busy, turn.stop_reason) == (True, False, "")
