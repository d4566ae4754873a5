"""The reports about context, cost and tools."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import Limits, SessionUsage
from codewhale.protocol.views import GetContext, GetTools
from support.tuiscreens import HOSTILE, context_view, opened, tools_view, usage_view

EMPTY = {"calls": 0, "unpriced": 0, "input": 0, "output": 0, "cost": {}, "saved": {}, "hit_rate": None}


async def test_the_context_layer_by_layer() -> None:
    async with opened("context", {GetContext: context_view()}) as stage:
        text = await stage.shown("grey-1", "64,000 tokens", "30,000 of 60,000 tokens, 50 %")
        assert "from the model table" in text and "messages" in text and "19,000" in text
        assert "at 48,000 tokens" in text and "█" * 15 in text and "█" * 31 not in text


async def test_a_context_that_is_overfull_or_empty() -> None:
    odd = context_view(used=90_000, spendable=0, layers=((HOSTILE, 5),), threshold=0, calibrated=False, model=HOSTILE)
    async with opened("context", {GetContext: odd}) as stage:
        await stage.shown("off; use /compact", "estimated")
        stage.clean()
    async with opened("context", {GetContext: context_view(layers=())}, language="zh-Hans") as stage:
        await stage.shown("下一次请求", "词元")


async def test_what_a_session_cost() -> None:
    async with opened("cost", {SessionUsage: usage_view()}) as stage:
        text = await stage.shown("0.4200 USD", "0.1000 USD", "0.2100 USD", "saved by the cache", "80.0%")
        assert "0.42 of 1" in text and "miss 0.5, hit 0.1, output 2 per million tokens, USD" in text
        assert "80 of 100 tokens in from the cache, 9 out" in text and "expired" in text


async def test_what_is_not_known_of_the_cost_is_said() -> None:
    unpriced = EMPTY | {"calls": 2, "unpriced": 2}
    partly = EMPTY | {"calls": 2, "unpriced": 1, "cost": {"USD": 0.5}, "model": HOSTILE}
    models = (partly, EMPTY | {"model": "b"})
    view = usage_view(
        total=unpriced,
        turn=partly,
        price=None,
        models=models,
        calls=({"request": 1, "cause": HOSTILE},),
        limits=Limits(tokens=1000, turns=3),
    )
    async with opened("cost", {SessionUsage: view}) as stage:
        text = await stage.shown("unknown: no price for this model", "plus 1 call without a price")
        assert "set prices in" in text and "95,000 of 1,000 tokens" in text and "4 of 3 model calls" in text
        stage.clean()
    async with opened("cost", {SessionUsage: usage_view(total=EMPTY, turn=EMPTY, calls=(), turns=0)}) as stage:
        await stage.shown("No model calls yet.")


async def test_the_tools_of_a_request() -> None:
    names = [f"tool_{number}" for number in range(40)]
    async with opened("tools", {GetTools: tools_view(*names)}) as stage:
        await stage.shown("tools in each request", "40", "12,345 bytes", "tool_0", "900")
        await stage.press("end")
        await stage.shown("tool_39", "activated in this session")
    async with opened("tools", {GetTools: tools_view(*names)}, "tool_35") as stage:
        await stage.shown("tool_35")
    async with opened("tools", {GetTools: tools_view(HOSTILE)}) as stage:
        await stage.shown("a\\x1b]0;t")
        stage.clean()


async def test_what_cannot_be_had_is_said() -> None:
    for name, query in (("context", GetContext), ("cost", SessionUsage), ("tools", GetTools)):
        async with opened(name, {query: CodeWhaleError("the session is closed")}) as stage:
            await stage.shown("the session is closed")
            await stage.press("escape")
            assert await stage.done() is None
