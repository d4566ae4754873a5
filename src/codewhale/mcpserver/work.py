"""Work that a client waits for: a call of a tool or a turn of a conversation. It tells how far it has come, and what it
asks is put to whoever waits; a client of the newer revision comes back with the answer, and finds its work parked."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

import mcp_types as types
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.protocol.events import Envelope

MOST_PARKED = 32
PARKED_SECONDS = 330.0  # a little longer than an approval waits
_LINE = 300
_ENDING = 15.0


class ClientWork:
    """One piece of work, running from its making on."""

    def __init__(self, run: "Callable[[ClientWork], Coroutine[Any, Any, types.CallToolResult]]") -> None:
        self._news: asyncio.Queue[Envelope | None] = asyncio.Queue()
        self._line = ""
        self._told = 0
        self.task = asyncio.create_task(run(self))
        self.task.add_done_callback(lambda task: self._news.put_nowait(None))

    def tell(self, text: str) -> None:
        """How far it has come; of several lines that nobody has read yet, the last one counts."""
        if not self._line:
            self._news.put_nowait(None)
        self._line = one_line(text, _LINE)

    def ask(self, asked: Envelope) -> None:
        """Something that only a person can answer."""
        self._news.put_nowait(asked)

    async def next(self) -> tuple[int, str, Envelope | None]:
        """The next news: a count that grows and a line ("" for none), or what is asked; nothing at the end."""
        asked = await self._news.get()
        line, self._line = self._line, ""
        self._told += bool(line)
        return self._told, line, asked

    async def cancel(self) -> None:
        """Stop it, and wait for its end for a while."""
        if not self.task.cancelling():  # a second cancel would cut off what winds it up
            self.task.cancel()
        await asyncio.wait([self.task], timeout=_ENDING)


class ParkedCall(Struct, frozen=True):
    """Work that waits for its client to come back, with what was asked and the request that it belongs to."""

    work: ClientWork
    asked: Envelope
    request: tuple[str, dict[str, Any]]
    timer: asyncio.TimerHandle


class ParkedWork:
    """All that is parked, each under a word that cannot be guessed and counts once."""

    def __init__(self) -> None:
        self._parked: dict[str, ParkedCall] = {}

    def park(self, work: ClientWork, asked: Envelope, request: tuple[str, dict[str, Any]]) -> str:
        """Keep it for a while; the word under which it is fetched. The oldest gives way where too much is kept."""
        if len(self._parked) >= MOST_PARKED:
            self._drop(next(iter(self._parked)))
        word = secrets.token_urlsafe(32)
        timer = asyncio.get_running_loop().call_later(PARKED_SECONDS, self._drop, word)
        self._parked[word] = ParkedCall(work, asked, request, timer)
        return word

    def fetch(self, word: str, request: tuple[str, dict[str, Any]]) -> ParkedCall | None:
        """What was parked under a word for exactly this request; None for anything else."""
        parked = self._parked.get(word)
        if parked is None or parked.request != request:
            return None
        del self._parked[word]
        parked.timer.cancel()
        return parked

    async def end(self) -> None:
        """Stop all of it."""
        parked = list(self._parked.values())
        self._parked.clear()
        for one in parked:
            one.timer.cancel()
            await one.work.cancel()

    def _drop(self, word: str) -> None:
        parked = self._parked.pop(word, None)
        if parked is not None:
            parked.timer.cancel()
            parked.work.task.cancel()
