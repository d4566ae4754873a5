"""JSON as wires carry it: what no strict codec takes but models and endpoints do send is made sound, not refused."""

from typing import Any

import msgspec

from codewhale.lib.text import scrub_surrogates


def encode(value: Any) -> bytes:
    """Compact JSON in insertion order; lone surrogates, which no wire can carry, become U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_scrubbed(value))


def decode(text: str) -> Any:
    """The value of a JSON text; half of a surrogate pair, NaN and raw control characters are let through. Raises
    ValueError."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _leniently(text)


def _leniently(text: str) -> Any:
    import json

    try:
        return _scrubbed(json.loads(text, strict=False))
    except RecursionError:
        raise ValueError("nested too deep")


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub_surrogates(value)
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    return value
