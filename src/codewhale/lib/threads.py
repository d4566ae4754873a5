"""Blocking work beside the event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PATIENCE = 30.0  # seconds that a cancel waits for what may never end


async def run_to_end(function: Callable[..., T], *args: object) -> T:
    """Run `function(*args)` in a thread and return its result. A cancel waits until the function has ended and is
    then answered by that result (or error): nothing changes files after the caller was told that it stopped, and
    what was changed is known. A second cancel is not held up."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        if not done:
            raise
        return task.result()
