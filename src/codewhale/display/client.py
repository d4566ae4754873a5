"""The client that a frontend is handed: operations in, events out, questions answered."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from codewhale.protocol.events import Envelope
from codewhale.protocol.requests import Op, Query

T = TypeVar("T")


class Client(Protocol):
    """The whole surface of the engine."""

    async def submit(self, op: Op[T], /) -> T:
        """Do it; answered as the operation says."""
        ...

    async def query(self, query: Query[T], /) -> T:
        """Ask it; answered as the query says."""
        ...

    def events(self, session: str, from_seq: int = 0, durable: bool = True) -> AsyncIterator[Envelope]:
        """What happened since `from_seq`, then what happens; told only once on disk, or without `durable` at once, the
        end of a turn excepted."""
        ...


Connect = Callable[[], AbstractAsyncContextManager[Client]]
