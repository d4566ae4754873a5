"""What of a text is spoken: Markdown without its marks, code and addresses by a word each."""

import re
import unicodedata

_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1[ \t]*$|\Z)", re.M | re.S)
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_ADDRESS = re.compile(r"https?://([^\s/<>]+)[^\s<>]*")
_LINE_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+|\|)", re.M)
_RULES = re.compile(r"^[\s|:*_=-]{3,}$", re.M)
_MARKS = re.compile(r"\*\*|__|~~|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_BLANK = re.compile(r"\n{3,}")


def spoken(markdown: str) -> str:
    """The text to be read aloud."""
    text = _FENCE.sub(_code, markdown.replace("\r\n", "\n"))
    text = _ADDRESS.sub(r"\1", _LINK.sub(r"\1", text))
    text = _RULES.sub("", text)
    text = _MARKS.sub("", _LINE_MARKS.sub("", text)).replace("|", ", ")
    text = "".join(" " if is_control(letter) else letter for letter in text)
    return _BLANK.sub("\n\n", text).strip()


def is_control(letter: str) -> bool:
    """Whether a character cannot be spoken and is no line or tab."""
    return unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t"


def _code(block: re.Match[str]) -> str:
    lines = max(0, block[0].count("\n") - 1)
    return f"\n({lines} lines of code)\n" if lines != 1 else "\n(one line of code)\n"
