"""One thing, some time later."""

import asyncio
from collections.abc import Callable
from typing import Any

from textual.message_pump import MessagePump


def once(panel: MessagePump, seconds: float, callback: Callable[[], Any]) -> asyncio.TimerHandle:
    """Have a panel do something among its messages after so many seconds; nothing where it is gone by then. Textual's
    `set_timer` never does it when the process stands still for longer than that just as the timer begins."""
    return asyncio.get_running_loop().call_later(max(0.0, seconds), panel.call_next, callback)
