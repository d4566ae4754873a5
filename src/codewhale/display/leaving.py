"""The end: what the session came to, in a few lines, and the end of the process, which nothing may hold up where it is
the program's own."""

import asyncio
import os
import threading
from contextvars import ContextVar

from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.requests import Ask
from codewhale.protocol.views import ClosingView, GetClosing

_SECONDS = 3.0

# Whether the process runs the program and nothing else; one that calls it among other things is not ended.
IS_PROGRAM: ContextVar[bool] = ContextVar("IS_PROGRAM", default=False)


async def farewell(ask: Ask, session: str, words: Words) -> str:
    """What a person is shown on leaving a session: its title, what it changed and cost, how to go on; "" for one in
    which nothing was said. What takes longer than three seconds to find out is left out."""
    resume = words("app.left", session=session)
    try:
        async with asyncio.timeout(_SECONDS):
            view = await ask(GetClosing(session))
    except (CodeWhaleError, OSError, TimeoutError):
        return resume
    return f"{one_line(view.title)}\n{_came_to(view, words)}\n{resume}".lstrip() if view.turns else ""


def _came_to(view: ClosingView, words: Words) -> str:
    items = [words("app.closing_turns", n=view.turns)]
    if view.files:
        items.append(words("app.closing_files", n=view.files, added=view.added, removed=view.removed))
    items += [money(cost, currency) for currency, cost in view.cost.items() if cost]
    return " · ".join(items)


def money(cost: float, currency: str) -> str:
    shown = f"{cost:.2f}" if cost >= 1 else f"{cost:.4f}"
    return f"${shown}" if currency == "USD" else f"{shown} {one_line(currency, 8)}"


def exit_within(seconds: float, code: int) -> None:
    """End the program's process with `code` after that time, if it is still there: a thread that never ends does not
    keep it."""
    if IS_PROGRAM.get():
        timer = threading.Timer(seconds, os._exit, (code,))
        timer.daemon = True
        timer.start()
