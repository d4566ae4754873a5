"""The frames between the harness and the broker: a length of four bytes, then one message as MessagePack. An order has
a number, and each number gets exactly one end: `Done` or `OrderFailed`."""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from codewhale.mcp.terms import CallOutcome, LoginOptions, ServerOffer, ServerSpec

MOST_FRAME = 16 << 20

T = TypeVar("T")


class Open(Struct, frozen=True, tag=True):
    """Connect a server, anew where it runs. With `back`, the address that a browser is led back to, a person is there
    who can log in."""

    order: int
    spec: ServerSpec
    back: str = ""
    login: LoginOptions = LoginOptions()


class Relist(Struct, frozen=True, tag=True):
    """List what a server offers."""

    order: int
    name: str


class UseOrder(Struct, frozen=True, tag=True):
    """Call a tool, read a resource or get a prompt: `what` is "call", "read" or "prompt", `item` its name or URI."""

    order: int
    name: str
    what: str
    item: str
    arguments: dict[str, Any] = field(default_factory=dict)


class Cancel(Struct, frozen=True, tag=True):
    """Nobody waits for an order any more; it has no end."""

    order: int


class Close(Struct, frozen=True, tag=True):
    """End a server."""

    order: int
    name: str


class AskAnswer(Struct, frozen=True, tag=True):
    """What an `ServerAsk` came to; `refused` says why there is none."""

    ask: int
    data: dict[str, Any] = field(default_factory=dict)
    refused: str = ""


class Done(Struct, frozen=True, tag=True):
    """An order's end: `offer` for one that connects or lists, `outcome` for a use."""

    order: int
    offer: ServerOffer | None = None
    outcome: CallOutcome | None = None


class OrderFailed(Struct, frozen=True, tag=True):
    """An order's other end; see ServerFailed."""

    order: int
    kind: str
    text: str
    sent: bool = False


class ServerAsk(Struct, frozen=True, tag=True):
    """What a server asks back in the course of an order: `what` is "elicit", "sample", "tokens", "keep",
    "renewed", "visit" or "code"."""

    ask: int
    order: int
    server: str
    what: str
    data: dict[str, Any]


class OrderProgress(Struct, frozen=True, tag=True):
    """How far an order is."""

    order: int
    server: str
    done: float
    total: float | None
    text: str


class Log(Struct, frozen=True, tag=True):
    """A line that a server logs; `order` is 0 where it belongs to none."""

    order: int
    server: str
    level: str
    text: str


class Changed(Struct, frozen=True, tag=True):
    """A server says that its lists have changed."""

    server: str


class Gone(Struct, frozen=True, tag=True):
    """A server has ended by itself; `stderr` is the end of what it wrote there."""

    server: str
    error: str
    stderr: str


Order = Open | Relist | UseOrder | Cancel | Close | AskAnswer
Report = Done | OrderFailed | ServerAsk | OrderProgress | Log | Changed | Gone


def frame(message: Order | Report) -> bytes:
    """One message as it goes over the pipe. Raises ValueError for one that is too large."""
    data = msgspec.msgpack.encode(message)
    if len(data) > MOST_FRAME:
        raise ValueError(f"a frame of {len(data):,} bytes, {MOST_FRAME:,} at most")
    return len(data).to_bytes(4, "big") + data


class Frames:
    """Whole messages out of the bytes of a pipe."""

    def __init__(self, kinds: Any) -> None:
        """`kinds` is Order or Report."""
        self._decoder = msgspec.msgpack.Decoder(kinds)
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """The messages that are complete now. Raises ValueError for what is none."""
        self._buffer += data
        taken = 0
        try:
            while len(self._buffer) >= taken + 4:
                length = int.from_bytes(self._buffer[taken : taken + 4], "big")
                if length > MOST_FRAME:
                    raise ValueError(f"a frame of {length:,} bytes, {MOST_FRAME:,} at most")
                if len(self._buffer) < taken + 4 + length:
                    break
                with memoryview(self._buffer) as view:
                    whole = bytes(view[taken + 4 : taken + 4 + length])
                taken += 4 + length
                yield self._decoder.decode(whole)
        finally:
            del self._buffer[:taken]
