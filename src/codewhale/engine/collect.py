"""From a stream of deltas to one whole answer. Nothing of it runs or is recorded before it is complete."""

from collections.abc import AsyncIterator, Callable

from msgspec import Struct

from codewhale.protocol.events import CallStreamed, Event, ReasoningStreamed, RetryCountdown, TextStreamed
from codewhale.protocol.messages import Opaque
from codewhale.protocol.stream import (
    CallDelta,
    Failed,
    Finished,
    OpaqueDelta,
    ReasoningDelta,
    Retrying,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)


class RawCall(Struct, frozen=True):
    """A call as streamed; `id` may be empty or a repeat."""

    id: str
    name: str
    arguments: str


class Answer(Struct, frozen=True):
    """One model message as it came. `finish` is "" when the stream failed, and then `failure` says how."""

    text: str
    reasoning: str
    opaque: tuple[Opaque, ...]
    calls: tuple[RawCall, ...]
    usage: Usage | None
    finish: str
    failure: Failed | None


class Collector:
    """Adds stream events up; what has come so far can be read at any time, also after a cancellation."""

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._opaque: list[Opaque] = []
        self._calls: dict[int, list[str]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._usage: Usage | None = None
        self._finish = ""
        self._failure: Failed | None = None

    async def read(self, stream: AsyncIterator[StreamEvent]) -> Answer:
        """Read the stream to its end."""
        async for event in stream:
            self.add(event)
        return self.answer()

    def add(self, event: StreamEvent) -> None:
        """Add one stream event and tell listeners of it."""
        match event:
            case TextDelta(text=text):
                self._text.append(text)
                self._tell(TextStreamed(text))
            case ReasoningDelta(text=text):
                self._reasoning.append(text)
                self._tell(ReasoningStreamed(text))
            case CallDelta():
                self._add_call(event)
            case OpaqueDelta(part=part):
                self._opaque.append(part)
            case UsageReport(usage=usage):
                self._usage = usage
            case Retrying():
                self._tell(RetryCountdown(event.attempt, event.attempts, event.delay, event.reason))
            case Finished(reason=reason):
                self._finish = reason
            case Failed():
                self._failure = event

    def _add_call(self, event: CallDelta) -> None:
        call = self._calls.get(event.index)
        if call is None:
            self._calls[event.index] = [event.id, event.name]
            self._arguments[event.index] = [event.arguments]
            self._tell(CallStreamed(event.index, event.name))
            return
        call[0] = call[0] or event.id
        call[1] += event.name
        self._arguments[event.index].append(event.arguments)

    def answer(self) -> Answer:
        """What has come so far."""
        calls = tuple(
            RawCall(self._calls[index][0], self._calls[index][1], "".join(self._arguments[index]))
            for index in sorted(self._calls)
        )
        return Answer(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            opaque=tuple(self._opaque),
            calls=calls,
            usage=self._usage,
            finish=self._finish,
            failure=self._failure,
        )
