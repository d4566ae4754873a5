"""When room must be made in a session's context. How that is done is loaded when it is first needed."""

from collections.abc import Callable
from typing import Protocol

from codewhale.agent.context import Quantities, measure
from codewhale.agent.failures import adopt_window
from codewhale.agent.modelcall import ModelCalls
from codewhale.protocol.events import Compacted, CompactionUndone, Edge
from codewhale.protocol.stream import Failed
from codewhale.session.session import Session
from codewhale.session.window import ContextSettings

_MOST_ADOPTED = 3


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
        self._adopted = 0

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
        now = self.now
        if 0 < now.threshold <= now.used:
            await self.maker.make(calls)

    @property
    def now(self) -> Quantities:
        """How full the context is."""
        return measure(self._session, self._settings)

    async def overflowed(self, calls: ModelCalls, failure: Failed) -> bool:
        """After the provider refused a request as too long: whether it may be sent again, with a shorter answer asked
        for where that was too much, else with enough taken away."""
        self._adopted += 1
        if self._adopted <= _MOST_ADOPTED and adopt_window(self._session, failure, self.now.used):
            return True
        return await self.maker.overflowed(calls)

    def undo(self) -> int:
        """Take the last compaction back; its number, or 0 when none stands."""
        standing = self._session.state.standing
        if not standing:
            return 0
        number = standing[-1]
        self._session.emit(Edge("compaction undone", 1), CompactionUndone(number))
        return number
