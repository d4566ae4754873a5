"""Titles of sessions: after a person's first turn the session's own model is asked for one, beside the
conversation. Where nothing comes of it, the first words of the first message stay the title."""

import asyncio
from collections.abc import Awaitable, Callable

from codewhale.protocol.errors import CodeWhaleError, ToolError
from codewhale.protocol.events import TitleSet
from codewhale.session.session import Session
from codewhale.session.titling import title_of, title_prompt

MOST_TOKENS = 48
_SECONDS = 60.0


class Titles:
    """`ask(session, prompt)` is one short model call without tools or thinking, paid from the session's budget."""

    def __init__(self, ask: Callable[[str, str], Awaitable[str]]) -> None:
        self._ask = ask
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def after_turn(self, session: Session) -> None:
        """Begin to make a title where a person's session has none yet; nobody waits for it."""
        scripted = session.provider.settings.dialect == "scripted"
        if not scripted and not session.state.owner and not session.state.title and session.id not in self._tasks:
            self._tasks[session.id] = asyncio.create_task(self._make(session), name=f"title {session.id}")

    async def forget(self, session: str) -> None:
        """The session closes: what is under way ends, and is paid for."""
        task = self._tasks.pop(session, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _make(self, session: Session) -> None:
        events = (envelope.event for envelope in session.log.read())
        try:
            prompt = await asyncio.to_thread(title_prompt, events)
            if not prompt:
                return
            async with asyncio.timeout(_SECONDS):
                answer = await self._ask(session.id, prompt)
            title = title_of(answer)
            if title and not session.state.title:  # else the person was faster
                session.emit(TitleSet(title, "model"))
        except (CodeWhaleError, ToolError, OSError):  # TimeoutError is one
            return  # the first words stay
