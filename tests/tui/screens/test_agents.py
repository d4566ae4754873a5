"""The sub-agents of a session on their screen: rows, a transcript, a message, an end."""

from typing import Any

from msgspec.structs import replace

from codewhale.protocol.children import ChildView, ListChildren, ReadEvents, StopChild, TellChild
from codewhale.protocol.events import CallFinished, CallStarted, Envelope, MessageAdded, TurnStarted
from codewhale.protocol.messages import Message, Text, ToolCall
from support.tuirecord import envelopes, until
from support.tuiscreens import SESSION, opened

SCOUT = ChildView(
    "s-1", "scout", "explore", "find callers", "running", steps=3, tokens=4210, seconds=12.0, cost=0.0042
)  # fmt: skip
MAKER = ChildView("s-2", "maker", "implementer", "change it", "failed", answer="half", error="no")
LOG = envelopes(
    [
        TurnStarted(1),
        MessageAdded(Message("user", (Text("find callers", source="person"),))),
        MessageAdded(Message("assistant", (ToolCall("c1", "read_file", '{"path": "basket.py"}'),))),
        CallStarted("c1", "read_file", '{"path": "basket.py"}', (), "mode"),
        CallFinished("c1", "read_file", True, "1 def total", 4),
        MessageAdded(Message("assistant", (Text("SUMMARY: two callers"),))),
    ]
)


def log(query: ReadEvents) -> tuple[Envelope, ...]:
    return tuple(one for one in LOG if one.seq > query.seq) if query.session == "s-1" else ()


ANSWERS: dict[type, Any] = {ListChildren: (SCOUT, MAKER), ReadEvents: log}


async def test_rows_say_how_each_stands_and_the_transcript_is_below() -> None:
    async with opened("agents", ANSWERS, size=(120, 40)) as stage:
        await stage.shown("◐ scout (explore)")
        assert "running · 3 steps · 12 s · 4.2k · $0.0042 · find callers" in stage.text
        assert "✗ maker (implementer)" in stage.text and "1 running" in stage.text
        await stage.shown("two callers")
        await stage.press("enter")
        await until(stage.pilot, lambda: "maker" not in stage.text)
        assert "┃ find callers" in stage.text and "basket.py" in stage.text
        await stage.press("escape")
        await stage.shown("maker")


async def test_one_is_stopped_on_the_second_press_and_one_that_is_over_is_not() -> None:
    async with opened("agents", {**ANSWERS, StopChild: replace(SCOUT, status="cancelled")}) as stage:
        await stage.shown("scout")
        await stage.press("x")
        await stage.shown("Press x again to stop scout.")
        assert stage.client.ops == []
        await stage.press("x")
        await stage.shown("scout was stopped.")
        assert stage.client.ops == [StopChild(SESSION, "s-1")]
        await stage.press("down", "x")
        await stage.shown("This agent has already ended.")


async def test_a_message_goes_to_one_that_is_over_too() -> None:
    async with opened("agents", {**ANSWERS, TellChild: MAKER}) as stage:
        await stage.shown("scout")
        await stage.press("down", "i")
        await stage.press(*"again", "enter")
        await stage.shown("Sent to maker.")
        assert stage.client.ops == [TellChild(SESSION, "s-2", "again")]


async def test_none_is_said() -> None:
    async with opened("agents", {**ANSWERS, ListChildren: ()}) as stage:
        await stage.shown("No sub-agents.")
