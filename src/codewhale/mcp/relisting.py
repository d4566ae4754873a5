"""Listing again what servers offer when they say that it has changed: one listing of a server at a time, at most one
more that waits, and a pause between two, however often they say so."""

import asyncio
from collections.abc import Awaitable, Callable

PAUSE_SECONDS = 5.0


class Relisting:
    """The servers that are listed again. `begin` starts work aside; `listing(name)` lists one."""

    def __init__(self, begin: Callable[[Awaitable[None]], None], listing: Callable[[str], Awaitable[None]]) -> None:
        self._begin = begin
        self._listing = listing
        self._again: dict[str, bool] = {}  # those that are listed or pause -> whether they have changed since

    def changed(self, name: str) -> None:
        """A server says that its lists have changed."""
        if name in self._again:
            self._again[name] = True
        else:
            self._again[name] = False
            self._begin(self._list(name))

    async def _list(self, name: str) -> None:
        try:
            while True:
                self._again[name] = False
                await self._listing(name)
                await asyncio.sleep(PAUSE_SECONDS)
                if not self._again[name]:
                    return
        finally:
            del self._again[name]
