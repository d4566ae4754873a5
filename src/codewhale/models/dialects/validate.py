"""The last look at a request's messages, whatever wrote them: what no endpoint takes is told here, by its place, and
is not sent. Each message is read once, when it first goes out.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.lib.text import one_line
from codewhale.models.dialects.base import Buffer, Fact
from codewhale.models.dialects.jsontext import decode

_NAME = lazy(r"[A-Za-z0-9_-]{1,64}")
_DAMAGED = "This conversation cannot continue as stored: start a new session; this one stays readable"
_RENAME = "Give the tool a name of up to 64 letters, digits, _ and -"
_SWITCH = "Switch to a model that needs no reasoning back, or set the provider's fact replays_reasoning = false"


class _Said(Struct):
    """What one wire message says, in any dialect. `calls` are (id, name, arguments); `words`: there is something in
    it beside calls and results; `leads`: it is reasoning that something of the model must follow."""

    role: str
    calls: list[tuple[str, str, Any]] = []
    results: list[str] = []
    words: bool = False
    thought: bool = False
    leads: bool = False


class _Fault(Exception):
    """What is wrong with a message, and what to do about it."""


def _chat(wire: dict[str, Any], facts: Mapping[str, Fact]) -> _Said:
    calls = [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in wire.get("tool_calls", ())
    ]
    thought = any(wire.get(field) for field in str(facts.get("reasoning_field", "reasoning_content")).split())
    results = [wire["tool_call_id"]] if wire["role"] == "tool" else []
    words = bool(wire.get("content")) or (thought and not calls)
    return _Said(wire["role"], calls, results, words, thought)


def _blocks(wire: dict[str, Any], facts: Mapping[str, Fact]) -> _Said:
    said = _Said(wire["role"])
    for block in wire["content"]:
        match block:
            case {"type": "tool_use"}:
                said.calls.append((block["id"], block["name"], "{}" if isinstance(block["input"], dict) else ""))
            case {"type": "tool_result"}:
                if said.words:
                    raise _Fault(f"has words before the result of call {block['tool_use_id']}", _DAMAGED)
                said.results.append(block["tool_use_id"])
            case {"type": "thinking" | "redacted_thinking"}:
                said.thought = True
            case {"type": "text"}:
                if not block["text"].strip():
                    raise _Fault("has a text without a word", _DAMAGED)
                said.words = True
            case _:
                said.words = True
    return said


def _item(wire: dict[str, Any], facts: Mapping[str, Fact]) -> _Said:
    match wire:
        case {"type": "function_call"}:
            return _Said("assistant", [(wire["call_id"], wire["name"], wire["arguments"])])
        case {"type": "function_call_output"}:
            return _Said("tool", results=[wire["call_id"]])
        case {"role": role}:
            return _Said(role, words=bool(wire["content"]))
    return _Said("assistant", words=True, leads=wire["type"] == "reasoning")


Reader = Callable[[dict[str, Any], Mapping[str, Fact]], _Said]
# Dialect -> how its messages are read, and the field of the body that holds them.
_READERS: Mapping[str, tuple[Reader, str]] = MappingProxyType(
    {
        "openai-chat": (_chat, "messages"),
        "scripted": (_chat, "messages"),
        "anthropic": (_blocks, "messages"),
        "openai-responses": (_item, "input"),
    }
)


class Validator:
    """Follows the messages of one conversation; `first` is the index of the first of them in a body."""

    def __init__(self, dialect: str, facts: Mapping[str, Fact], first: int = 0) -> None:
        reader: tuple[Reader | None, str] = _READERS.get(dialect) or (None, "")
        self._read, self._field = reader
        self._facts = facts
        self._first = first
        self._bound = dialect == "anthropic"  # All results of a message stand in the one behind it.
        self._split = dialect == "openai-responses"  # Each call is a message.
        self._thinks = bool(facts.get("replays_reasoning")) and bool(facts.get("reasoning_placeholder", True))
        self._seen, self._count, self._fault = 0, 0, ""
        self._used: set[str] = set()
        self._open: dict[str, int] = {}
        self._last = _Said("")

    def fault(self, wire: Buffer, last: bytes = b"") -> str:
        """What is wrong with a request of these comma-joined messages and a user message that is not theirs yet; ""
        when it is sound. `wire` may only have grown since the last look."""
        if self._read is None:
            return ""
        for message in _messages(bytes(memoryview(wire)[self._seen :])):
            self._fault = self._fault or self._told(message)
            self._count += 1
        self._seen = len(wire)
        if self._fault:
            return self._fault
        said, opened = self._last, dict(self._open)
        try:
            for message in _messages(last):
                if found := self._told(message):
                    return found
            return self._end()
        finally:
            self._last, self._open = said, opened

    def _told(self, message: dict[str, Any]) -> str:
        try:
            assert self._read is not None
            self._take(self._read(message, self._facts))
        except _Fault as fault:
            return self._place(self._count, *fault.args)
        except (KeyError, TypeError, AttributeError) as error:
            return self._place(self._count, f"has no usable {error}", _DAMAGED)
        return ""

    def _place(self, index: int, what: str, remedy: str) -> str:
        return f"{self._field}[{self._first + index}] {one_line(what, 300)}. {remedy}."

    def _take(self, said: _Said) -> None:
        before, self._last = self._last, said
        if said.role not in ("user", "assistant", "tool"):
            raise _Fault(f"has the role {said.role!r}, which is not allowed here", _DAMAGED)
        if self._open and not said.results and not (self._split and said.role == "assistant"):
            raise _Fault(f"is where the result of {self._unanswered()} should be", _DAMAGED)
        if before.leads and said.role != "assistant":
            raise _Fault("follows reasoning that led to nothing", _DAMAGED)
        for call_id in said.results:
            if self._open.pop(call_id, None) is None:
                what = "is answered twice" if call_id in self._used else "was never made"
                raise _Fault(f"is a result of call {call_id!r}, which {what}", _DAMAGED)
        if self._bound and self._open:
            raise _Fault(f"lacks the result of {self._unanswered()}", _DAMAGED)
        if not (said.calls or said.results or said.words):
            raise _Fault(f"is a message of the {said.role} with nothing in it", _DAMAGED)
        if said.calls and self._thinks and not said.thought and not self._split:
            raise _Fault("has calls without the reasoning that the provider wants back", _SWITCH)
        for call in said.calls:
            self._call(*call)

    def _call(self, call_id: str, name: str, arguments: Any) -> None:
        if not call_id or call_id in self._used:
            raise _Fault(f"has a call {call_id!r}: " + ("a second one of that id" if call_id else "no id"), _DAMAGED)
        if not _NAME().fullmatch(name):
            raise _Fault(f"calls {name!r}, which is no name that providers take", _RENAME)
        try:
            msgspec.json.decode(arguments, type=dict)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise _Fault(f"has a call {call_id!r} whose arguments are not a JSON object", _DAMAGED)
        self._used.add(call_id)
        self._open[call_id] = self._count

    def _end(self) -> str:
        if self._open:
            return self._place(next(iter(self._open.values())), f"has {self._unanswered()} without a result", _DAMAGED)
        if self._last.role == "assistant" and not self._split:
            return self._place(self._count - 1, "is the model's, and nothing follows that it could answer", "Say more")
        return ""

    def _unanswered(self) -> str:
        return "call " + ", ".join(repr(call_id) for call_id in self._open)


def _messages(wire: bytes) -> Iterator[dict[str, Any]]:
    """The messages of wire text that may begin with a comma."""
    yield from decode("[" + wire.decode().removeprefix(",") + "]")
