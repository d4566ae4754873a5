"""JSON that never refuses a text: encoding with lone surrogates and endless numbers made writable."""

from typing import Any

import msgspec

from codewhale.lib.text import scrub_surrogates

_ENCODER = msgspec.json.Encoder()
_BITS = 3322  # a thousand digits


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8. Lone surrogates become U+FFFD, integers of over a thousand digits hex strings."""
    try:
        return _ENCODER.encode(value)
    except ValueError:  # includes UnicodeEncodeError
        return _ENCODER.encode(writable(msgspec.to_builtins(value)))


def pretty(value: Any) -> str:
    """JSON for a model to read: two spaces of indent, characters as they are."""
    return msgspec.json.format(encode(value), indent=2).decode()


def writable(value: Any) -> Any:
    """The same JSON-able value with nothing in it that cannot be written."""
    if isinstance(value, str):
        return scrub_surrogates(value)
    if isinstance(value, dict):
        return {writable(key): writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [writable(item) for item in value]
    if isinstance(value, int) and value.bit_length() > _BITS:
        return hex(value)
    return value
