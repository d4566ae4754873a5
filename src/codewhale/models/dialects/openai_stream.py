"""How answers in the OpenAI chat dialect are read: chunks (or one whole answer) in, stream events out.

Forgiving where endpoints differ in practice: tool-call fragments that share an index, lack an index or an id,
come whole, or carry their arguments as an object.
"""

from typing import Any

import msgspec

from codewhale.models.dialects.failures import ProviderFailure, failure, from_error
from codewhale.models.dialects.jsontext import decode
from codewhale.protocol.stream import CallDelta, Finished, ReasoningDelta, StreamEvent, TextDelta, Usage, UsageReport

_decode = msgspec.json.Decoder().decode
# The words by which an endpoint says that it gave up on the answer, rather than that the answer ended.
_GAVE_UP = {
    "error": "the provider ended the answer with an error",
    "network_error": "the provider lost the model in the middle of the answer",
    "abort": "the provider aborted the answer",
    "insufficient_system_resource": "the provider ran out of capacity",
}


class _Call:
    """One call as it has come so far. `text` holds its argument fragments."""

    __slots__ = ("id", "index", "name", "position", "text")

    def __init__(self, position: int, index: int | None) -> None:
        self.position = position
        self.index = index
        self.id = ""
        self.name = ""
        self.text: list[str] = []

    def repeats(self, call_id: str, name: str, arguments: str) -> bool:
        """Whether a fragment says the whole call a second time."""
        return (
            bool(call_id) and arguments != "" and name == self.name and arguments == "".join(self.text) and self.whole()
        )

    def name_goes_on(self, call_id: str, name: str) -> bool:
        """Whether a fragment without an id brings the rest of this call's name, before any argument."""
        return bool(self.id and self.name and name and name != self.name and not call_id and not any(self.text))

    def ends_before(self, name: str, arguments: str) -> bool:
        """Whether a fragment under the same index begins another call: its name differs, or it begins an object
        where one is already complete."""
        if self.name and name != self.name:
            return True
        return arguments.lstrip().startswith("{") and self.whole()

    def whole(self) -> bool:
        """Whether its arguments are an object."""
        try:
            return isinstance(_decode("".join(self.text)), dict)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return False


class ChatParser:
    """Reads one answer. `ended` is set once the provider said why it ended or that nothing follows; `size` counts
    the characters of content received."""

    def __init__(self) -> None:
        self.ended = False
        self.done = False
        self.size = 0
        self._reason = ""
        self._usage: Usage | None = None
        self._calls: list[_Call] = []

    def feed(self, name: str, data: str, out: list[StreamEvent]) -> None:
        """Read one server-sent event and append what it means to `out`. Raises ProviderFailure for an error object
        and for data that is not JSON."""
        data = data.strip()
        if self.done or not data:
            return
        if data == "[DONE]":
            if not self.ended and not all(call.whole() for call in self._calls):
                raise failure("interrupted", "the answer ended inside a call, without a reason")
            self.ended = self.done = True
            return
        chunk = _loads(data)
        if not isinstance(chunk, dict):
            raise failure("malformed", f"the provider sent an event that is not an object: {data[:80]}")
        if name == "error" or chunk.get("error"):
            raise ProviderFailure(from_error(chunk.get("error") or chunk))
        self._answer(chunk, "delta", out)

    def whole(self, data: bytes, out: list[StreamEvent]) -> None:
        """Read an answer that came as one JSON object, instead of `feed`."""
        try:
            answer = _loads(data.decode())
        except UnicodeDecodeError:
            raise failure("malformed", "the answer contains bytes that are not UTF-8")
        if not isinstance(answer, dict):
            raise failure("malformed", "the answer is JSON but not an object")
        if answer.get("error") or not isinstance(answer.get("choices"), list):
            raise ProviderFailure(from_error(answer.get("error") or answer))
        self._answer(answer, "message", out)
        self.ended = True

    def finish(self, out: list[StreamEvent]) -> None:
        """Append the closing events: usage where known, then Finished."""
        self.report(out)
        out.append(Finished(self._reason or ("tool_calls" if self._calls else "stop")))

    def report(self, out: list[StreamEvent]) -> None:
        """Append the usage where known: all that is left to say of an answer that failed."""
        if self._usage is not None:
            out.append(UsageReport(self._usage))
            self._usage = None

    def _answer(self, chunk: dict[str, Any], key: str, out: list[StreamEvent]) -> None:
        self._count(chunk)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return
        for choice in choices:
            if isinstance(choice, dict) and not choice.get("index"):
                delta = choice.get(key) or choice.get("delta") or choice.get("message")
                if isinstance(delta, dict):
                    self._delta(delta, out)
                self._count(choice)  # Some say it here.
                reason = choice.get("finish_reason")
                if reason:
                    self._finish_reason(str(reason), choice)

    def _count(self, place: dict[str, Any]) -> None:
        if isinstance(usage := place.get("usage"), dict):
            self._usage = parse_usage(usage)

    def _finish_reason(self, reason: str, choice: dict[str, Any]) -> None:
        if reason in _GAVE_UP:
            said = from_error(choice["error"]).message if choice.get("error") else _GAVE_UP[reason]
            raise failure("server", said)
        self._reason = "tool_calls" if reason == "function_call" else reason
        self.ended = True

    def _delta(self, delta: dict[str, Any], out: list[StreamEvent]) -> None:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought and isinstance(thought, str):
            self.size += len(thought)
            out.append(ReasoningDelta(thought))
        content = delta.get("content")
        if content:
            parts = [TextDelta(content)] if isinstance(content, str) else _parts(content)
            self.size += sum(len(part.text) for part in parts)
            out += parts
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for call in calls:
                if isinstance(call, dict):
                    self._fragment(call, out)
        elif isinstance(delta.get("function_call"), dict):
            self._fragment({"index": 0, "function": delta["function_call"]}, out)

    def _fragment(self, fragment: dict[str, Any], out: list[StreamEvent]) -> None:
        function = fragment.get("function")
        if not isinstance(function, dict):
            function = fragment
        index = fragment.get("index")
        index = index if isinstance(index, int) else None
        call_id, name = _word(fragment.get("id")), _word(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        self.size += len(arguments)
        call = self._candidate(index, call_id, name)
        if call is not None and name and call.repeats(call_id, name, arguments):
            return
        grows = call is not None and call.name_goes_on(call_id, name)
        if call is None or (name and not grows and call.ends_before(name, arguments)):
            call = _Call(len(self._calls), index)
            self._calls.append(call)
        late_id, late_name = "" if call.id else call_id, "" if call.name and not grows else name
        call.id, call.name = call.id or late_id, call.name + late_name
        call.text.append(arguments)
        out.append(CallDelta(call.position, late_id, late_name, arguments))

    def _candidate(self, index: int | None, call_id: str, name: str) -> _Call | None:
        """The call that a fragment may continue, by index and id: a new id under a used index is a new call, and so
        is a name without either."""
        if index is None and not call_id and name:
            return None
        for call in reversed(self._calls):
            if index is not None and call.index != index:
                continue
            if not call_id or call.id == call_id:
                return call
            if index is not None and not call.id and not (name and call.name):
                return call
        return None


def parse_usage(usage: dict[str, Any]) -> Usage:
    """Token counts under the names that chat endpoints use. The miss is what the endpoint says, else input less
    hit where it reports hits at all; a cost is in US dollars."""
    prompt = _count(usage, "prompt_tokens", "input_tokens")
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    details = {"cached_tokens": usage["cached_tokens"]} if "cached_tokens" in usage else details
    hit = min(_count(usage, "prompt_cache_hit_tokens") or _count(details, "cached_tokens"), prompt)
    known = "prompt_cache_hit_tokens" in usage or "cached_tokens" in details
    miss = _count(usage, "prompt_cache_miss_tokens") or (prompt - hit if known else 0)
    spent = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    return Usage(
        input=prompt,
        output=_count(usage, "completion_tokens", "output_tokens"),
        cache_hit=hit,
        cache_miss=miss,
        reasoning=_count(spent, "reasoning_tokens") if isinstance(spent, dict) else 0,
        cost=_dollars(usage.get("cost")),
    )


def _dollars(cost: Any) -> float | None:
    """What some gateways say a call cost."""
    return float(cost) if type(cost) in (int, float) and 0 <= cost < 1e6 else None


def _count(usage: dict[str, Any], *keys: str) -> int:
    for key in keys:
        value = usage.get(key)
        if isinstance(value, (int, float)) and 0 < value < 1e15:
            return int(value)
    return 0


def _loads(data: str) -> Any:
    try:
        return decode(data)
    except ValueError:
        raise failure("malformed", f"the provider sent an event that is not JSON: {data[:80]}")


def _parts(content: Any) -> list[TextDelta | ReasoningDelta]:
    """Content that came as a list of parts: text, and thinking that is again such a list."""
    found: list[TextDelta | ReasoningDelta] = []
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        if part.get("type") == "thinking":
            found += [ReasoningDelta(thought.text) for thought in _parts(part.get("thinking"))]
        elif part.get("type") in ("text", None) and isinstance(text := part.get("text"), str) and text:
            found.append(TextDelta(text))
    return found


def _word(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _arguments(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()
