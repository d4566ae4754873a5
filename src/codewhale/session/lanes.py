"""How many requests of sub-agents a provider gets at once, and how long none: one lane for each route, shared by all
sessions of the process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from codewhale.lib.clock import Clock
from codewhale.models.dialects.base import Provider
from codewhale.protocol.stream import Failed, Retrying, StreamEvent

MOST_AT_ONCE = 10


class LaneClosed(Exception):
    """The provider said that its quota is used up, in these words; nothing more is asked until a person says so."""


class Lane:
    """One route. A person's own requests never stand behind those of sub-agents; both wait out what the server asked
    for."""

    def __init__(self, most: int, clock: Clock) -> None:
        self._slots = asyncio.Semaphore(most)
        self._clock = clock
        self._until = 0.0
        self._spent = ""

    @asynccontextmanager
    async def admitted(self, owned: bool) -> AsyncIterator[None]:
        """Held while a request runs. Raises LaneClosed after a quota error."""
        async with self._slots if owned else nullcontext():
            if (left := self.cooling) > 0:
                await asyncio.sleep(left)
            if self._spent:
                raise LaneClosed(self._spent)
            yield

    def reopen(self) -> None:
        """A person asks again: the quota may have been raised."""
        self._spent = ""

    @property
    def cooling(self) -> float:
        """Seconds until the next request may go out."""
        return max(0.0, self._until - self._clock.monotonic())

    async def watched(self, stream: AsyncIterator[StreamEvent]) -> AsyncIterator[StreamEvent]:
        """A request's events, of which the lane learns how the provider stands."""
        try:
            async for event in stream:
                match event:
                    case Retrying(kind="rate_limit", delay=delay):
                        self._until = max(self._until, self._clock.monotonic() + delay)
                    case Failed(kind="quota", message=message):
                        self._spent = message
                yield event
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()


class Lanes:
    """The lanes of a process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lanes: dict[tuple[str, str], Lane] = {}

    def of(self, provider: Provider) -> Lane:
        route = (provider.name, provider.settings.base_url)
        if route not in self._lanes:
            most = provider.settings.facts.get("parallel_requests", MOST_AT_ONCE)
            self._lanes[route] = Lane(most if isinstance(most, int) and most > 0 else MOST_AT_ONCE, self._clock)
        return self._lanes[route]
