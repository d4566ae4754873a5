"""/tokens, /cost, /cache and /budget against a whole application."""

from pathlib import Path
from typing import Any

import pytest

from codewhale.models.dialects.base import ModelFacts, Price
from codewhale.protocol.events import BudgetChanged, TurnFinished
from codewhale.protocol.ops import CommandOutput, Limits, RunCommand, SessionUsage
from codewhale.testing import Harness, harness
from support.scenes import only

PRICE = Price(2.0, 0.5, 8.0, source="https://prices.example", date="2026-11-01")


def said(hit: int, miss: int, output: int = 10) -> dict[str, Any]:
    """A turn with this count."""
    usage = {"input": hit + miss, "output": output, "cache_hit": hit, "cache_miss": miss}
    return {"text": "So it is.", "usage": usage}


async def run(stage: Harness, session: str, line: str) -> CommandOutput:
    """What a command says."""
    output: CommandOutput = await stage.client.submit(RunCommand(session, line))
    return output


def priced(stage: Harness, price: Price | None = PRICE) -> None:
    """Give the model a price."""
    stage.provider.model = ModelFacts(200_000, "configured", 4_000, price)


async def test_before_any_call_there_is_nothing_to_tell(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        session = await stage.open()
        for name in ("/tokens", "/cost", "/cache"):
            output = await run(stage, session, name)
            assert output.ok and "no model call yet" in output.text, name


async def test_tokens_keeps_the_four_quantities_apart(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [said(0, 10_000), said(9_000, 1_500)]) as stage:
        priced(stage)
        session = await stage.open()
        await stage.turn("One", session)
        await stage.turn("Two", session)
        text = (await run(stage, session, "/tokens")).text
    lines = dict(line.split("  ", 1) for line in text.splitlines())
    assert lines["window"].strip() == "200,000 (configured)"
    assert lines["active"].strip().startswith("10,510 (5% of it)")
    assert lines["reserved"].strip() == "4,000 for an answer"
    assert lines["billed in"].strip() == "20,500 in 2 calls, 10,500 of them this turn"
    assert lines["cached"].strip() == "9,000 tokens, 43.9% of input; 11,500 missed"


async def test_cost_is_what_the_price_says_and_where_it_stands(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [said(0, 10_000), said(9_000, 1_000)]) as stage:
        priced(stage)
        session = await stage.open()
        await stage.turn("One", session)
        ends = only(await stage.turn("Two", session), TurnFinished)
        text = (await run(stage, session, "/cost")).text
        view = await stage.client.query(SessionUsage(session))
    second = (9_000 * 0.5 + 1_000 * 2 + 10 * 8) / 1e6
    assert ends[0].result["usage"] == {
        "input": 10_000, "output": 10, "cache_hit": 9_000, "cache_miss": 1_000, "cost": pytest.approx(second),
        "currency": "USD",
    }  # fmt: skip
    assert "cost       0.026660 USD" in text
    assert "saved      0.013500 USD by the cache" in text
    assert "https://prices.example, 2026-11-01" in text
    assert view.total["saved"] == {"USD": pytest.approx(9_000 * 1.5 / 1e6)}


async def test_an_unknown_price_is_said_to_be_unknown(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [said(0, 10)]) as stage:
        session = await stage.open()
        ends = only(await stage.turn("One", session), TurnFinished)
        text = (await run(stage, session, "/cost")).text
    assert ends[0].result["usage"]["cost"] is None
    assert "cost       unknown: no price for this model" in text
    assert '[providers.scripted.prices."scripted"]' in text


async def test_cache_names_each_cause_and_each_call(home: Path, workspace: Path) -> None:
    script = [said(0, 10_000), said(2_000, 9_000), said(10_900, 100)]
    async with harness(home, workspace, script) as stage:
        session = await stage.open()
        for words in ("One", "Two", "Three"):
            await stage.turn(words, session)
        text = (await run(stage, session, "/cache calls")).text
    assert "cold      10,000 tokens in 1 call: first request to this model" in text
    assert "provider  9,000 tokens in 1 call: the provider's cache expired" in text
    assert "call 1    0 of 10,000 tokens, 0 expected, cold" in text
    assert text.splitlines()[-1].startswith("call 3    10,900 of 11,000 tokens, 11,000 expected")


async def test_a_budget_is_set_shown_kept_and_lifted(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [said(0, 10)] * 9) as stage:
        priced(stage)
        session = await stage.open()
        assert (await run(stage, session, "/budget")).text.startswith("No limits are set. Use /budget AMOUNT")
        assert "0 of 2 USD used (0%), 2 left" in (await run(stage, session, "/budget 2")).text
        assert "0 of 60,000 tokens used" in (await run(stage, session, "/budget tokens 60k")).text
        text = (await run(stage, session, "/budget turns 1")).text
        assert text.count("session") == 3
        await stage.turn("One", session)
        end = only(await stage.turn("Two", session), TurnFinished)[0]
        assert (end.status, "limit of 1 model calls is reached" in end.reason) == ("budget", True)
        await run(stage, session, "/budget turns off")
        assert only(await stage.turn("Three", session), TurnFinished)[0].status == "done"
        assert "20 of 60,000 tokens" not in (await run(stage, session, "/budget off")).text
        events = [envelope.event for envelope in stage.app.engine.session(session).log.read()]
    changed = only(events, BudgetChanged)
    assert changed[2].limits == Limits(turns=1, tokens=60_000, cost=2.0)
    assert changed[-1].limits == Limits()


@pytest.mark.parametrize("line", ["much", "-1", "0", "tokens", "tokens 0", "tokens x", "turns -3", "1 2 3", "nan"])
async def test_what_makes_no_sense_bounds_nothing(home: Path, workspace: Path, line: str) -> None:
    async with harness(home, workspace, []) as stage:
        session = await stage.open()
        output = await run(stage, session, f"/budget {line}")
        assert (output.ok, "Use /budget AMOUNT" in output.text) == (False, True)
        assert "No limits" in (await run(stage, session, "/budget")).text
