"""A model call beside the conversation: recorded, paid for, and leaving no word behind."""

import json
from pathlib import Path

import pytest

from codewhale.engine.budget import BudgetExceeded
from codewhale.engine.modelcall import ModelCalls
from codewhale.engine.projection import request_body
from codewhale.protocol.events import BudgetReserved, BudgetSettled, RequestSent, UsageReported
from codewhale.protocol.ops import Limits, SendMessage
from support.stage import staged, until


async def test_a_call_beside_the_conversation_leaves_no_word_in_it(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "one"}, {"text": "in short"}, {"text": "two"}]) as stage:
        session = stage.open()
        await stage.engine.send(SendMessage(session.id, "Go"))
        await until(lambda: not session.busy)
        assert session.budget is not None
        calls = ModelCalls(session, session.budget)
        answer = await calls.ask(purpose="summary", extra="Say it shorter.", max_tokens=9)
        assert (answer.text, calls.salvage()) == ("in short", None)
        await stage.engine.send(SendMessage(session.id, "On"))
        await until(lambda: not session.busy)
        _, beside, after = [json.loads(body) for body in stage.provider.requests]
        assert beside["messages"][-1] == {"role": "user", "content": "Say it shorter."}
        assert beside["max_tokens"] == 9
        assert "Say it shorter." not in json.dumps(after)
        events = [envelope.event for envelope in session.log.read()]
        sent = [event for event in events if isinstance(event, RequestSent)]
        assert [(event.request, event.purpose, event.extra) for event in sent] == [
            (1, "", ""),
            (2, "summary", "Say it shorter."),
            (3, "", ""),
        ]
        for number, body in enumerate(stage.provider.requests, start=1):
            assert request_body(events, number, lambda image: b"") == body
        for kind in (BudgetReserved, BudgetSettled, UsageReported):
            assert [event.request for event in events if isinstance(event, kind)] == [1, 2, 3]


async def test_nothing_is_sent_that_the_budget_has_no_room_for(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "one"}]) as stage:
        session = stage.open(limits=Limits(turns=1))
        await stage.engine.send(SendMessage(session.id, "Go"))
        await until(lambda: not session.busy)
        assert session.budget is not None
        with pytest.raises(BudgetExceeded, match="bound of 1 model calls"):
            await ModelCalls(session, session.budget).ask(purpose="summary", extra="Say it shorter.")
        assert len(stage.provider.requests) == 1
