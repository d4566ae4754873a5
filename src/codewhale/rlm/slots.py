"""How many kernels run at once, over all sessions and what their sub-queries begin below them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from codewhale.protocol.errors import QuestionFailed
from codewhale.rlm.model import MOST_DEPTH, SESSIONS


class KernelSlots:
    """`most` at once. A kernel below a session waits for its slot until there is one for each level below it too: the
    deepest can always go on, so that no two wait for each other."""

    def __init__(self, most: int = SESSIONS) -> None:
        self.most = most
        self.sessions = 0
        self.below = 0
        self._waiting: list[asyncio.Future[None]] = []

    def open(self) -> bool:
        """Take a slot for a session; False where there is none now, or kernels below sessions may need it."""
        room = self._free >= (MOST_DEPTH if self.below else 1)
        self.sessions += room
        return room

    def close(self) -> None:
        """Give a session's slot back."""
        self.sessions -= 1
        self._changed()

    @asynccontextmanager
    async def taken(self, levels: int) -> AsyncIterator[None]:
        """Hold a slot for a kernel that is the first of so many levels. Raises QuestionFailed where open sessions leave
        too few."""
        while self._free < levels:
            if self.most - self.sessions < levels:
                text = (
                    f"{self.sessions} sessions are open and {self.most} kernels may run at once; close one (rlm_close)"
                )
                raise QuestionFailed("not_available", f"{text}, or ask with sub_query", "limit")
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        self.below += 1
        try:
            yield
        finally:
            self.below -= 1
            self._changed()

    @property
    def _free(self) -> int:
        return self.most - self.sessions - self.below

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)
