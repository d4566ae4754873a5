"""How answers in the OpenAI Responses dialect are read: events (or one whole answer) in, stream events out.

Forgiving where endpoints differ in practice: items that come whole or only with the end, calls without an id, numbers
and ids of items that do not hold from one event to the next.
"""

from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from codewhale.models.dialects.failures import ProviderFailure, failure, from_error
from codewhale.models.dialects.jsontext import decode, encode
from codewhale.models.dialects.openai_stream import parse_usage
from codewhale.protocol.messages import Opaque
from codewhale.protocol.stream import (
    Boundary,
    CallDelta,
    Finished,
    OpaqueDelta,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)

T = TypeVar("T", bound=Struct)
Words = type[TextDelta] | type[ReasoningDelta]
_WORDS: dict[str, Words] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class KeptOutput(Struct):
    """What is read of an opaque part: its type and, of words, whether they are commentary or the final answer."""

    type: str = ""
    phase: str = ""


class _Event(Struct):
    type: Any = ""
    output_index: Any = None
    summary_index: Any = None
    delta: Any = ""
    arguments: Any = ""
    item: Raw = Raw(b"{}")
    response: Raw = Raw(b"{}")
    error: Any = None


class _Item(Struct):
    type: Any = ""
    id: Any = ""
    call_id: Any = ""
    name: Any = ""
    arguments: Any = ""
    phase: Any = ""
    encrypted_content: Any = None
    content: Any = None
    summary: Any = None


class _Response(Struct):
    output: list[Raw] | None = None
    status: Any = ""
    usage: Any = None
    error: Any = None
    incomplete_details: Any = None


class _Open:
    """An item as it has come so far: its ids, the number of its call (-1 for words), how many characters."""

    __slots__ = ("done", "ids", "name", "position", "size")

    def __init__(self, item: _Item, position: int) -> None:
        self.ids = {word for word in (_text(item.call_id), _text(item.id)) if word}
        self.name = _text(item.name)
        self.position = position
        self.size = 0
        self.done = False


class ResponsesParser:
    """Reads one answer. `ended` is set once the provider said how it ended or that nothing follows; `size` counts the
    characters of content received. What goes back as it came is kept under the name `seal`."""

    def __init__(self, seal: str) -> None:
        self.ended = False
        self.done = False
        self.size = 0
        self._seal = seal
        self._reason = ""
        self._usage: Usage | None = None
        self._open: dict[int, _Open] = {}
        self._calls: list[_Open] = []

    def feed(self, name: str, data: str, out: list[StreamEvent]) -> None:
        """Read one server-sent event and append what it means to `out`. Raises ProviderFailure for an error event, an
        answer that failed and data that is not JSON."""
        data = data.strip()
        if self.done or not data:
            return
        if data == "[DONE]":
            if not all(call.done for call in self._calls):
                raise failure("interrupted", "the answer ended inside a call, without a reason")
            self.ended = self.done = True
            return
        event = _read(data, _Event)
        kind = _text(event.type) or name
        key = event.output_index if isinstance(event.output_index, int) else -1
        if kind in _WORDS:
            opened = self._open.get(key)
            if opened is None or opened.position >= 0:
                opened = self._begin(key, _Item(), out)
            self._words(opened, _WORDS[kind], _text(event.delta), out)
            if kind == "response.refusal.delta":
                self._reason = "refusal"
        elif kind == "response.function_call_arguments.delta":
            self._arguments(self._open.get(key), _text(event.delta), out)
        elif kind == "response.output_item.added":
            self._begin(key, _read(event.item, _Item), out)
        elif kind == "response.output_item.done":
            self._complete(key, event.item, out)
        elif kind == "response.function_call_arguments.done" and key in self._open and not self._open[key].size:
            self._arguments(self._open[key], _text(event.arguments), out)
        elif kind == "response.reasoning_summary_part.added" and event.summary_index:
            out.append(ReasoningDelta("\n\n"))
        elif kind in _ENDS:
            self._end(_read(event.response, _Response), out)
        elif kind == "error" or event.error:
            raise ProviderFailure(from_error(event.error or decode(data)))

    def whole(self, data: bytes, out: list[StreamEvent]) -> None:
        """Read an answer that came as one JSON object, instead of `feed`."""
        response = _read(data, _Response)
        if response.output is None and not response.error:
            raise failure("malformed", f"the answer is not a response object: {data[:80].decode()}")
        self._end(response, out)

    def finish(self, out: list[StreamEvent]) -> None:
        """Append the closing events: usage where known, then Finished."""
        self.report(out)
        out.append(Finished(self._reason or ("tool_calls" if self._calls else "stop")))

    def report(self, out: list[StreamEvent]) -> None:
        """Append the usage where known: all that is left to say of an answer that failed."""
        if self._usage is not None:
            out.append(UsageReport(self._usage))
            self._usage = None

    def _begin(self, key: int, item: _Item, out: list[StreamEvent]) -> _Open:
        opened = self._open[key] = _Open(item, len(self._calls) if item.type == "function_call" else -1)
        if opened.position < 0:
            out.append(Boundary())
        else:
            self._calls.append(opened)
            out.append(CallDelta(opened.position, _text(item.call_id) or _text(item.id), opened.name, ""))
        return opened

    def _words(self, opened: _Open, kind: Words, text: str, out: list[StreamEvent]) -> None:
        if text:
            opened.size += len(text)
            self.size += len(text)
            out.append(kind(text))

    def _arguments(self, opened: _Open | None, text: str, out: list[StreamEvent]) -> None:
        if opened is not None and opened.position >= 0 and text:
            opened.size += len(text)
            self.size += len(text)
            out.append(CallDelta(opened.position, "", "", text))

    def _complete(self, key: int, raw: Raw, out: list[StreamEvent]) -> None:
        """The end of an item: what was not streamed of it is said now, what goes back as it came is kept."""
        item = _read(raw, _Item)
        opened = self._found(key, item) or self._begin(key, item, out)
        opened.done = True
        kept = b""
        if item.type == "function_call":
            if item.name and not opened.name:
                out.append(CallDelta(opened.position, "", _text(item.name), ""))
            if not opened.size:
                given = item.arguments or ""
                self._arguments(opened, given if isinstance(given, str) else encode(given).decode(), out)
        elif item.type == "message":
            self._words(opened, TextDelta, "" if opened.size else _joined(item.content, ""), out)
            kept = encode({"type": "message", "phase": item.phase}) if _text(item.phase) else b""
        elif item.type == "reasoning":
            text = "" if opened.size else _joined(item.summary, "\n\n") or _joined(item.content, "")
            self._words(opened, ReasoningDelta, text, out)
            kept = bytes(raw) if item.encrypted_content or item.content else b""
        if kept:
            self.size += len(kept)
            out.append(OpaqueDelta(Opaque(self._seal, kept.decode())))

    def _found(self, key: int, item: _Item) -> _Open | None:
        """What has come of an item already: a call by its ids, else whatever is open under its number."""
        if item.type == "function_call":
            ids = _Open(item, 0).ids
            for call in self._calls:
                if call.ids & ids:
                    return call
        opened = self._open.get(key)
        fits = opened is not None and not opened.done and (opened.position >= 0) == (item.type == "function_call")
        return opened if fits else None

    def _end(self, response: _Response, out: list[StreamEvent]) -> None:
        """The answer as a whole; what never came as an event is taken from it. Raises ProviderFailure if it failed."""
        if isinstance(response.usage, dict):
            self._usage = parse_usage(response.usage)
        if response.error:
            raise ProviderFailure(from_error(response.error))
        if response.status in ("failed", "cancelled"):
            raise failure("server", f"the provider reports the answer as {response.status} without a reason")
        if not self._open:
            for number, raw in enumerate(response.output or ()):
                self._complete(number, raw, out)
        details = response.incomplete_details
        reason = _text(details.get("reason")) if isinstance(details, dict) else ""
        if reason == "content_filter":
            raise failure("content_policy", "the provider's content filter ended the answer")
        if reason or response.status == "incomplete":
            self._reason = "length" if reason in ("", "max_output_tokens") else reason
        self.ended = self.done = True


def _read(data: str | bytes | Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError):
        text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
    try:
        return msgspec.json.decode(encode(decode(text)), type=kind)
    except (ValueError, RecursionError):
        raise failure("malformed", f"the provider sent an unknown event: {text[:80]}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _joined(parts: Any, between: str) -> str:
    """The words of a list of parts: texts, summaries, refusals."""
    words = [part.get("text") or part.get("refusal") for part in parts or () if isinstance(part, dict)]
    return between.join(word for word in words if isinstance(word, str))
