"""The short way of a call whose arguments are right as they came: one strict read and one check, nothing mended."""

import re
from typing import Any

import msgspec

from codewhale.catalog.schema import fits
from codewhale.protocol.tools import ToolSpec

MAX_CHARACTERS = 1_048_576
_MANY_KEYS = 50
# What models write for an argument that they leave out.
_NOTHING = re.compile(r':\s*"(?:null|None|undefined)"')
_decode = msgspec.json.Decoder().decode


def right_already(raw: str, spec: ToolSpec) -> dict[str, Any] | None:
    """The arguments that `raw` says where they are a JSON object that fits the tool, whole numbers as integers (5.0 is
    5); None for all else: nulls and words for one, an empty string, files named by an address, keys that came twice and
    what is longer than any call included."""
    if len(raw) > MAX_CHARACTERS:
        return None
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict) or '"file://' in raw or doubled(raw, value):
        return None
    if "null" in raw and _holds_null(value):
        return None
    if _NOTHING.search(raw):
        return None
    if "." in raw or "E" in raw or "e" in raw:  # a number that may be whole is written with one of these
        value = whole(value)
    return value if fits(value, spec.parameters) else None


def _holds_null(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value
    return any(item is None or (isinstance(item, dict | list) and _holds_null(item)) for item in items)


def doubled(raw: str, value: dict[str, Any] | list[Any]) -> bool:
    """Whether a key may have come twice in the JSON text of an object (or of an array of objects)."""
    if isinstance(value, list):
        return any(isinstance(item, dict) for item in value)
    return len(value) > _MANY_KEYS or any(raw.count(f'"{key}"') > 1 for key in value)


def whole(value: Any) -> Any:
    """A value with its whole numbers as integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list) else value
