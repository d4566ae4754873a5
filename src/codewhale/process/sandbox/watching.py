"""A running command's share in the wards of the places that it may write: what it leaves there for git is looked for
while it runs, when it ends, and when all that it left running is gone."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from codewhale.lib.text import one_line
from codewhale.process.sandbox.profiles import Confinement, Site, beneath
from codewhale.process.sandbox.wards import Ward

Ended = asyncio.Future[Any]
# Files that are laid over each; what is beyond is put back afterwards.
_MOST_ARMS = 256
# Seconds between two looks, and at least so many times the cost of one.
_PAUSE, _SHARE = 1.0, 20


class Watch:
    """What is watched for one command. `arms` are there already and must stay as they are; `held` it cannot change."""

    def __init__(self, roots: Sequence[str], home: str) -> None:
        self._wards = [_ward(root, home) for root in roots]
        self.held: tuple[str, ...] = ()
        self._left = self._last = False
        found = dict.fromkeys(path for ward in self._wards for path in ward.enter())
        self.arms = tuple(found)[:_MOST_ARMS]

    async def follow(self, gone: Ended, done: Ended, tell: Callable[[str], None]) -> None:
        """Look now and then while anything of it runs, and a last time after that."""
        cost = 0.0
        while not gone.done():
            await asyncio.wait((gone,), timeout=max(_PAUSE, _SHARE * cost))
            if not gone.done():
                began = time.monotonic()
                await self.look(gone, tell)
                cost = time.monotonic() - began
        await asyncio.wait((done,))
        if not self._last:
            await self.look(gone, tell)
        self.leave()

    async def look(self, gone: Ended, tell: Callable[[str], None]) -> None:
        """Put back or set aside what is there now, and tell."""
        self._last = gone.done()
        for ward in self._wards:
            for line in await asyncio.to_thread(ward.mend, self.held):
                tell(f"codewhale: {one_line(line, 400)}\n")

    def leave(self) -> None:
        """The command is gone. A second time does nothing."""
        if not self._left:
            self._left = True
            for ward in self._wards:
                ward.leave()


def watched(site: Site, wanted: Confinement) -> Watch:
    """A share for a command that may write there; it looks through all of it."""
    outside = (place.path for place in site.git if not beneath(place.path, site.workspace))
    return Watch(list(dict.fromkeys((site.workspace, *outside, *wanted.folders))), site.home)


@lru_cache(maxsize=256)
def _ward(root: str, home: str) -> Ward:
    return Ward(root, home)
