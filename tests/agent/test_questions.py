"""Questions to a model beside the conversation: recorded by what they are made of, admitted, paid for and bounded."""

import asyncio
import hashlib
from pathlib import Path

import msgspec
import pytest

from codewhale.agent.completer import Completions
from codewhale.models.dialects.base import ModelFacts, Price
from codewhale.protocol.errors import QuestionFailed
from codewhale.protocol.events import BudgetSettled, RequestSent, UsageReported
from codewhale.protocol.ops import Limits
from codewhale.protocol.ports import ModelQuestion
from codewhale.rlm.recipes import query_text, recipe, text_of
from codewhale.session.questions import read_record
from codewhale.session.redaction import Redactor
from codewhale.session.session import Session
from support.patience import Moment
from support.stage import Stage, staged, until

LARGE = {"input": 125_000, "output": 4096, "cache_hit": 100_000, "cache_miss": 25_000, "reasoning": 1000}
PART = "x" * 100_000


def opened(stage: Stage, **limits: float) -> Session:
    stage.provider.model = ModelFacts(window=1_000_000, price=Price(miss=1.0, hit=0.1, output=2.0))
    return stage.open(limits=Limits(**limits))  # type: ignore[arg-type]


def completions(stage: Stage, **secrets: str) -> Completions:
    return Completions(stage.engine.turn, lambda session: Redactor(secrets))


async def test_the_log_holds_what_a_question_is_made_of_and_the_body_can_be_built_again(
    home: Path, workspace: Path
) -> None:
    kept, source = {"p": b"How many x are in: {slice}"}, PART.encode()
    asked = ModelQuestion(query_text("How many x are in: {slice}", PART), recipe("p", "s", (0, 100_000)), "Be short.")
    async with staged(home, workspace, [{"text": "100000", "usage": LARGE}]) as stage:
        session = opened(stage)
        before = Path(session.log.path).stat().st_size
        reply = await completions(stage).question(session.id, asked)
        await session.barrier()
        grown = Path(session.log.path).stat().st_size - before
        (sent,) = [one.event for one in session.log.read() if isinstance(one.event, RequestSent)]
        record = read_record(sent.extra)
        text = text_of(record.recipe, kept.__getitem__, lambda sha, start, end: source[start:end])
        body = record.body(stage.provider.dialect, text, sent.max_tokens)
        assert stage.provider.requests[-1] == body
    assert (reply.text, sent.purpose, hashlib.sha256(body).hexdigest()) == ("100000", "question", sent.sha256)
    assert sent.bytes == len(body) > 100_000 and grown <= 1024
    assert b'"content":"Be short."' in body


async def test_a_question_is_paid_from_the_budget_and_refused_where_it_has_no_room(home: Path, workspace: Path) -> None:
    answer = {"text": "yes", "usage": {"input": 10, "output": 1}}
    async with staged(home, workspace, [answer] * 3) as stage:
        session, ask = opened(stage, tokens=6000), completions(stage)
        await ask.question(session.id, ModelQuestion("Is it?", {}))
        kinds = [type(one.event) for one in session.log.read()][-3:]
        assert kinds == [RequestSent, UsageReported, BudgetSettled]
        with pytest.raises(QuestionFailed) as refused:
            await ask.question(session.id, ModelQuestion("Is it?", {}, max_tokens=8000))
        assert (refused.value.failure, len(stage.provider.requests)) == ("budget", 1)


async def test_the_fast_model_is_asked_and_paid_for_where_one_is_known(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "a"}, {"text": "b"}]) as stage:
        session, ask = opened(stage), completions(stage)
        settings = stage.provider.settings
        facts = {**settings.facts, "fast_model": "quick"}
        stage.provider.settings = msgspec.structs.replace(
            settings, facts=facts, prices={"quick": Price(miss=4.0, hit=1.0, output=8.0)}
        )
        reply = await ask.question(session.id, ModelQuestion("Which?", {}, temperature=0.4))
        assert reply.model == ask.asks(session.id) == "quick"
        assert (await ask.question(session.id, ModelQuestion("Which?", {}, model="slow"))).model == "slow"
        assert {model for _, model in session.accounts.by_model} == {"quick", "slow"}


async def test_an_answer_that_does_not_fit_its_schema_is_none(home: Path, workspace: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with staged(home, workspace, [{"text": '{"n": 3}'}, {"text": '{"n": "three"}'}]) as stage:
        session, ask = opened(stage), completions(stage)
        assert (await ask.question(session.id, ModelQuestion("n?", {}, schema=schema))).text == '{"n": 3}'
        with pytest.raises(QuestionFailed, match="integer") as failed:
            await ask.question(session.id, ModelQuestion("n?", {}, schema=schema))
        assert failed.value.failure == "schema"


async def test_a_quota_error_closes_the_lane_for_those_that_wait(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"error": {"kind": "quota", "message": "no credit"}}] * 4) as stage:
        session, ask = opened(stage), completions(stage)
        results = await asyncio.gather(
            *(ask.question(session.id, ModelQuestion(f"{n}?", {})) for n in range(30)), return_exceptions=True
        )
    assert {one.failure for one in results if isinstance(one, QuestionFailed)} == {"quota"} and len(results) == 30
    assert len(stage.provider.requests) <= 10


async def test_a_question_ends_after_its_seconds_and_by_a_cancel(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "late", "delay": 60}, {"text": "late", "delay": 60}]) as stage:
        session, ask = opened(stage), completions(stage)
        begun = Moment()
        with pytest.raises(QuestionFailed) as late:
            await ask.question(session.id, ModelQuestion("?", {}, seconds=0.2))
        waiting = asyncio.create_task(ask.question(session.id, ModelQuestion("?", {})))
        await until(lambda: len(stage.provider.requests) == 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (late.value.failure, session.budget.spent.held_tokens) == ("timeout", 0)
    assert not begun.hung
