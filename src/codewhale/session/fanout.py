"""From one session to its listeners: every subscriber gets every event, in order, at its own pace.

A slow listener never holds the session up. While it lags, neighbouring text and reasoning deltas in its queue
are merged; nothing else is, and no end is lost. With `durable` a listener is told of an event only after the
log holds it on disk.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from weakref import ref

from codewhale.protocol.events import Envelope, ReasoningStreamed, TextStreamed, TurnFinished

_MERGE_ABOVE = 64
_MERGE_LIMIT = 65_536


class Subscription:
    """One listener's queue."""

    def __init__(self) -> None:
        self._queue: deque[Envelope] = deque()
        self._ready = asyncio.Event()
        self._closed = False

    def push(self, envelope: Envelope) -> None:
        """Queue an event; merges it into the last one when this listener lags behind on deltas."""
        last = self._queue[-1] if len(self._queue) > _MERGE_ABOVE else None
        merged = _merge(last, envelope) if last is not None else None
        if merged is not None:
            self._queue[-1] = merged
        else:
            self._queue.append(envelope)
        self._ready.set()

    def close(self) -> None:
        """No more events; what is queued is still delivered."""
        self._closed = True
        self._ready.set()

    async def drain(self) -> list[Envelope]:
        """All that is queued, waiting for the first; empty once closed."""
        while not self._queue and not self._closed:
            self._ready.clear()
            await self._ready.wait()
        batch = list(self._queue)
        self._queue.clear()
        return batch


class Fanout:
    """The listeners of one session, who are told of the sessions that it owns too: `owner` is the fan-out above.
    `failure` is why its stream ended early. A listener that nobody holds any more is forgotten."""

    def __init__(self, owner: "Fanout | None" = None) -> None:
        self._listeners: list[ref[Subscription]] = []
        self.owner = owner
        self.failure: Exception | None = None

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners) or (self.owner is not None and self.owner.heard)

    def push(self, envelope: Envelope) -> None:
        """Tell every listener, and those of the owners."""
        for held in self._listeners.copy():  # which one that is forgotten meanwhile would shift
            if (listener := held()) is not None:
                listener.push(envelope)
        if self.owner is not None:
            self.owner.push(envelope)

    def subscribe(self) -> Subscription:
        """A new listener, from now on."""
        listener = Subscription()
        self._listeners.append(ref(listener, self._listeners.remove))
        return listener

    def unsubscribe(self, listener: Subscription) -> None:
        """Forget a listener."""
        if ref(listener) in self._listeners:
            self._listeners.remove(ref(listener))

    def close(self, failure: Exception | None = None) -> None:
        """End every listener's stream after what it has queued."""
        self.failure = self.failure or failure
        for held in self._listeners.copy():
            if (listener := held()) is not None:
                listener.close()


async def deliver(
    listener: Subscription, barrier: Callable[[str], Awaitable[None]], durable: bool
) -> AsyncIterator[Envelope]:
    """A listener's events until it is closed. With `durable`, the `barrier` of each session in a batch is awaited
    before it is told; without, only before the end of a turn is."""
    while batch := await listener.drain():
        waits = [one.session for one in batch if durable or isinstance(one.event, TurnFinished)]
        for session in dict.fromkeys(waits):
            await barrier(session)
        for envelope in batch:
            yield envelope


def _merge(last: Envelope, new: Envelope) -> Envelope | None:
    if last.session != new.session:
        return None
    match last.event, new.event:
        case (TextStreamed(text=a), TextStreamed(text=b)) if len(a) < _MERGE_LIMIT:
            return Envelope(new.seq, new.session, new.at, TextStreamed(a + b))
        case (ReasoningStreamed(text=a), ReasoningStreamed(text=b)) if len(a) < _MERGE_LIMIT:
            return Envelope(new.seq, new.session, new.at, ReasoningStreamed(a + b))
    return None
