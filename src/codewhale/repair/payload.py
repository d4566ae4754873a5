"""Reading the argument string that a model meant: strict JSON first, then a parser that forgives known damage.

Each departure from JSON is recorded by its code. It is lossless where no other reading makes sense, lossy where one
was chosen. What looks cut off is never completed. Linear in the input, with a bound on the work.
"""

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")

MAX_CHARACTERS = 1_048_576
_MAX_DEPTH = 64
_MAX_STEPS = 8_000
_MAX_WRAPS = 3

_CLOSE = {"'": "'", '"': '"', "“": "”", "‘": "’", "„": "“", "«": "»"}
_BODY = {mark: re.compile(rf"[^\\{mark}]*") for mark in set(_CLOSE.values())}
_BLANK = re.compile(r"[\s\ufeff\xa0]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|#[^\n]*", re.S)
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])")
_STRICT_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.-]*(?=\s*:)")
_BARE_VALUE = re.compile(r"[^\s,{}\[\]\"'`:][^,{}\[\]\"'\n]*")
_KEY_AHEAD = re.compile(r"""\s*(?:"[^"\\\n]{1,80}"|'[^'\\\n]{1,80}'|[A-Za-z_$][\w$-]{0,80})\s*:""")
_ITEM_AHEAD = re.compile(r"""\s+(?:"[^"\\\n]{0,80}"|'[^'\\\n]{0,80}')\s*[,\]"']""")
_END_AHEAD = re.compile(r"""\s*(?:,\s*(?:"[^"\\\n]{1,80}"|'[^'\\\n]{1,80}')\s*:|[}\]]\s*(?:[,}\]]|$|```|\n\s*\n))""")
_WORDS = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False, "undefined": None}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_FENCE = re.compile(r"```[\w-]*[ \t]*\n?")
_CONTROL = re.compile(r"[\x00-\x1f]")


class Reading(Struct, frozen=True):
    """What a string says: its value, the codes of what was mended, and whether a choice was made on the way."""

    value: Any
    repairs: tuple[str, ...] = ()
    lossy: bool = False


class Unreadable(Exception):
    """A string that cannot be read. `truncated` tells that it looks cut off, `position` where it went wrong."""

    def __init__(self, message: str, position: int, *, truncated: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.truncated = truncated


def read(raw: str) -> Reading:
    """The value that `raw` says. Raises Unreadable."""
    if len(raw) > MAX_CHARACTERS:
        raise Unreadable(f"it is {len(raw)} characters long; at most {MAX_CHARACTERS} are read", 0)
    reading = _strict(raw)
    if reading is None:
        reading = _Reader(raw).whole()
    for _ in range(_MAX_WRAPS):
        inner = _unwrapped(reading.value)
        if inner is None:
            break
        codes = tuple(dict.fromkeys((*reading.repairs, "P7", *inner.repairs)))
        reading = Reading(inner.value, codes, reading.lossy or inner.lossy)
    return reading


def _unwrapped(value: object) -> Reading | None:
    """What a string holds, where that is an object or a string again; None where it is plain text."""
    text = value.lstrip() if isinstance(value, str) else ""
    if text[:1] not in ("{", '"', "["):
        return None
    try:
        return _strict(text) or _Reader(text).whole()
    except Unreadable:
        return None


def _strict(raw: str) -> Reading | None:
    try:
        return Reading(msgspec.json.decode(raw.encode("utf-8", "surrogatepass")))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


class _Reader:
    """One pass over one damaged string."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps = 0
        self._codes: dict[str, None] = {}
        self._lossy = False
        self._unclosed = 0
        self._ends_in_number = False
        self._pythonic = False

    def whole(self) -> Reading:
        """The one value of the string, with what stands around it accounted for."""
        self._begin()
        value = self._value(0)
        if self._unclosed > 1 or (self._unclosed and self._ends_in_number):
            self._note("P2", lossy=True)
        value = self._rest(value)
        try:
            msgspec.json.encode(value)
        except UnicodeEncodeError:
            raise Unreadable("it holds half of a character (a lone surrogate)", 0) from None
        return Reading(value, tuple(self._codes), self._lossy)

    # ------------------------------------------------------------------ around the value

    def _begin(self) -> None:
        """Go to where the value begins: past a fence or a sentence before the first bracket."""
        text = self._text
        self._at = self._blank_end(0)
        if text[self._at : self._at + 1] in ("{", "[", '"'):
            return
        starts = [found for mark in "{[" if (found := text.find(mark, self._at)) >= 0]
        if not starts:
            if not text.strip():
                raise Unreadable("it is empty", 0)
            raise Unreadable("there is no object in it", self._at)
        self._at = min(starts)
        self._note("P5")

    def _rest(self, value: Any) -> Any:
        """What follows the value: nothing, closers too many, a fence or prose, or the same object again."""
        text = self._text
        while True:
            self._skip()
            if self._at >= len(text):
                return value
            mark = text[self._at]
            if mark in "}]":
                self._note("P2")
                self._at += 1
            elif mark == ";":
                self._at += 1
            elif fence := _FENCE.match(text, self._at):
                self._note("P5")
                self._at = fence.end()
            elif mark in "{[":
                value = self._again(value)
            elif mark == "," and isinstance(value, dict) and _KEY_AHEAD.match(text, self._at + 1):
                # A closer came too early: the members after it belong to the object that it closed.
                self._note("P2", lossy=True)
                self._at += 1
                value = {**value, **self._members(1)}
            else:
                return self._prose(value)

    def _prose(self, value: Any) -> Any:
        if re.search(r"[{}\[\]\"]", self._text[self._at :]):
            raise Unreadable("something else follows the object", self._at)
        self._note("P5")
        return value

    def _again(self, value: Any) -> Any:
        """A second value behind the first: the same one, or an empty one beside a full one."""
        other = self._value(0)
        if other == value or other in ({}, []):
            self._note("P10" if other == value else "P15")
            return value
        if value in ({}, []):
            self._note("P15")
            return other
        raise Unreadable("two different objects came; send one call for each", self._at)

    # ------------------------------------------------------------------ values

    def _value(self, depth: int) -> Any:
        self._step()
        self._skip()
        text, at = self._text, self._at
        if depth > _MAX_DEPTH:
            raise Unreadable(f"it is nested more than {_MAX_DEPTH} deep", at)
        if at >= len(text):
            raise self._cut("a value is missing")
        mark = text[at]
        if mark == "{":
            self._at += 1
            return self._members(depth + 1)
        if mark == "[":
            self._at += 1
            return self._items(depth + 1)
        if mark in _CLOSE:
            return self._string(key=False)
        return self._plain()

    def _plain(self) -> Any:
        """A number, a word that stands for a value, or text without quotes."""
        text, at = self._text, self._at
        if number := _NUMBER.match(text, at):
            self._at = number.end()
            self._ends_in_number = self._at >= len(text)
            return self._number(number.group())
        word = _WORD.match(text, at)
        if word and word.group() in _WORDS and not _BARE_VALUE.match(text, word.end()):
            self._at = word.end()
            if word.group() not in ("true", "false", "null"):
                self._note("P3")
            return _WORDS[word.group()]
        bare = _BARE_VALUE.match(text, at)
        if bare is None:
            raise Unreadable(f"{text[at]!r} cannot begin a value", at)
        self._at = bare.end()
        if self._at >= len(text):
            raise self._cut("a value without quotes runs to the end")
        self._note("P4", lossy=True)
        return bare.group().strip()

    def _number(self, said: str) -> int | float:
        if not _STRICT_NUMBER.fullmatch(said):
            self._note("P3")
        try:
            if said.lstrip("+-")[:2].lower() == "0x":
                return int(said, 16)
            value = float(said)
            return int(said) if re.fullmatch(r"[-+]?\d{1,400}", said) else value
        except (ValueError, OverflowError):
            raise Unreadable(f"{said[:40]} is no number", self._at) from None

    def _members(self, depth: int) -> dict[str, Any]:
        """An object's members up to its end; the opening brace is behind."""
        found: dict[str, Any] = {}
        comma = True
        while True:
            self._skip()
            mark = self._mark()
            if mark == "}":
                if found and comma:
                    self._note("P1")
                self._at += 1
                return found
            if mark == "":
                return self._unclosed_at_end(found, comma)
            if mark == ",":
                self._note("P1")
                self._at += 1
                continue
            if mark == "]":
                self._note("P2")
                self._at += 1
                continue
            if not comma:
                self._note("P12", lossy=True)
            key = self._key()
            found[key] = self._value(depth)
            comma = self._comma()

    def _items(self, depth: int) -> list[Any]:
        """An array's items up to its end; the opening bracket is behind."""
        found: list[Any] = []
        comma = True
        while True:
            self._skip()
            mark = self._mark()
            if mark == "]":
                if found and comma:
                    self._note("P1")
                self._at += 1
                return found
            if mark == "":
                return self._unclosed_at_end(found, comma)
            if mark == "}":  # the array's own closer is missing; the object around it ends here
                self._note("P2")
                return found
            if mark == ",":
                self._note("P1", lossy=True)
                self._at += 1
                continue
            if not comma:
                self._note("P12", lossy=True)
            found.append(self._value(depth))
            comma = self._comma()

    def _unclosed_at_end(self, found: T, comma: bool) -> T:
        """The text ends within a container: a closer was forgotten, or the text was cut off."""
        if comma:
            raise self._cut("it ends where another value should stand")
        self._unclosed += 1
        self._note("P2")
        return found

    def _comma(self) -> bool:
        self._skip()
        if self._mark() == ",":
            self._at += 1
            return True
        return False

    def _key(self) -> str:
        text, at = self._text, self._at
        if text[at] in _CLOSE:
            key = self._string(key=True)
        else:
            bare = _BARE_KEY.match(text, at)
            if bare is None:
                if not re.match(r"[\w$.-]+\s*$", text[at : at + 200]):
                    raise Unreadable(f"a key cannot begin with {text[at : at + 10]!r}", at)
                raise self._cut("it ends within a key")
            self._note("P4")
            self._at, key = bare.end(), bare.group()
        self._skip()
        if self._mark() == "":
            raise self._cut("it ends after a key")
        if self._mark() != ":":
            raise Unreadable(f"after the key {key[:40]!r} stands {text[self._at]!r} where a colon should", self._at)
        self._at += 1
        return key

    # ------------------------------------------------------------------ strings

    def _string(self, key: bool) -> str:
        """A string in whatever quotes it stands. A quote that ends nothing is part of the text, which is a choice."""
        text, opening = self._text, self._text[self._at]
        if text.startswith('"""', self._at) or text.startswith("'''", self._at):
            return self._triple()
        closing, start = _CLOSE[opening], self._at + 1
        if opening == "'":
            self._pythonic = True
            self._note("P3")
        elif opening != '"':
            self._note("P4")
        pieces: list[str] = []
        at, inner = start, False
        while True:
            self._step()
            body = _BODY[closing].match(text, at)
            assert body is not None  # the pattern matches the empty string
            pieces.append(body.group())
            at = body.end()
            if at >= len(text):
                self._at = at
                raise self._cut("it ends within a string")
            if text[at] == "\\":
                pieces.append(text[at : at + 2])
                at += 2
                continue
            if self._ends_here(at + 1, key, inner):
                break
            inner = True
            pieces.append(text[at])
            at += 1
        self._at = at + 1
        if inner:
            self._note("P8", lossy=True)
        return self._said("".join(pieces), opening)

    def _ends_here(self, after: int, key: bool, inner: bool) -> bool:
        """Whether a quote ends its string, by what follows it."""
        text = self._text
        nearest = self._blank_end(after)
        mark = text[nearest : nearest + 1]
        if key:
            return mark in (":", "")
        if inner:
            return mark == "" or _END_AHEAD.match(text, after) is not None
        if mark in (",", "}", "]", "") or text.startswith(("//", "/*", "#", "```"), nearest):
            return True
        if mark not in ('"', "'"):
            return False
        return _KEY_AHEAD.match(text, nearest) is not None or _ITEM_AHEAD.match(text, after) is not None

    def _triple(self) -> str:
        text, mark = self._text, self._text[self._at] * 3
        end = text.find(mark, self._at + 3)
        if end < 0:
            raise self._cut("it ends within a string")
        inside = text[self._at + 3 : end]
        self._at = end + 3
        self._note("P3", lossy=True)
        return inside

    def _said(self, body: str, opening: str) -> str:
        """A string's text with its escapes undone. A backslash before what JSON knows no escape for is kept."""
        if _CONTROL.search(body):
            self._note("P6")
        if "\\" not in body:
            return body
        python = opening == "'" or self._pythonic
        found = list(re.finditer(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)?", body, re.S))
        self._steps += len(found)
        bad = any(not _known(match.group(1) or "", opening, python) for match in found)
        if bad:
            self._note("P9", lossy=any((match.group(1) or "") in ("n", "r", "t", "'") for match in found))
        pieces: list[str] = []
        at = 0
        for match in found:
            pieces += (body[at : match.start()], _unescaped(match.group(1) or "", opening, python, bad))
            at = match.end()
        pieces.append(body[at:])
        said = "".join(pieces)
        try:
            return said.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeError:
            return said

    # ------------------------------------------------------------------ small steps

    def _skip(self) -> None:
        """Over blanks and comments."""
        text = self._text
        while True:
            self._at = self._blank_end(self._at)
            if text[self._at : self._at + 1] not in ("/", "#"):
                return
            comment = _COMMENT.match(text, self._at)
            if comment is None:
                return
            self._step()
            self._note("P11")
            self._at = comment.end()

    def _blank_end(self, at: int) -> int:
        blank = _BLANK.match(self._text, at)
        return blank.end() if blank else at

    def _mark(self) -> str:
        return self._text[self._at : self._at + 1]

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise Unreadable("it is too long to be mended; send valid JSON", self._at)

    def _note(self, code: str, *, lossy: bool = False) -> None:
        self._codes[code] = None
        self._lossy = self._lossy or lossy

    def _cut(self, message: str) -> Unreadable:
        return Unreadable(message, len(self._text), truncated=True)


def _known(escape: str, opening: str, python: bool) -> bool:
    if escape in _ESCAPES or (escape[:1] == "u" and len(escape) == 5):
        return True
    return python and (escape in ("'", "a", "v", "0") or len(escape) > 1 or escape == opening)


def _unescaped(escape: str, opening: str, python: bool, bad: bool) -> str:
    """What an escape stands for. Beside one that JSON does not know, the writer forgot to double backslashes: a
    backspace or a form feed was not meant either."""
    if escape in _ESCAPES and not (bad and escape in ("b", "f")):
        return _ESCAPES[escape]
    if escape[:1] in ("u", "U", "x") and len(escape) > 1 and (escape[0] == "u" or python):
        number = int(escape[1:], 16)
        return chr(number) if number <= 0x10FFFF else "\\" + escape
    if escape == "'" or (python and escape in ("a", "v", "0")):
        return {"'": "'", "a": "\a", "v": "\v", "0": "\0"}[escape]
    return "\\" + escape
