"""Words of a shell line as the shell will see them: quotes taken off, escapes decoded, what stays unknown marked."""

import re
import unicodedata
from collections.abc import Iterator

from msgspec import Struct

# Stands in a word's text for a part whose value is known only when the line runs.
UNKNOWN = "\0"
GLOB = re.compile(r"[*?\[]")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+\Z")
_ESCAPE = re.compile(r"\\(.)", re.S)
_QUOTED_ESCAPE = re.compile(r"\\([$`\"\\])|\\\n")
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.S)
_ANSI_CHARS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LONGEST = 300
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


class Word(Struct, frozen=True, gc=False):
    """One word. `text` is what is known of it, with UNKNOWN for each part that is not; `literal` says that every
    shell takes the word for exactly `text`; `plain` that no quote and no escape stands in it; `glob` that a pattern
    does; `names` are the variables in it."""

    text: str
    literal: bool = True
    plain: bool = True
    glob: bool = False
    names: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text


def bare(raw: str, start: bool = True) -> Word:
    """The word that unquoted text makes; `start` says that it begins its word (a tilde is expanded only there)."""
    if _PLAIN.match(raw):
        return Word(raw)
    text = _ESCAPE.sub(lambda match: "" if match[1] == "\n" else match[1], raw)
    glob = bool(GLOB.search(_ESCAPE.sub("", raw)))
    tilde = start and raw.startswith("~")
    odd = tilde or "{" in raw or "}" in raw or "=~" in raw or ":~" in raw
    return Word(text, literal=not odd and not glob, plain="\\" not in raw, glob=glob)


def joined(words: list[Word]) -> Word:
    """The word that pieces written without a blank between them make."""
    return Word(
        "".join(word.text for word in words),
        all(word.literal for word in words) and "{" not in "".join(w.text for w in words if w.plain),
        all(word.plain for word in words),
        any(word.glob for word in words),
        tuple(name for word in words for name in word.names),
    )


def in_double(raw: str) -> str:
    return _QUOTED_ESCAPE.sub(lambda match: match[1] or "", raw) if "\\" in raw else raw


def in_dollar_single(raw: str) -> str:
    """Text between $' and ', its escapes decoded."""
    return _ANSI.sub(_ansi, raw)


def _ansi(match: re.Match[str]) -> str:
    code = match[1]
    try:
        if code[0] in "xuU":
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
    except (ValueError, OverflowError):
        return UNKNOWN
    return _ANSI_CHARS.get(code, code if len(code) == 1 else UNKNOWN)


def braces(text: str, most: int = 64) -> Iterator[str]:
    """The words that brace lists in a word expand to, at most `most`; the word itself where there is none, and where it
    is too long for a command."""
    waiting = [text]
    if len(text) > _LONGEST:
        waiting, most = [], 0
        yield text
    while waiting and most > 0:
        word = waiting.pop(0)
        match = _BRACES.search(word)
        if match is None:
            most -= 1
            yield word
        elif len(waiting) < most:
            waiting[:0] = [word[: match.start()] + part + word[match.end() :] for part in match[1].split(",")]


def odd_character(text: str) -> str:
    """The name of the first character that shell, reader and terminal may take for different things, "" for none:
    controls, blanks other than space, tab and line feed, what has no width, and look-alikes of ASCII."""
    if text.isascii() and text.isprintable():
        return ""
    for char in text:
        if char in "\n\t" or " " <= char <= "~":
            continue
        if unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs", "Mn", "Me") or any(
            " " <= like <= "~" for like in unicodedata.normalize("NFKC", char) if not like.isalpha()
        ):
            return f"U+{ord(char):04X}"
        if unicodedata.east_asian_width(char) in "FH" or (
            char.isalpha() and unicodedata.normalize("NFKC", char).isascii()
        ):
            return f"U+{ord(char):04X}"
    return ""
