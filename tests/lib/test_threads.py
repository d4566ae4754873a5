"""Work in a thread that a cancel waits for."""

import asyncio
import threading

import pytest

from codewhale.lib.threads import run_to_end
from support.patience import HANG


async def test_results_and_errors_come_back() -> None:
    assert await run_to_end(lambda a, b: a + b, 1, 2) == 3
    with pytest.raises(ValueError, match="x"):
        await run_to_end(int, "x")


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancel_waits_for_the_end_and_gets_the_result(fails: bool) -> None:
    started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> str:
        started.set()
        go_on.wait(HANG)
        ended.set()
        if fails:
            raise OSError("after the cancel")
        return "written"

    task = asyncio.create_task(run_to_end(work))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    if fails:
        with pytest.raises(OSError, match="after the cancel"):
            await task
    else:
        assert await task == "written"
    assert ended.is_set()
