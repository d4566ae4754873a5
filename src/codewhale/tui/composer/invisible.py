"""Characters that a terminal must never get, held in the text all the same: each stands as one private character
while it is edited and drawn, and is itself again when the text is sent."""

import re

from codewhale.lib.text import sanitise

# Plane 16 is for private use: nothing that a person writes stands there.
_BASE = 0x100000
_TAGS = range(0xE0000, 0xE0080)
_TAG_BASE = 0x10F000
_HELD = re.compile("[\U00100000-\U0010fffd]")
_LONE = re.compile("[\ud800-\udfff]")
_DOT = "\u00b7"


def hold(text: str) -> str:
    """The text as it is edited: line ends are "\\n", every control, bidi and zero-width character but tab and newline
    is one private character of one cell."""
    text = _HELD.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _LONE.sub("\ufffd", text)
    if sanitise(text) == text:
        return text
    return "".join(char if sanitise(char) == char else _private(char) for char in text)


def release(held: str) -> str:
    """The text itself: what `hold` was given, but for its line ends."""
    return _HELD.sub(lambda match: _public(match.group()), held)


def drawn(held: str) -> str:
    """What stands on the screen for held text, character by character: control pictures and dots."""
    return _HELD.sub(lambda match: _picture(_public(match.group())), held)


def _private(char: str) -> str:
    code = ord(char)
    return chr(_TAG_BASE + code - _TAGS.start) if code in _TAGS else chr(_BASE + code)


def _public(char: str) -> str:
    code = ord(char)
    if _TAG_BASE <= code < _TAG_BASE + len(_TAGS):
        return chr(_TAGS.start + code - _TAG_BASE)
    return chr(code - _BASE)


def _picture(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else _DOT
