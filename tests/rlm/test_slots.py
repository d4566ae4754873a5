"""Kernels at once: bounded over sessions and what is below them, with no two that wait for each other."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from codewhale.protocol.errors import QuestionFailed
from codewhale.rlm.model import MOST_DEPTH, SESSIONS
from codewhale.rlm.slots import KernelSlots
from support.patience import HANG


async def test_trees_of_three_levels_all_end_and_never_are_more_than_eight() -> None:
    slots, peak, ended = KernelSlots(), 0, 0
    assert slots.open() and slots.open()

    async def tree(levels: int) -> None:
        nonlocal peak, ended
        async with slots.taken(levels):
            peak = max(peak, slots.sessions + slots.below)
            await asyncio.sleep(0)
            if levels > 1:
                await asyncio.gather(*(tree(levels - 1) for _ in range(4)))
            ended += 1

    await asyncio.wait_for(asyncio.gather(*(tree(MOST_DEPTH) for _ in range(16))), HANG)
    assert peak == SESSIONS and slots.below == 0 and ended == 16 * (1 + 4 + 16)


async def test_where_sessions_leave_no_slot_nobody_waits_for_one() -> None:
    slots = KernelSlots()
    assert [slots.open() for _ in range(SESSIONS + 1)] == [True] * SESSIONS + [False]
    with pytest.raises(QuestionFailed, match="8 sessions are open and 8 kernels may run"):
        await slots.taken(1).__aenter__()
    slots.close()
    async with slots.taken(1):
        assert not slots.open()
    assert slots.open()


async def test_a_wait_that_is_cancelled_leaves_nothing_behind() -> None:
    slots = KernelSlots(2)
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(slots.taken(1))
        waiting = asyncio.ensure_future(held.enter_async_context(slots.taken(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert slots.below == 2
    assert slots.below == 0 and slots.open()
