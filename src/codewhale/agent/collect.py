"""From a stream of deltas to one whole answer. Nothing of it runs or is recorded before it is complete."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from codewhale.agent.holdback import HoldBack
from codewhale.protocol.events import AnswerMoved, CallStreamed, Event, ReasoningStreamed, RetryCountdown, TextStreamed
from codewhale.protocol.messages import Opaque, Part, Reasoning, Text, ToolCall
from codewhale.protocol.stream import (
    Boundary,
    CallDelta,
    Failed,
    Finished,
    OpaqueDelta,
    ReasoningDelta,
    Resent,
    Retrying,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)

# Other words for an answer that hit its length limit.
_LENGTHS = frozenset(
    ("max_tokens", "max_output_tokens", "max_length", "model_length", "token_limit", "context_length",
     "context_length_exceeded", "model_context_window_exceeded", "incomplete")
)  # fmt: skip


MOVED_SECONDS = 2.0


class RawCall(Struct, frozen=True):
    """A call as streamed; `id` may be empty or a repeat. `code` names the format of one written as text,
    `ended` that its answer came to the end that its model meant."""

    id: str
    name: str
    arguments: str
    code: str = ""
    ended: bool = False


class ModelAnswer(Struct, frozen=True):
    """One model message as it came: its parts in the order in which they began. `finish` is "" when the stream
    failed, and then `failure` says how. `held` is the end of its text that nobody was shown yet: it may be calls. For
    `thought` seconds it came as thoughts."""

    items: tuple[Reasoning | Opaque | Text | RawCall, ...]
    usage: Usage | None
    finish: str
    failure: Failed | None
    held: str = ""
    thought: float = 0.0

    @property
    def text(self) -> str:
        return "\n".join(item.text for item in self.items if isinstance(item, Text))

    @property
    def reasoning(self) -> str:
        return "\n".join(item.text for item in self.items if isinstance(item, Reasoning))

    @property
    def calls(self) -> tuple[RawCall, ...]:
        return tuple(item for item in self.items if isinstance(item, RawCall))

    def parts(self, calls: Sequence[ToolCall]) -> tuple[Part, ...]:
        left = iter(calls)
        parts = (next(left, None) if isinstance(item, RawCall) else item for item in self.items)
        return tuple(part for part in parts if part is not None)


class _Words(Struct):
    kind: type[Text] | type[Reasoning]
    pieces: list[str]

    def whole(self) -> Text | Reasoning:
        text = "".join(self.pieces)
        return Text(text, source="model") if self.kind is Text else Reasoning(text)


class _Call(Struct):
    id: str
    name: str
    pieces: list[str]

    def whole(self) -> RawCall:
        return RawCall(self.id, self.name, "".join(self.pieces))


class RetryListener(Protocol):
    """Who asked, where an answer breaks and the request goes out again."""

    def broke(self, answer: ModelAnswer, retrying: Retrying) -> None:
        """This much had come, and is void."""

    def resent(self) -> None:
        """The same request goes out now. What it raises ends the reading."""


class Collector:
    """Adds stream events up; what has come so far can be read once, also after a cancellation. With `hold`, text is
    told only up to where calls written as text may begin; `asking` hears of what broke."""

    def __init__(
        self,
        tell: Callable[[Event], None],
        hold: bool = False,
        asking: RetryListener | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._listener = tell
        self._shown_at = 0.0
        self._asking = asking
        self._holds = hold
        self._clear()

    def _clear(self) -> None:
        self._hold = HoldBack() if self._holds else None
        self._items: list[_Words | _Call | Opaque] = []
        self._current: dict[type, _Words] = {}
        self._calls: dict[int, _Call] = {}
        self._usage: Usage | None = None
        self._finish = ""
        self._failure: Failed | None = None
        self._thinks_since = self._thought = 0.0

    def _tell(self, event: Event) -> None:
        self._shown_at = self._clock()
        self._listener(event)

    def _moved(self) -> None:
        """Something came of which nothing is shown: whoever waits is told so now and then."""
        if self._clock() - self._shown_at >= MOVED_SECONDS:
            self._tell(AnswerMoved())

    async def read(self, stream: AsyncIterator[StreamEvent]) -> ModelAnswer:
        try:
            async for event in stream:
                self.add(event)
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        return self.answer()

    def add(self, event: StreamEvent) -> None:
        self._time(event)
        match event:
            case TextDelta(text=text):
                text = self._add_words(Text, text) + text
                shown = text if self._hold is None else self._hold.feed(text)
                if shown:
                    self._tell(TextStreamed(shown))
                else:
                    self._moved()
            case ReasoningDelta(text=text):
                self._add_words(Reasoning, text)
                self._tell(ReasoningStreamed(text))
            case CallDelta():
                self._add_call(event)
            case OpaqueDelta(part=part):
                self._items.append(part)
            case Boundary():
                self._current.clear()
            case UsageReport(usage=usage):
                self._usage = usage
            case Retrying():
                if event.broke:
                    answer = self.answer()
                    self._clear()
                    if self._asking is not None:
                        self._asking.broke(answer, event)
                self._tell(RetryCountdown(event.attempt, event.attempts, event.delay, event.reason, event.broke))
            case Resent() if self._asking is not None:
                self._asking.resent()
            case Finished(reason=reason):
                self._finish = "length" if reason.lower() in _LENGTHS else reason
            case Failed():
                self._failure = event

    def _time(self, event: StreamEvent) -> None:
        """Count how long the model thinks: from its first thought to what comes next."""
        now = time.monotonic()
        if isinstance(event, ReasoningDelta):
            self._thinks_since = self._thinks_since or now
        elif self._thinks_since and isinstance(event, TextDelta | CallDelta | Finished | Failed):
            self._thought, self._thinks_since = self._thought + now - self._thinks_since, 0.0

    def _add_words(self, kind: type[Text] | type[Reasoning], text: str) -> str:
        words, between = self._current.get(kind), ""
        if words is None:
            between = "\n" if any(isinstance(item, _Words) and item.kind is kind for item in self._items) else ""
            words = self._current[kind] = _Words(kind, [])
            self._items.append(words)
        words.pieces.append(text)
        return between

    def _add_call(self, event: CallDelta) -> None:
        call = self._calls.get(event.index)
        if call is None:
            call = self._calls[event.index] = _Call(event.id, event.name, [event.arguments])
            self._items.append(call)
            self._tell(CallStreamed(event.index, event.name))
            return
        call.id = call.id or event.id
        call.name += event.name
        call.pieces.append(event.arguments)
        self._moved()

    def answer(self) -> ModelAnswer:
        ordered = iter([self._calls[index] for index in sorted(self._calls)])
        items = (next(ordered) if isinstance(item, _Call) else item for item in self._items)
        whole = (item if isinstance(item, Opaque) else item.whole() for item in items)
        kept = tuple(item for item in whole if isinstance(item, (Opaque, RawCall)) or item.text)
        held = "" if self._hold is None else self._hold.end()
        return ModelAnswer(kept, self._usage, self._finish, self._failure, held, round(self._thought, 1))
