"""What is asked of the engine: operations and queries, each with the type of its answer."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_R = TypeVar("_R", bound="Request[Any]")


class Request(Struct, Generic[T_co], frozen=True):
    """Something that is answered by a T_co."""

    @classmethod
    def done_by(
        cls: type[_R], do: Callable[[_R], Awaitable[T_co] | T_co]
    ) -> tuple[type[_R], Callable[[_R], Awaitable[T_co] | T_co]]:
        """The request with what does it: a checker of types holds what it takes and gives to the request."""
        return cls, do


class Op(Request[T_co], frozen=True):
    """Something to do."""


class Query(Request[T_co], frozen=True):
    """A question; nothing is changed."""


class Ask(Protocol):  # what answers queries
    async def __call__(self, query: Query[T], /) -> T: ...


class Do(Protocol):  # what does operations
    async def __call__(self, op: Op[T], /) -> T: ...
