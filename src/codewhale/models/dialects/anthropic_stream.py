"""How answers in the Anthropic Messages dialect are read: events (or one whole message) in, stream events out.

Thinking is told as it comes, and kept once more as it was when its block has ended: it goes back signed or not at all.
"""

from typing import Any

from msgspec import Struct

from codewhale.models.dialects.failures import ProviderFailure, failure, from_error
from codewhale.models.dialects.jsontext import decode, encode
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

NAME = "anthropic"  # The dialect's name, under which its own blocks are kept unless they have a seal.
_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class _Block(Struct):
    """One block of an answer: as it began, and the pieces of its content since."""

    start: dict[str, Any]
    kind: Any
    call: int = -1
    pieces: list[str] = []


class MessagesParser:
    """Reads one answer. `ended` is set once the provider said why it ended or that nothing follows; `size` counts
    the characters of content received. Blocks that are the provider's own are kept under `seal`."""

    def __init__(self, seal: str = NAME) -> None:
        self._seal = seal
        self.ended = False
        self.done = False
        self.size = 0
        self._reason = ""
        self._counts: dict[str, int] = {}
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._words = False

    def feed(self, name: str, data: str, out: list[StreamEvent]) -> None:
        """Read one server-sent event and append what it means to `out`. Raises ProviderFailure for an error, a
        refusal, and data that is not a JSON object."""
        data = data.strip()
        if self.done or data in ("", "[DONE]"):
            return
        event = _object(data)
        kind, index = event.get("type") or name, event.get("index")
        index = index if isinstance(index, int) else -1
        if kind == "content_block_delta":
            self._delta(index, _field(event, "delta"), out)
        elif kind == "content_block_start":
            self._begin(index, _field(event, "content_block"), out)
        elif kind == "content_block_stop":
            self._stop(index, out)
        elif kind == "message_start":
            self._count(_field(event, "message").get("usage"))
        elif kind == "message_delta":
            self._count(event.get("usage"))
            self._end(_field(event, "delta"), out)
        elif kind == "message_stop":
            if not self.ended and any(map(_is_half, self._blocks.values())):
                raise failure("interrupted", "the answer ended inside a call, without a reason")
            self.ended = self.done = True
        elif kind == "error" or event.get("error"):
            raise ProviderFailure(from_error(event.get("error") or event))

    def whole(self, data: bytes, out: list[StreamEvent]) -> None:
        """Read an answer that came as one JSON object, instead of `feed`."""
        try:
            answer = _object(data.decode())
        except UnicodeDecodeError:
            raise failure("malformed", "the answer contains bytes that are not UTF-8")
        content = answer.get("content")
        if not isinstance(content, list):
            raise ProviderFailure(from_error(answer.get("error") or answer))
        for index, block in enumerate(content):
            self._begin(index, block if isinstance(block, dict) else {}, out)
            self._stop(index, out)
        self._count(answer.get("usage"))
        self._end(answer, out)
        self.ended = True

    def finish(self, out: list[StreamEvent]) -> None:
        """Append the closing events: blocks that were left open, usage where known, then Finished."""
        for index in list(self._blocks):
            self._stop(index, out)
        self.report(out)
        out.append(Finished(self._reason or ("tool_calls" if self._calls else "stop")))

    def report(self, out: list[StreamEvent]) -> None:
        """Append the usage where known: all that is left to say of an answer that failed. Its input is the whole
        prompt: what was read from the cache, what was written to it, and the rest."""
        counts, self._counts = self._counts, {}
        if counts:
            hit = counts.get("cache_read_input_tokens", 0)
            miss = counts.get("input_tokens", 0) + counts.get("cache_creation_input_tokens", 0)
            thought = counts.get("thinking_tokens", 0)
            out.append(UsageReport(Usage(hit + miss, counts.get("output_tokens", 0), hit, miss, thought)))

    def _begin(self, index: int, start: dict[str, Any], out: list[StreamEvent]) -> None:
        block = self._blocks[index] = _Block(start, start.get("type"))
        if block.kind == "tool_use":
            block.call, self._calls = self._calls, self._calls + 1
            out.append(CallDelta(block.call, _word(start, "id"), _word(start, "name"), ""))
        self._say(block, _word(start, "thinking") or _word(start, "text"), out)
        self.size += len(_word(start, "data"))

    def _delta(self, index: int, delta: dict[str, Any], out: list[StreamEvent]) -> None:
        block = self._blocks.get(index)
        if block is None:
            raise failure("malformed", "the provider continued a block that it never started")
        if "signature" in delta:
            block.start["signature"] = _word(delta, "signature")
            self.size += len(block.start["signature"])
        self._say(block, _word(delta, "text") or _word(delta, "thinking") or _word(delta, "partial_json"), out)

    def _say(self, block: _Block, text: str, out: list[StreamEvent]) -> None:
        """Tell more of a block. Words of another block are set apart when the first of them comes, not before: until
        then the request may still be repeated."""
        if not text:
            return
        self.size += len(text)
        if block.kind in ("text", "thinking"):
            if self._words and not block.pieces:
                out.append(Boundary())
            self._words = True
            out.append(TextDelta(text) if block.kind == "text" else ReasoningDelta(text))
        elif block.kind == "tool_use":
            out.append(CallDelta(block.call, "", "", text))
        block.pieces.append(text)

    def _stop(self, index: int, out: list[StreamEvent]) -> None:
        """A block is complete. What its provider alone can read, thinking with its signature too, is kept as it is."""
        block = self._blocks.pop(index, None)
        if block is None or block.kind == "text":
            return
        said, kept = "".join(block.pieces), block.start
        if block.kind == "tool_use":
            if not said and kept.get("input"):
                out.append(CallDelta(block.call, "", "", encode(kept["input"]).decode()))
            return
        if block.kind == "thinking":
            kept |= {"thinking": said, "signature": _word(kept, "signature")}
        elif said and "input" in kept:
            kept["input"] = _object(said)
        if block.kind != "thinking" or said or kept.get("signature"):
            out.append(OpaqueDelta(Opaque(self._seal, encode(kept).decode())))

    def _end(self, delta: dict[str, Any], out: list[StreamEvent]) -> None:
        """Take in why the answer ended, where it is said."""
        reason = _word(delta, "stop_reason")
        if reason == "refusal":
            self.report(out)
            told = _field(delta, "stop_details")
            why = filter(None, ("the model declined to answer", _word(told, "category"), _word(told, "explanation")))
            raise failure("content_policy", ": ".join(why))
        if reason:
            self._reason = _REASONS.get(reason, reason)
            self.ended = True

    def _count(self, usage: Any) -> None:
        """Take in token counts: totals so far, each in place of the one before."""
        if isinstance(usage, dict):
            for key, value in (usage | _field(usage, "output_tokens_details")).items():
                if isinstance(value, (int, float)) and 0 < value < 1e15:
                    self._counts[key] = int(value)


def _is_half(block: _Block) -> bool:
    """Whether a call has begun to say its arguments and not said them all."""
    try:
        return block.kind == "tool_use" and bool(block.pieces) and not isinstance(decode("".join(block.pieces)), dict)
    except ValueError:
        return True


def _object(data: str) -> dict[str, Any]:
    try:
        value = decode(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise failure("malformed", f"the provider sent an event that is not a JSON object: {data[:80]}")
    return value


def _field(event: dict[str, Any], key: str) -> dict[str, Any]:
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def _word(event: dict[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""
