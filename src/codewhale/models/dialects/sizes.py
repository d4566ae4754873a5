"""What wire messages consist of, in any dialect: the bytes of what a model, its tools and pictures say in them."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec import Raw

from codewhale.models.dialects.base import Buffer

ANSWERS, REASONING, CALLS, RESULTS, PICTURES = "answers", "reasoning", "tool calls", "tool results", "pictures"
_Wire = dict[str, Raw]
# Items and blocks by their type, else by their role: which fields say what. In all others there is nothing of it.
_FIELDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "assistant": {"content": ANSWERS},
        "tool": {"content": RESULTS},
        "function": {"name": CALLS, "arguments": CALLS},
        "function_call": {"name": CALLS, "arguments": CALLS},
        "function_call_output": {"output": RESULTS},
        "tool_use": {"name": CALLS, "input": CALLS},
        "tool_result": {"content": RESULTS},
        "input_image": {"image_url": PICTURES},
        "image_url": {"url": PICTURES},
        "image": {"data": PICTURES},
    }
)
_NESTED = MappingProxyType({"function": "function", "image_url": "image_url", "image": "source"})
_THOUGHTS = ("reasoning", "thinking", "redacted_thinking")
_FORM = ("role", "type", "id", "content", "tool_calls", "phase")


def message_sizes(data: Buffer | memoryview) -> Counter[str]:
    """Bytes by what they are in comma-joined messages, as they stand in the JSON and without the quotes around them.
    A person's words, names of fields, ids and punctuation are left out."""
    sizes: Counter[str] = Counter()
    _add(sizes, bytes(data).removeprefix(b","), "")
    return sizes


def _add(sizes: Counter[str], items: bytes, speaker: str) -> None:
    """Add comma-joined items; `speaker` is whose content they are."""
    for wire in msgspec.json.decode(b"[" + items + b"]", type=list[_Wire]):
        role, kind = _word(wire, "role"), _word(wire, "type")
        if kind == "text" and speaker == "assistant":
            sizes[ANSWERS] += _length(wire["text"])
        elif kind in _THOUGHTS or (role == "assistant" and not kind):
            sizes[REASONING] += sum(_length(value) for name, value in wire.items() if name not in _FORM)
        content = bytes(wire.get("content", b""))
        if role and content.startswith(b"["):
            _add(sizes, content[1:-1], role)
            continue
        _add(sizes, bytes(wire.get("tool_calls", b"[]"))[1:-1], role)
        if kind in _NESTED:
            wire = msgspec.json.decode(wire[_NESTED[kind]], type=_Wire)
        for name, what in _FIELDS.get(role if kind in ("", "message") else kind, {}).items():
            sizes[what] += _length(wire[name])


def _word(wire: _Wire, name: str) -> str:
    return bytes(wire.get(name, b"")).decode().strip('"')


def _length(value: Raw) -> int:
    data = bytes(value)
    return len(data) - 2 if data.startswith(b'"') else len(data)
