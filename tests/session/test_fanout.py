"""Listeners: everything, in order, at their own pace."""

import asyncio
import gc

from hypothesis import given
from hypothesis import strategies as st

from codewhale.protocol.events import (
    CallProgress,
    Envelope,
    Event,
    Notice,
    ReasoningStreamed,
    TextStreamed,
    TurnFinished,
    TurnStarted,
)
from codewhale.session.fanout import Fanout, Subscription, deliver
from support.patience import HANG


def envelope(event: Event, seq: int = 0) -> Envelope:
    """An event in its place."""
    return Envelope(seq, "session", "2026-01-01T00:00:00.000Z", event)


async def drained(listener: Subscription) -> list[Event]:
    """What a listener has queued."""
    return [found.event for found in await listener.drain()]


async def test_every_listener_gets_every_event_from_its_subscription_on() -> None:
    fanout = Fanout()
    fanout.push(envelope(TurnStarted(1)))
    early = fanout.subscribe()
    fanout.push(envelope(TurnStarted(2)))
    late = fanout.subscribe()
    fanout.push(envelope(TurnStarted(3)))
    assert await drained(early) == [TurnStarted(2), TurnStarted(3)]
    assert await drained(late) == [TurnStarted(3)]


async def test_a_listener_that_left_is_told_nothing_more() -> None:
    fanout = Fanout()
    listener = fanout.subscribe()
    fanout.unsubscribe(listener)
    fanout.push(envelope(TurnStarted(1)))
    listener.close()
    assert await drained(listener) == []


async def test_a_listener_that_nobody_holds_is_forgotten() -> None:
    owner = Fanout()
    child = Fanout(owner)
    assert not child.heard
    listener, first = child.subscribe(), child.subscribe()
    del first
    gc.collect()
    child.push(envelope(TurnStarted(1)))
    assert await drained(listener) == [TurnStarted(1)] and child.heard and not owner.heard
    del listener
    gc.collect()
    assert not child.heard
    held = owner.subscribe()
    assert child.heard
    child.push(envelope(TurnStarted(2)))
    assert await drained(held) == [TurnStarted(2)]


async def test_a_prompt_listener_gets_deltas_one_by_one() -> None:
    listener = Subscription()
    for letter in "abc":
        listener.push(envelope(TextStreamed(letter)))
    assert await drained(listener) == [TextStreamed("a"), TextStreamed("b"), TextStreamed("c")]


async def test_a_lagging_listener_gets_neighbouring_deltas_merged_and_nothing_else() -> None:
    listener = Subscription()
    for number in range(70):
        listener.push(envelope(Notice("info", str(number))))
    for event in (TextStreamed("a"), TextStreamed("b"), ReasoningStreamed("c"), ReasoningStreamed("d")):
        listener.push(envelope(event))
    listener.push(envelope(CallProgress("call_1", "x")))
    listener.push(envelope(CallProgress("call_1", "y")))
    listener.push(envelope(TextStreamed("e")))
    assert (await drained(listener))[70:] == [
        TextStreamed("ab"),
        ReasoningStreamed("cd"),
        CallProgress("call_1", "x"),
        CallProgress("call_1", "y"),
        TextStreamed("e"),
    ]


async def test_a_merged_piece_does_not_grow_without_end() -> None:
    listener = Subscription()
    for _ in range(200):
        listener.push(envelope(TextStreamed("x" * 10_000)))
    pieces = [event for event in await drained(listener) if isinstance(event, TextStreamed)]
    assert sum(len(piece.text) for piece in pieces) == 2_000_000
    assert max(len(piece.text) for piece in pieces) <= 80_000
    assert len(pieces) < 100


EVENTS = st.one_of(
    st.text(max_size=3).map(TextStreamed),
    st.text(max_size=3).map(ReasoningStreamed),
    st.integers(1, 9).map(TurnStarted),
    st.text(max_size=3).map(lambda text: CallProgress("call_1", text)),
)


def flat(events: list[Event]) -> list[Event | tuple[type, str]]:
    """Events with runs of the same kind of delta joined: what any merging must keep."""
    found: list[Event | tuple[type, str]] = []
    for event in events:
        if not isinstance(event, TextStreamed | ReasoningStreamed):
            found.append(event)
            continue
        last = found[-1] if found else None
        if isinstance(last, tuple) and last[0] is type(event):
            found[-1] = (type(event), last[1] + event.text)
        else:
            found.append((type(event), event.text))
    return found


@given(st.lists(EVENTS, max_size=300), st.sets(st.integers(0, 300), max_size=3))
def test_merging_loses_no_text_no_event_and_no_order(events: list[Event], reads: set[int]) -> None:
    async def play() -> list[Event]:
        listener, seen = Subscription(), list[Event]()
        for number, event in enumerate(events):
            listener.push(envelope(event, number))
            if number in reads:
                seen += await drained(listener)
        listener.close()
        return seen + await drained(listener)

    assert flat(asyncio.run(play())) == flat(events)


async def nothing_to_wait_for() -> None:
    """A barrier that is always passed."""


async def test_closing_delivers_what_is_queued_and_then_ends() -> None:
    fanout = Fanout()
    listener = fanout.subscribe()
    for number in range(3):
        fanout.push(envelope(TurnStarted(number)))
    fanout.close()
    told = [found.event async for found in deliver(listener, nothing_to_wait_for, durable=False)]
    assert told == [TurnStarted(0), TurnStarted(1), TurnStarted(2)]


async def test_closing_wakes_a_listener_that_waits() -> None:
    fanout = Fanout()
    listener = fanout.subscribe()

    async def listen() -> list[Envelope]:
        return [found async for found in deliver(listener, nothing_to_wait_for, durable=False)]

    waiting = asyncio.create_task(listen())
    await asyncio.sleep(0)
    fanout.close()
    async with asyncio.timeout(HANG):
        assert await waiting == []


async def test_with_a_barrier_nothing_is_told_before_it_is_passed() -> None:
    listener = Subscription()
    log: list[str] = []

    async def barrier(session: str) -> None:
        await asyncio.sleep(0)
        log.append("on disk")

    listener.push(envelope(TurnStarted(1)))
    listener.push(envelope(TurnStarted(2)))
    listener.close()
    async for found in deliver(listener, barrier, durable=True):
        assert isinstance(found.event, TurnStarted)
        log.append(f"told {found.event.turn}")
    assert log == ["on disk", "told 1", "told 2"]


async def test_without_waiting_only_the_end_of_a_turn_waits() -> None:
    listener = Subscription()
    log: list[str] = []

    told = asyncio.Event()

    async def barrier(session: str) -> None:
        log.append("on disk")

    async def follow() -> None:
        async for found in deliver(listener, barrier, durable=False):
            log.append(type(found.event).__name__)
            told.set()

    following = asyncio.create_task(follow())
    listener.push(envelope(TurnStarted(1)))
    async with asyncio.timeout(HANG):
        await told.wait()
        assert log == ["TurnStarted"]
        listener.push(envelope(TurnFinished(1, "done")))
        listener.close()
        await following
    assert log == ["TurnStarted", "on disk", "TurnFinished"]
