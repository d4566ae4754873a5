"""When room must be made in a session's context. How that is done is loaded when it is first needed."""

from collections.abc import Callable
from typing import Protocol

from codewhale.context.window import ContextSettings
from codewhale.engine.context import measure
from codewhale.engine.modelcall import ModelCalls
from codewhale.engine.session import Session
from codewhale.protocol.events import Compacted, CompactionUndone, Edge


class CompactionFailed(Exception):
    """The conversation stays as it was; the text says why."""


class Maker(Protocol):
    """Makes room. While a summary is asked for, `asking` is set, and stays so when that is cancelled."""

    asking: bool

    async def make(self, calls: ModelCalls) -> None:
        """Before a request: make room if it is time to."""
        ...

    async def overflowed(self, calls: ModelCalls) -> bool:
        """After the provider refused a request as too long: whether enough was taken away to send it again."""
        ...

    async def asked(self, focus: str) -> Compacted:
        """A compaction that the person asks for, outside a turn. Raises CompactionFailed."""
        ...


class Room:
    """Keeps a session within its model's window, by a maker that is built when it is first needed."""

    def __init__(
        self, session: Session, settings: ContextSettings, build: Callable[[Session, ContextSettings], Maker]
    ) -> None:
        self._session = session
        self._settings = settings
        self._build = build
        self._maker: Maker | None = None

    @property
    def maker(self) -> Maker:
        """What makes room."""
        if self._maker is None:
            self._maker = self._build(self._session, self._settings)
        return self._maker

    @property
    def asking(self) -> bool:
        """Whether a summary is being asked for."""
        return self._maker is not None and self._maker.asking

    async def make(self, calls: ModelCalls) -> None:
        """Before a request: make room if the context is full."""
        now = measure(self._session, self._settings)
        if 0 < now.threshold <= now.used:
            await self.maker.make(calls)

    async def overflowed(self, calls: ModelCalls) -> bool:
        """After the provider refused a request as too long: whether enough was taken away to send it again."""
        return await self.maker.overflowed(calls)

    def undo(self) -> int:
        """Take the last compaction back; its number, or 0 when none stands."""
        standing = self._session.state.standing
        if not standing:
            return 0
        number = standing[-1]
        self._session.emit(Edge("compaction undone", 1), CompactionUndone(number))
        return number
