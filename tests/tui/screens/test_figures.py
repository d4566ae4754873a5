"""The reports about context, cost and tools."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.memory import LayerRow
from codewhale.protocol.ops import Limits, SessionStatus, SessionUsage
from codewhale.protocol.views import GetContext, GetTools
from support.tuiapp import STATUS
from support.tuiscreens import HOSTILE, context_view, opened, parts, tools_view, usage_view

EMPTY = {"calls": 0, "unpriced": 0, "input": 0, "output": 0, "cost": {}, "saved": {}, "hit_rate": None}


def bar_of(text: str) -> str:
    """The line of blocks, in the dialog's border."""
    return next(line.strip("│ ") for line in text.splitlines() if "░░" in line or "▒▒" in line)


async def test_the_context_is_one_bar_of_the_window_and_a_table() -> None:
    said = parts(("system text", 4_000), ("tools", 6_000), ("compacted", 3_000), ("your messages", 5_000),
                 ("tool results", 10_000))  # fmt: skip
    rules = LayerRow("repo-rules", "Rules", "workspace", "repo", "head", 2, 6_100, 6_000, 2_000, "2026-05-03T22:14:00Z",
                     (("view", "/rules"),))  # fmt: skip
    view = context_view(window=60_000, reserved=6_000, spendable=54_000, used=30_000, rows=(rules,), parts=said)
    async with opened("context", {GetContext: view, SessionStatus: STATUS}, size=(100, 50)) as stage:
        text = await stage.shown("grey-1 at parrot", "60,000 tokens", "30,000 of 54,000 tokens used, 55 %")
        assert bar_of(text) == "█" * 4 + "▓" * 6 + "█" * 2 + "▓" * 3 + "█" * 15 + "░" * 24 + "▒" * 6
        flat = [" ".join(line.strip("│ ").split()) for line in text.splitlines()]
        for row in ("█ System 4,000 7 %", "▓ Tools 6,000 10 %", "█ Instructions 2,000 3 %", "▓ Memory 3,000 5 %",
                    "█ Conversation 15,000 25 %", "your messages 15,000 bytes, 5,000 tokens",
                    "Rules, instructions 6,000 bytes, 2,000 tokens",
                    "in the head · 2 items, 6,100 bytes · 2026-05-03 · /rules", "░ Free 24,000 40 %"):  # fmt: skip
            assert row in flat, (row, flat)
        assert "Compacts automatically at 48,000 tokens." in text and "from the model table" in text


async def test_a_context_of_two_parts_fills_just_what_is_used() -> None:
    view = context_view(used=30_000, parts=parts(("tools", 10_000), ("answers", 20_000)), compactions=0)
    async with opened("context", {GetContext: view, SessionStatus: STATUS}, size=(100, 40)) as stage:
        text = await stage.shown("counted by the provider")
        bar = bar_of(text)
        assert len(bar) == 60 and abs(bar.count("▓") - 9) <= 1 and abs(bar.count("█") - 19) <= 1
        assert "Compacted" not in text


async def test_a_context_that_is_overfull_or_empty() -> None:
    odd = context_view(
        used=90_000,
        spendable=0,
        parts=parts((HOSTILE, 5)),
        rows=(LayerRow(HOSTILE, HOSTILE, "", "repo", "head", note=HOSTILE),),
        threshold=0,
        calibrated=False,
        model=HOSTILE,
    )
    async with opened("context", {GetContext: odd, SessionStatus: STATUS}) as stage:
        await stage.shown("Automatic compaction is off", "estimated")
        stage.clean()
    async with opened(
        "context", {GetContext: context_view(parts=()), SessionStatus: STATUS}, language="zh-Hans"
    ) as stage:
        await stage.shown("对话", "空闲", "词元")


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
