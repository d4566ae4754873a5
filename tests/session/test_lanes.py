"""The lane of a provider route: who waits, for what, and what ends it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from codewhale.protocol.stream import Failed, Retrying, StreamEvent, TextDelta
from codewhale.session.lanes import Lane, LaneClosed
from codewhale.testing import FakeClock
from support.patience import HANG


async def played(*events: StreamEvent) -> AsyncIterator[StreamEvent]:
    for event in events:
        yield event


async def hear(lane: Lane, *events: StreamEvent) -> None:
    assert [event async for event in lane.watched(played(*events))] == list(events)


async def test_requests_of_sub_agents_wait_for_a_place_and_a_persons_do_not() -> None:
    lane, order = Lane(1, FakeClock()), list[str]()

    async def ask(name: str, owned: bool, go: asyncio.Event) -> None:
        async with lane.admitted(owned):
            order.append(name)
            await go.wait()

    first, rest = asyncio.Event(), asyncio.Event()
    rest.set()
    tasks = [asyncio.create_task(ask("first", True, first))]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(ask("second", True, rest)), asyncio.create_task(ask("person", False, rest))]
    await asyncio.wait(tasks[2:])
    assert order == ["first", "person"]
    first.set()
    await asyncio.gather(*tasks)
    assert order == ["first", "person", "second"]


async def test_all_wait_as_long_as_the_server_asked_for() -> None:
    clock = FakeClock()
    lane = Lane(2, clock)
    await hear(lane, Retrying(1, 3, 30.0, "slow down", kind="rate_limit"), Retrying(2, 3, 5.0, "busy", kind="server"))
    assert lane.cooling == 30.0
    for owned in (True, False):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), lane.admitted(owned):
                raise AssertionError("admitted too early")
    clock.advance(30.0)
    async with lane.admitted(True), lane.admitted(False):
        assert lane.cooling == 0


async def test_after_a_quota_error_nothing_is_sent_until_a_person_asks_again() -> None:
    lane = Lane(2, FakeClock())
    await hear(lane, TextDelta("half"), Failed("quota", "no money left", False, True))
    for owned in (True, False):
        with pytest.raises(LaneClosed, match="no money left"):
            async with lane.admitted(owned):
                pass
    lane.reopen()
    async with lane.admitted(True):
        pass


async def test_a_place_is_given_back_by_whoever_was_cancelled() -> None:
    lane = Lane(1, FakeClock())
    held = asyncio.Event()

    async def ask() -> None:
        async with lane.admitted(True):
            held.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(ask())
    await held.wait()
    task.cancel()
    await asyncio.wait([task])
    async with asyncio.timeout(HANG), lane.admitted(True):
        pass
