"""A model call beside the conversation: recorded, paid for, and leaving no word behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.model_call import ModelCalls
from codewhale.models.dialects.base import ModelFacts, Price, ProviderSettings
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import (
    BudgetReserved,
    BudgetSettled,
    Event,
    Notice,
    RequestSent,
    TurnFinished,
    UsageReported,
)
from codewhale.protocol.ops import Limits, SendMessage
from codewhale.session.budget import BudgetExceeded, Spent
from codewhale.session.projection import request_body
from codewhale.session.session import Session
from support.scenes import only
from support.stage import Stage, staged, until


async def test_a_call_beside_the_conversation_leaves_no_word_in_it(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "one"}, {"text": "in short"}, {"text": "two"}]) as stage:
        session = stage.open()
        await stage.engine.send(SendMessage(session.id, "Go"))
        await until(lambda: not stage.engine.turn(session.id).busy)
        calls = ModelCalls(stage.engine.turn(session.id))
        answer = await calls.ask(purpose="summary", extra="Say it shorter.", max_tokens=9)
        assert (answer.text, calls.salvage()) == ("in short", None)
        await stage.engine.send(SendMessage(session.id, "On"))
        await until(lambda: not stage.engine.turn(session.id).busy)
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
        await until(lambda: not stage.engine.turn(session.id).busy)
        with pytest.raises(BudgetExceeded, match="limit of 1 model calls"):
            await ModelCalls(stage.engine.turn(session.id)).ask(purpose="summary", extra="Say it shorter.")
        assert len(stage.provider.requests) == 1


# ------------------------------------------------------------------ bounds and money

PRICE = Price(2.0, 0.5, 8.0)


def counted(tokens: int, output: int = 10) -> dict[str, Any]:
    """A turn whose provider counts this much."""
    return {"text": "So.", "usage": {"input": tokens, "output": output, "cache_miss": tokens}}


async def played(stage: Stage, session: Session, words: str = "Go") -> list[Event]:
    """Send words, wait for the turn's end, and give what it added to the log."""
    before = session.log.seq
    await stage.engine.send(SendMessage(session.id, words))
    await until(lambda: not stage.engine.turn(session.id).busy)
    return [envelope.event for envelope in session.log.read(before + 1)]


async def test_an_answer_is_bounded_by_what_is_left(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [counted(300), counted(400)]) as stage:
        session = stage.open(limits=Limits(tokens=5_000))
        stage.provider.model = ModelFacts(max_output=8_000)
        first = only(await played(stage, session), RequestSent)[0]
        events = await played(stage, session)
        second, reserved = only(events, RequestSent)[0], only(events, BudgetReserved)[0]
        assert 256 <= first.max_tokens < second.max_tokens < 5_000 - 310
        assert reserved.tokens == 5_000 - 310
        assert json.loads(stage.provider.requests[1])["max_tokens"] == second.max_tokens
        whole = [envelope.event for envelope in session.log.read()]
        for number, body in enumerate(stage.provider.requests, start=1):
            assert request_body(whole, number, lambda image: b"") == body


async def test_without_bounds_a_model_is_asked_as_it_is_configured(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [counted(300)] * 2) as stage:
        session = stage.open()
        assert only(await played(stage, session), RequestSent)[0].max_tokens == 0
        stage.provider.model = ModelFacts(max_output=777)
        assert only(await played(stage, session), RequestSent)[0].max_tokens == 777


async def test_a_bound_stops_before_the_call_that_would_cross_it_and_the_session_goes_on(
    home: Path, workspace: Path
) -> None:
    async with staged(home, workspace, [counted(900, 90)] * 40) as stage:
        session = stage.open(limits=Limits(tokens=9_000))
        ends: list[TurnFinished] = []
        while not ends or ends[-1].status == "done":
            ends += only(await played(stage, session), TurnFinished)
        asked = len(stage.provider.requests)
        assert ends[-1].status == "budget" and "Stopped before the next model call" in ends[-1].reason
        assert 990 * asked <= 9_000 < 990 * asked + 2_000
        assert [session.budget.spent.held_tokens for _ in (1,) if session.budget] == [0]
        name = session.id
        await stage.engine.close(name)
        again = stage.open(resume=name)
        assert only(await played(stage, again), TurnFinished)[0].status == "done"


async def test_money_is_reserved_at_the_worst_and_settled_at_the_price(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [counted(1_000, 100)]) as stage:
        stage.provider.model = ModelFacts(max_output=1_000, price=PRICE)
        session = stage.open(limits=Limits(cost=1.0))
        events = await played(stage, session)
        reserved, settled = only(events, BudgetReserved)[0], only(events, BudgetSettled)[0]
        assert reserved.money == pytest.approx(((reserved.tokens - 1_000) * 2 + 1_000 * 8) / 1e6)
        assert settled.money == pytest.approx((1_000 * 2 + 100 * 8) / 1e6)
        assert only(events, UsageReported)[0].usage.cost == settled.money


async def test_a_bound_on_money_shortens_answers_and_then_stops(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [counted(1_000, 500)] * 9) as stage:
        stage.provider.model = ModelFacts(max_output=4_000, price=PRICE)
        session = stage.open(limits=Limits(cost=0.05))
        longest, status = [], "done"
        while status == "done":
            events = await played(stage, session)
            longest += [event.max_tokens for event in only(events, RequestSent)]
            status = only(events, TurnFinished)[0].status
        assert status == "budget"
        assert longest[0] == 4_000 > longest[-1] >= 256
        assert session.accounts.total.cost["USD"] <= 0.05


async def test_warnings_are_told_once_each(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [counted(10)] * 20) as stage:
        session = stage.open(limits=Limits(turns=20))
        codes = [note.code for _ in range(20) for note in only(await played(stage, session), Notice)]
    assert codes == ["budget_80", "budget_95"]


async def test_a_bound_on_money_needs_a_price(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [counted(10)] * 3) as stage:
        stage.provider.settings = ProviderSettings(dialect="openai-chat")
        with pytest.raises(ConfigError, match=r"price of scripted is unknown at scripted.*\[providers\.scripted\.pri"):
            stage.open(limits=Limits(cost=1.0))
        session = stage.open()
        with pytest.raises(SessionError, match="price of scripted is unknown at scripted"):
            stage.control.set_budget(session.id, Limits(cost=1.0))
        stage.provider.model = ModelFacts(price=PRICE)
        stage.control.set_budget(session.id, Limits(cost=1.0))
        stage.provider.model = ModelFacts()
        end = only(await played(stage, session), TurnFinished)[0]
        assert (end.status, "price of scripted" in end.reason) == ("budget", True)
        assert stage.provider.requests == []


async def test_a_sessions_own_bounds_outlive_the_process_and_count_what_was_used(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [counted(900, 100)] * 3) as stage:
        session = stage.open()
        await played(stage, session)
        stage.control.set_budget(session.id, Limits(turns=2, tokens=50_000))
        await stage.engine.close(session.id)
        again = stage.open(resume=session.id, limits=Limits(turns=9))
        assert stage.control.usage(again.id).used == {"turns": 1, "tokens": 1_000, "cost": 0.0}
        assert stage.control.usage(again.id).limits == Limits(turns=2, tokens=50_000)
        ends = [only(await played(stage, again), TurnFinished)[0].status for _ in (1, 2)]
        assert ends == ["done", "budget"]


@pytest.mark.parametrize(
    ("kind", "text", "billed"), [("rate_limit", "", False), ("server", "", True), ("connect", "half", True)]
)
async def test_a_call_that_was_never_begun_costs_nothing(
    home: Path, workspace: Path, kind: str, text: str, billed: bool
) -> None:
    async with staged(home, workspace, [{"text": text, "error": {"kind": kind, "retryable": False}}]) as stage:
        session = stage.open()
        events = await played(stage, session)
        settled = only(events, BudgetSettled)[0]
        assert (settled.tokens > 0) is billed
        assert only(events, UsageReported) == []


async def test_a_fault_of_our_own_holds_nothing_back(home: Path, workspace: Path) -> None:
    def crash(request: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("a mistake")

    async with staged(home, workspace, [crash, counted(10)]) as stage:
        session = stage.open(limits=Limits(turns=1))
        assert only(await played(stage, session), TurnFinished)[0].status == "failed"
        assert session.budget.spent == Spent()
        assert only(await played(stage, session), TurnFinished)[0].status == "done"


# ------------------------------------------------------------------ what the cache should know


async def test_the_share_a_cache_should_know_is_told_before_and_after(home: Path, workspace: Path) -> None:
    script = [counted(1_000), {"text": "So.", "usage": {"input": 1_100, "cache_hit": 1_000, "cache_miss": 100}}]
    async with staged(home, workspace, script) as stage:
        session = stage.open()
        first, second = await played(stage, session), await played(stage, session)
        assert only(first, RequestSent)[0].expected_hit == 0
        assert only(first, UsageReported)[0].cause == "cold"
        sent, report = only(second, RequestSent)[0], only(second, UsageReported)[0]
        assert len(stage.provider.requests[0]) - 4 <= sent.expected_hit <= len(stage.provider.requests[0])
        assert (report.expected_hit, report.cause) == (1_000, "")


async def test_a_resumed_session_knows_what_it_sent_and_how_long_ago(home: Path, workspace: Path) -> None:
    lost = {"text": "So.", "usage": {"input": 1_100, "cache_miss": 1_100}}
    async with staged(home, workspace, [counted(1_000), lost, lost]) as stage:
        session = stage.open()
        await played(stage, session)
        await stage.engine.close(session.id)
        stage.clock.advance(7_200)
        report = only(await played(stage, stage.open(resume=session.id)), UsageReported)[0]
        assert (report.expected_hit, report.cause) == (1_000, "expired")
        stage.clock.advance(60)
        report = only(await played(stage, stage.engine.session(session.id)), UsageReported)[0]
        assert (report.expected_hit, report.cause) == (1_100, "provider")


async def test_a_session_with_the_same_head_finds_it_in_the_cache(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [counted(1_000), counted(1_000)]) as stage:
        await played(stage, stage.open(), "Do one thing. " * 60)
        events = await played(stage, stage.open(), "And now another thing. " * 60)
        sent, report = only(events, RequestSent)[0], only(events, UsageReported)[0]
        assert 0.5 * sent.bytes < sent.expected_hit < sent.bytes - 1_000
        assert (500 < report.expected_hit < 1_000, report.cause) == (True, "cold")
