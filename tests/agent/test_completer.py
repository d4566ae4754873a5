"""One-shot model calls: recorded whole, paid for, and no part of the conversation."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.agent.completer import Completions
from codewhale.models.dialects.base import ModelFacts, Price
from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import BudgetSettled, Event, MessageAdded, RequestSent, UsageReported
from codewhale.protocol.messages import Image, Message, Text
from codewhale.protocol.ops import Limits
from codewhale.protocol.ports import Infilled
from codewhale.session.budget import Budget
from codewhale.session.projection import request_body
from codewhale.session.redaction import Redactor
from codewhale.session.session import Session
from support.stage import Stage, staged, until

GAP_BYTES = 196_608
SECRET = "sk-0123456789abcdef"


def opened(stage: Stage, window: int = 1_000_000, price: Price | None = None, **limits: Any) -> Session:
    """A session whose provider fills in the middle, with a message waiting for the next request."""
    provider = stage.provider
    provider.settings = msgspec.structs.replace(provider.settings, facts={"fim": "completions"})
    provider.model = ModelFacts(window=window, window_source="configured", price=price)
    session = stage.open(limits=Limits(**limits))
    session.emit(MessageAdded(Message("user", (Text("Hello"),))))
    return session


def completions(stage: Stage, **secrets: str) -> Completions:
    """The completer over the stage's sessions."""
    return Completions(stage.engine.turn, lambda session: Redactor(secrets))


def logged(session: Session, *kinds: type[Event]) -> list[Any]:
    """The events of these types in the log."""
    return [envelope.event for envelope in session.log.read() if isinstance(envelope.event, kinds)]


def wire(session: Session) -> bytes:
    """The next request's body."""
    from codewhale.models.dialects.base import RequestOptions

    assert session.state.header is not None
    return session.projection.request(session.state.header, RequestOptions())[0]


def no_image(image: Image) -> bytes:
    """There are none."""
    raise KeyError(image.artifact)


async def test_a_gap_is_filled_beside_the_conversation(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "middle", "usage": {"input": 7, "output": 2}}]) as stage:
        session = opened(stage)
        before, rate = wire(session), session.state.tokens_per_byte
        found = await completions(stage).infill(session.id, "a(", ")b", max_tokens=9)
        assert found == Infilled("middle")
        assert (wire(session), session.state.tokens_per_byte, session.state.messages) == (before, rate, 1)
        (sent,), (usage,) = logged(session, RequestSent), logged(session, UsageReported)
        events = [envelope.event for envelope in session.log.read()]
    assert (sent.request, sent.purpose, sent.messages, sent.max_tokens) == (1, "infill", 0, 9)
    assert (usage.request, usage.usage.input, usage.usage.output) == (1, 7, 2)
    body = request_body(events, 1, no_image)
    assert body == stage.provider.requests[0] and len(body) == sent.bytes
    assert json.loads(body)["prompt"] == "a(" and json.loads(body)["suffix"] == ")b"


async def test_a_prompt_is_answered_beside_the_conversation(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "forty-two"}]) as stage:
        session = opened(stage)
        before = wire(session)
        assert await completions(stage).complete(session.id, "How many?", max_tokens=50) == "forty-two"
        assert wire(session) == before
        (sent,) = logged(session, RequestSent)
        body = request_body([envelope.event for envelope in session.log.read()], 1, no_image)
    assert sent.purpose == "complete" and body == stage.provider.requests[0]
    asked = json.loads(stage.provider.requests[0])
    assert asked["messages"] == [{"role": "user", "content": "How many?"}]
    assert "tools" not in asked and asked["max_tokens"] == 50


async def test_the_next_request_counts_on(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "a"}, {"text": "b"}]) as stage:
        session = opened(stage)
        here = completions(stage)
        await asyncio.gather(*(here.infill(session.id, "a", "b", max_tokens=9) for _ in range(2)))
        assert [sent.request for sent in logged(session, RequestSent)] == [1, 2]
        assert session.state.requests == 2
        assert [settled.steps for settled in logged(session, BudgetSettled)] == [1, 2]


async def test_no_secret_is_sent(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "x"}, {"text": "y"}]) as stage:
        session = opened(stage)
        here = completions(stage, API_KEY=SECRET)
        await here.infill(session.id, f"key = {SECRET}\n", f"\n# {SECRET}", max_tokens=9)
        await here.complete(session.id, f"What is {SECRET}?", max_tokens=9)
    assert all(SECRET.encode() not in body and b"[redacted API_KEY]" in body for body in stage.provider.requests)


async def test_a_call_is_paid_and_a_bound_is_kept(home: Path, workspace: Path) -> None:
    price = Price(miss=10.0, hit=1.0, output=20.0)
    script = [{"text": "x", "usage": {"input": 1000, "output": 100}}]
    async with staged(home, workspace, script) as stage:
        session = opened(stage, price=price, turns=1)
        here = completions(stage)
        await here.infill(session.id, "a", "b", max_tokens=9)
        with pytest.raises(ToolError, match="limit of 1 model calls") as caught:
            await here.infill(session.id, "a", "b", max_tokens=9)
        (usage,), (settled,) = logged(session, UsageReported), logged(session, BudgetSettled)
        assert len(stage.provider.requests) == 1
    assert caught.value.kind == "not_available"
    assert usage.usage.cost == pytest.approx(0.012) and settled.money == pytest.approx(0.012)
    assert settled.tokens == 1100


async def test_a_bound_on_money_counts_the_longest_answer(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "x"}]) as stage:
        session = opened(stage, price=Price(miss=0.0, hit=0.0, output=1_000_000.0), cost=5.0)
        here = completions(stage)
        with pytest.raises(ToolError, match="cost limit"):
            await here.infill(session.id, "a", "b", max_tokens=6)
        assert stage.provider.requests == []
        await here.infill(session.id, "a", "b", max_tokens=4)
        assert len(stage.provider.requests) == 1


async def test_another_models_gap_has_that_models_price(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "x", "usage": {"input": 1000, "output": 100}}]) as stage:
        session = opened(stage, price=Price(miss=10.0, hit=1.0, output=20.0), cost=5.0)
        settings = stage.provider.settings
        facts = {**settings.facts, "fim_model": "filler"}
        stage.provider.settings = msgspec.structs.replace(settings, facts=facts)
        with pytest.raises(ToolError, match="price of filler is unknown at scripted"):
            await completions(stage).infill(session.id, "a", "b", max_tokens=9)
        prices = {"filler": Price(miss=1.0, hit=1.0, output=2.0)}
        stage.provider.settings = msgspec.structs.replace(settings, facts=facts, prices=prices)
        await completions(stage).infill(session.id, "a", "b", max_tokens=9)
        (usage,) = logged(session, UsageReported)
    assert usage.usage.cost == pytest.approx(0.0012)
    assert json.loads(stage.provider.requests[0])["model"] == "filler"


def held(session: Session) -> tuple[int, int]:
    """Steps and tokens that are held."""
    budget = session.budget
    assert isinstance(budget, Budget)
    return budget.spent.held_steps, budget.spent.held_tokens


async def test_a_cancelled_call_is_settled(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "x", "delay": 30}]) as stage:
        session = opened(stage)
        task = asyncio.create_task(completions(stage).infill(session.id, "a", "b", max_tokens=9))
        await until(lambda: bool(stage.provider.requests))
        assert held(session)[0] == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert held(session) == (0, 0)
        assert len(logged(session, BudgetSettled)) == 1


@pytest.mark.parametrize(("kind", "free"), [("auth", True), ("server", False)])
async def test_a_failed_call_is_told_and_settled(home: Path, workspace: Path, kind: str, free: bool) -> None:
    async with staged(home, workspace, [{"error": {"kind": kind, "message": "no luck"}}]) as stage:
        session = opened(stage)
        with pytest.raises(ToolError, match="no luck") as caught:
            await completions(stage).infill(session.id, "a", "b", max_tokens=9)
        (settled,) = logged(session, BudgetSettled)
        assert held(session) == (0, 0)
    assert caught.value.kind == "execution_failed" and (settled.tokens == 0) is free


async def test_a_provider_that_cannot_says_what_would_do(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        with pytest.raises(ToolError, match=r"providers\.scripted\.facts\.fim.*deepseek") as caught:
            await completions(stage).infill(session.id, "a", "b", max_tokens=9)
    assert caught.value.kind == "not_available" and stage.provider.requests == []


@pytest.mark.parametrize("window", [8192, 1_000_000])
async def test_of_a_long_file_the_lines_next_to_the_gap_are_sent(home: Path, workspace: Path, window: int) -> None:
    lines = [f"line {number} é\n" for number in range(60_000)]
    prefix, suffix = "".join(lines[:30_000]), "".join(lines[30_000:])
    async with staged(home, workspace, [{"text": "x"}]) as stage:
        found = await completions(stage).infill(opened(stage, window).id, prefix, suffix, max_tokens=1024)
    asked = json.loads(stage.provider.requests[0])
    room = min(GAP_BYTES, (window - 1024) * 3)
    size = len(asked["prompt"].encode()) + len(asked["suffix"].encode())
    assert 0.95 * (room - 1000) < size <= room
    assert prefix.endswith(asked["prompt"]) and asked["prompt"].startswith("line ")
    assert suffix.startswith(asked["suffix"]) and asked["suffix"].endswith("é\n")
    assert 1.9 < len(asked["prompt"]) / len(asked["suffix"]) < 2.1
    assert found.left_out == len((prefix + suffix).encode()) - size


async def test_a_short_side_leaves_its_room_to_the_other(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "x"}, {"text": "x"}]) as stage:
        session, here = opened(stage), completions(stage)
        await here.infill(session.id, "short\n", "long\n" * 100_000, max_tokens=9)
        await here.infill(session.id, "long\n" * 100_000, "short\n", max_tokens=9)
    sizes = [(len(asked["prompt"]), len(asked["suffix"])) for asked in map(json.loads, stage.provider.requests)]
    assert sizes[0][0] == sizes[1][1] == 6
    assert GAP_BYTES - 20 < sum(sizes[0]) <= GAP_BYTES and GAP_BYTES - 20 < sum(sizes[1]) <= GAP_BYTES


async def test_a_window_without_room_is_refused_before_anything_is_sent(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "x"}]) as stage:
        session = opened(stage, window=2048)
        with pytest.raises(ToolError, match="leaves no room") as caught:
            await completions(stage).infill(session.id, "a", "b", max_tokens=2000)
        assert stage.provider.requests == []
    assert caught.value.field == "max_tokens"
