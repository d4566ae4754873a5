"""The client: operations in, events out, questions answered."""

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import Envelope, MessageAdded, SessionOpened, TurnFinished, TurnStarted
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import CloseSession, GetMessages, ListSessions, OpenSession, SendMessage, SessionStatus
from codewhale.testing import collect, harness
from support.patience import HANG

DONE = {"text": "That is all."}


async def test_events_begin_where_they_are_asked_to_and_miss_nothing(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE, DONE]) as stage:
        session = await stage.open()
        await stage.turn("One", session)
        past = await collect(stage.client.events(session))
        assert [envelope.seq for envelope in past] == list(range(1, len(past) + 1))
        assert isinstance(past[0].event, SessionOpened) and isinstance(past[-1].event, TurnFinished)
        later = await collect(stage.client.events(session, from_seq=past[-3].seq))
        assert later == past[-2:]


async def test_a_listener_that_came_late_gets_past_and_present_in_one_row(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE, DONE]) as stage:
        session = await stage.open()
        await stage.turn("One", session)
        seen: list[Envelope] = []
        async for envelope in stage.client.events(session):
            seen.append(envelope)
            if isinstance(envelope.event, TurnFinished):
                if envelope.event.turn == 2:
                    break
                await stage.client.submit(SendMessage(session, "Two"))
        log = list(stage.app.engine.session(session).log.read())
    durable = [envelope for number, envelope in enumerate(seen) if not number or envelope.seq > seen[number - 1].seq]
    assert [envelope.seq for envelope in durable] == [envelope.seq for envelope in log]


async def everything(events: AsyncIterator[Envelope]) -> list[Envelope]:
    """A stream to its end."""
    return [envelope async for envelope in events]


async def test_the_stream_ends_when_the_session_closes(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open()
        await stage.turn("One", session)
        listening = asyncio.create_task(everything(stage.client.events(session, from_seq=-1)))
        await asyncio.sleep(0)
        await stage.client.submit(CloseSession(session))
        async with asyncio.timeout(HANG):
            assert await listening == []


async def test_a_stream_begins_where_it_was_asked_for(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open()
        stream = stage.client.events(session, from_seq=-1)
        await stage.turn("One", session)
        heard = [type(one.event) for one in await collect(stream)]
    assert TurnStarted in heard and MessageAdded in heard and heard[-1] is TurnFinished


async def test_a_stream_that_nobody_holds_is_forgotten(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open()
        fanout = stage.app.engine.session(session).fanout
        before = len(fanout._listeners)
        stream = stage.client.events(session, from_seq=-1)
        assert len(fanout._listeners) == before + 1
        del stream
        gc.collect()
        assert len(fanout._listeners) == before


async def test_questions_are_answered(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open(mode=Mode.PLAN)
        await stage.turn("One", session)
        view = await stage.client.query(SessionStatus(session))
        assert (view.session, view.mode, view.turns, view.busy) == (session, Mode.PLAN, 1, False)
        (row,) = await stage.client.query(ListSessions(str(workspace)))
        assert (row.id, row.title, row.turns) == (session, "One", 1)
        messages = await stage.client.query(GetMessages(session))
        assert [(message.role, message.text) for message in messages] == [
            ("user", "One"),
            ("assistant", "That is all."),
        ]


async def test_a_session_that_is_not_open_is_said_to_be_so(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        with pytest.raises(SessionError):
            await stage.client.submit(SendMessage("20260101-000000-00000000", "Go"))
        with pytest.raises(SessionError):
            await stage.client.query(GetMessages("20260101-000000-00000000"))
        with pytest.raises(SessionError):
            await stage.client.submit(OpenSession(str(workspace), resume="latest"))
