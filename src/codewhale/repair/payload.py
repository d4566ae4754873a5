"""Reading the argument string that a model meant: strict JSON first, then a parser that forgives known damage.

Each departure from JSON is recorded by its code. It is lossless where no other reading makes sense, lossy where one
was chosen. What looks cut off is never completed. Linear in the input, with a bound on the work.
"""

import contextlib
import json
import math
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from codewhale.catalog.schema import MAX_CHARACTERS, doubled
from codewhale.protocol.linebreaks import closed
from codewhale.repair.codes import RepairCode

T = TypeVar("T")

MOST_MEMBERS = 20_000
_MAX_DEPTH = 64
_MAX_WRAPS = 3
_MAX_VALUES = 32
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.-]*(?=\s*[:=：])")
_QUOTED_KEY = re.compile(r'"[\w.-]{1,80}"\s*:')
_FENCE = re.compile(r"```[\w-]*[ \t]*\n?")
_FENCE_BEFORE = re.compile(r"(?:^|\n)[ \t]*```[\w-]*\s*$")
_OBJECT_AHEAD = re.compile(r"""\{\s*(?:["'“}\\]|[A-Za-z_]\w*\s*:\s*["'\d\[{])|\[\s*[{"'\]]""")
_ENCODED = re.compile(r"""["']?\s*[{\[]{1,8}(?:\s|\\[nrt]){0,40}\\+\"""")
_MEMBER_AHEAD = re.compile(r"""\{\s*(?:["'“\\]|[A-Za-z_]\w*\s*:\s*["'\d\[{])|["'“]\w{1,80}["'”]\s*:""")
_LIKE_AN_END = re.compile(r"[}\]][\s`\"']*$")
_MAX_STEPS = 4_000
CLOSE = {"'": "'", '"': '"', "“": "”", "”": "”", "‘": "’", "’": "’", "„": "“", "«": "»"}
_BODY = {mark: re.compile(rf"[^\\{mark}]*") for mark in set(CLOSE.values())}
_BLANK = re.compile(r"[\s\ufeff\xa0]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|#[^\n]*", re.S)
_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])")
_STRICT_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_BARE_VALUE = re.compile(r"[^\s,{}\[\]\"'`:][^,{}\[\]\"'\n]*")
KEY_AHEAD = re.compile(r"""\s*(?:"[^"\\\n]{1,80}"|'[^'\\\n]{1,80}'|[A-Za-z_$][\w$-]{0,80})\s*:""")
_ITEM_AHEAD = re.compile(r"""\s*(?:"[^"\\\n]{0,80}"|'[^'\\\n]{0,80}')\s*[,\]"']""")
_END_AHEAD = re.compile(r"""\s*(?:,\s*(?:"[^"\\\n]{1,80}"|'[^'\\\n]{1,80}')\s*:|[}\]]\s*(?:[,}\]]|$|```|\n\s*\n))""")
# What a text with quotes in it may be as well: members whose quotes are missing, or pieces put together.
_TORN = re.compile(
    r"""["'][^\w"']{0,8}["']\w{1,80}["']\s*:|,\s*(?:["']\w{1,80}["']?|\w{1,80}["'])\s*:|["']\s*\+\s*["']"""
)
_TORN_ITEM = re.compile(r"""["']\s*,|,\s*["']""")
_MEMBER = re.compile(r"""["']\w{1,80}["']\s*:""")
_WORDS = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nil": None}
COLON = re.compile(r"=>|:=|[:=：]")


class Unreadable(Exception):
    """A string that cannot be read. `truncated` tells that it looks cut off, `position` where it went wrong."""

    def __init__(self, message: str, position: int, *, truncated: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.truncated = truncated


class Reading(Struct, frozen=True):
    """What a string says: its value, the codes of what was repaired, and whether a choice was made on the way. `open`
    tells that it ended before its last closer, behind a whole value: members may have been cut off."""

    value: Any
    repairs: tuple[RepairCode, ...] = ()
    lossy: bool = False
    open: bool = False


def read(raw: str, *, ended: bool = False) -> Reading:
    """The value that `raw` says; `ended` says that its writer was at the end, so that a number there is whole and no
    member was cut off. Raises Unreadable."""
    if len(raw) > MAX_CHARACTERS:
        raise Unreadable(f"it is {len(raw)} characters long; at most {MAX_CHARACTERS} are read", 0)
    reading = _strict(raw) or _encoded(raw) or _Reader(raw, ended).whole()
    for _ in range(_MAX_WRAPS):
        inner = _unwrapped(reading.value)
        if inner is None:
            break
        codes = tuple(dict.fromkeys((*reading.repairs, RepairCode.ENCODED_TWICE, *inner.repairs)))
        reading = Reading(inner.value, codes, reading.lossy or inner.lossy, inner.open)
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
    """The value of valid JSON; a key that came twice with two values leaves a choice."""
    try:
        value = msgspec.json.decode(raw.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict | list):
        return Reading(value)
    if _crowded(value):
        raise Unreadable(f"it has more than {MOST_MEMBERS:,} members; no tool takes so many", 0)
    if not doubled(raw, value):
        return Reading(value)
    twice: list[bool] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in pairs:
            if key in found:
                twice.append(found[key] != item)
            found[key] = item
        return found

    json.loads(raw, object_pairs_hook=members)
    return Reading(value, (RepairCode.SENT_TWICE,), any(twice)) if twice else Reading(value)


def _crowded(value: dict[str, Any] | list[Any]) -> bool:
    """Whether a value holds more members in all than any call has: work on them is bounded by their number."""
    left, around = MOST_MEMBERS, [value]
    while around and left >= 0:
        inner = around.pop()
        left -= len(inner)
        if left >= 0:
            items = inner.values() if isinstance(inner, dict) else inner
            around += [item for item in items if isinstance(item, dict | list)]
    return left < 0


def _encoded(raw: str) -> Reading | None:
    """JSON with the escapes of a string that holds it, whose own quotes are missing, or with quotes around it whose
    content was not escaped."""
    text = raw.strip()
    if text[:2] == '"{' and text[-2:] == '}"' and len(text) > 3:
        bare = _strict(text[1:-1])
        return bare and Reading(bare.value, (RepairCode.ENCODED_TWICE, *bare.repairs), bare.lossy, bare.open)
    if not _ENCODED.match(text) or text[0] in "\"'":
        return None
    try:
        inner = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return None
    reading = _unwrapped(inner)
    return reading and Reading(reading.value, (RepairCode.ENCODED_TWICE, *reading.repairs), reading.lossy, reading.open)


class _Reader:
    """One pass over one damaged string: a place in it, what was repaired up to there, and whether a choice was made."""

    def __init__(self, text: str, ended: bool = False) -> None:
        self._text = text
        self._ended = ended
        self._at = 0
        self._steps = 0
        self._codes: dict[RepairCode, None] = {}
        self._lossy = False
        self._ends_in_number = False
        self._complete = False
        self._pythonic = False
        self._unclosed = 0
        self._fenced = False
        self._values = 0
        self._arrays = 0
        self._strays = 0

    def whole(self) -> Reading:
        """The one value of the string, with what stands around it accounted for."""
        self._begin()
        if self._mark() == '"' and _QUOTED_KEY.match(self._text, self._at) and self._text.rstrip("` \n")[-1:] == "}":
            self._note(RepairCode.BRACKET)
            value: Any = self._members(1)
        else:
            value = self._value(0)
        if self._unclosed and self._ends_in_number and not self._ended:
            self._note(RepairCode.BRACKET, lossy=True)
        self._complete = True
        value = self._rest(value)
        try:
            msgspec.json.encode(value)
        except UnicodeEncodeError:
            raise Unreadable("it contains half a character (a lone surrogate)", 0) from None
        return Reading(value, tuple(self._codes), self._lossy, self._unclosed > 0 and not self._ended)

    # ------------------------------------------------------------------ around the value

    def _begin(self) -> None:
        """Go to where the value begins: past a fence or a sentence before the first bracket, an empty string, a
        closing of nothing."""
        text = self._text
        self._at = self._blank_end(0)
        if text.startswith('""', self._at) and self._ahead(self._at + 2) == "{":
            self._note(RepairCode.BESIDE)
            self._at = self._blank_end(self._at + 2)
        if text[self._at : self._at + 1] in ("{", "[", '"') or re.match(r"""'\s*[{\["']""", text[self._at :][:100]):
            return
        starts = [found for mark in "{[" if (found := text.find(mark, self._at)) >= 0]
        if not starts:
            if not text.strip():
                raise Unreadable("it is empty", 0)
            raise Unreadable("there is no object in it", self._at)
        likely = _OBJECT_AHEAD.search(text, self._at)
        self._at = likely.start() if likely else min(starts)
        self._fenced = _FENCE_BEFORE.search(text, max(0, self._at - 40), self._at) is not None
        self._note(RepairCode.SURROUNDED)

    def _rest(self, value: Any) -> Any:
        """What follows the value: nothing, closers too many, a fence or prose, or the same object again."""
        text = self._text
        while True:
            self._skip()
            if self._at >= len(text):
                return value
            mark = text[self._at]
            if mark in "}]":
                self._note(RepairCode.BRACKET)
                self._at += 1
            elif mark == ";":
                self._at += 1
            elif fence := _FENCE.match(text, self._at):
                self._note(RepairCode.SURROUNDED)
                self._at = fence.end()
                if self._fenced and "```" not in text[self._at :]:
                    return value
            elif mark in "{[" or (mark == '"' and value == {}) or (mark == "," and self._ahead(self._at + 1) == "{"):
                self._at += mark == ","
                value = self._again(value)
            elif mark == "," and isinstance(value, dict) and KEY_AHEAD.match(text, self._at + 1):
                # A closer came too early: the members after it belong to the object that it closed.
                self._note(RepairCode.BRACKET, lossy=True)
                self._at += 1
                value = {**value, **self._members(1)}
            else:
                return self._prose(value)

    def _prose(self, value: Any) -> Any:
        """Words behind the value. Where they end like a value does, the object may have ended too early; where they
        hold another, it may have been meant."""
        rest = self._text[self._at :]
        if (
            _MEMBER_AHEAD.search(rest)
            or _LIKE_AN_END.search(rest[-200:])
            or ((self._lossy or value in ({}, [])) and re.search(r'["{}]', rest))
        ):
            raise Unreadable("something else follows the object", self._at)
        self._note(RepairCode.SURROUNDED, lossy=self._text[self._at - 1] in "}]" and rest[0].isalnum())
        return value

    def _again(self, value: Any) -> Any:
        """A second value behind the first: the same one, or an empty one beside a full one."""
        begins = self._at
        self._values += 1
        if self._values > _MAX_VALUES:
            raise Unreadable(f"more than {_MAX_VALUES} objects came", begins)
        try:
            other = self._value(0)
        except Unreadable as error:
            if error.truncated:
                raise
            self._at = begins + 1
            return self._prose(value)
        if other == value or other in ({}, []):
            self._note(RepairCode.SENT_TWICE if other == value else RepairCode.BESIDE)
            return value
        if value in ({}, []):
            self._note(RepairCode.BESIDE)
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
            if depth == 0 and self._ahead(self._at) == "{":
                self._note(RepairCode.BRACKET)
                self._at = self._blank_end(self._at) + 1
            return self._members(depth + 1)
        if mark == "[":
            self._at += 1
            self._arrays += 1
            items = self._items(depth + 1)
            self._arrays -= 1
            return items
        if mark in CLOSE:
            return self._string(key=False)
        return self._plain()

    def _members(self, depth: int) -> dict[str, Any]:
        """An object's members up to its end; the opening brace is behind."""
        found: dict[str, Any] = {}
        comma = True
        while True:
            self._skip()
            mark = self._mark()
            if mark == "}":
                if found and comma:
                    self._note(RepairCode.EXTRA_COMMA)
                self._at += 1
                return found
            if mark == "":
                return self._unclosed_at_end(found, comma)
            if mark == ",":
                self._note(RepairCode.EXTRA_COMMA)
                self._at += 1
                continue
            if mark == "]":
                self._astray()
                if self._arrays:  # the object's own closer is missing; the array around it ends here
                    return found
                self._at += 1
                if not self._ahead(self._at):  # in the place of the last brace
                    return found
                continue
            if not comma:
                self._note(RepairCode.COMMA_MISSING, lossy=True)
            key = self._key()
            value = self._value(depth)
            if key in found:
                self._note(RepairCode.SENT_TWICE, lossy=found[key] != value)
            found[key] = value
            comma = self._comma()

    def _items(self, depth: int) -> list[Any]:
        """An array's items up to its end; the opening bracket is behind."""
        found: list[Any] = []
        comma, last = True, self._at
        while True:
            self._skip()
            mark = self._mark()
            if mark == "]":
                if found and comma:
                    self._note(RepairCode.EXTRA_COMMA)
                self._at += 1
                return found
            if mark == "":
                return self._unclosed_at_end(found, comma)
            if mark == "}":  # the array's own closer is missing; the object around it ends here
                self._astray()
                return found
            if mark == ",":
                self._note(RepairCode.EXTRA_COMMA, lossy=True)
                self._at += 1
                continue
            if mark in "\"'" and found and KEY_AHEAD.match(self._text, self._at):
                # A key: the array should have ended before it.
                self._at = last
                self._note(RepairCode.BRACKET, lossy=True)
                return found
            if not comma:
                self._note(RepairCode.COMMA_MISSING, lossy=True)
            found.append(self._string(key=False, item=True) if mark in CLOSE else self._value(depth))
            last = self._at
            comma = self._comma()

    def _unclosed_at_end(self, found: T, comma: bool) -> T:
        """The text ends within a container: a closer was forgotten, or the text was cut off."""
        if comma:
            raise self._cut("it ends where another value should follow")
        self._unclosed += 1
        self._astray()
        return found

    def _astray(self) -> None:
        """A closer is missing or another's. One such is clear, several may have been meant otherwise."""
        self._strays += 1
        self._note(RepairCode.BRACKET, lossy=self._strays > 1)

    def _comma(self) -> bool:
        self._skip()
        if self._mark() in (",", "，"):
            if self._mark() != ",":
                self._note(RepairCode.ODD_QUOTES)
            self._at += 1
            return True
        return False

    def _key(self) -> str:
        text, at = self._text, self._at
        if text[at] in CLOSE:
            key = self._string(key=True)
        else:
            bare = _BARE_KEY.match(text, at)
            if bare is None:
                if not re.match(r"[\w$.-]+\s*$", text[at : at + 200]):
                    raise Unreadable(f"a key cannot begin with {text[at : at + 10]!r}", at)
                raise self._cut("it ends within a key")
            self._note(RepairCode.ODD_QUOTES)
            self._at, key = bare.end(), bare.group()
        self._skip()
        if self._mark() == "":
            raise self._cut("it ends after a key")
        colon = COLON.match(text, self._at)
        if colon is None:
            raise Unreadable(f"after the key {key[:40]!r} comes {text[self._at]!r} instead of a colon", self._at)
        if colon.group() != ":":
            self._note(RepairCode.ODD_QUOTES)
        self._at = colon.end()
        return key

    def _plain(self) -> Any:
        """A number, a word that stands for a value, or text without quotes."""
        text, at = self._text, self._at
        if number := _NUMBER.match(text, at):
            self._at = number.end()
            self._ends_in_number = self._at >= len(text)
            return self._number(number.group())
        word = _WORD.match(text, at)
        said = word.group().lower() if word else ""
        if word and said in _WORDS and not _BARE_VALUE.match(text, word.end()):
            self._at = word.end()
            if word.group() not in ("true", "false", "null"):
                self._note(RepairCode.PYTHON_LITERAL)
            return _WORDS[said]
        bare = _BARE_VALUE.match(text, at)
        if bare is None:
            raise Unreadable(f"{text[at]!r} cannot begin a value", at)
        self._at = bare.end()
        if self._at >= len(text):
            raise self._cut("a value without quotes runs to the end")
        if text[self._at] in CLOSE or "\\" in bare.group():
            raise Unreadable("a quote is missing before it", at)
        self._note(RepairCode.ODD_QUOTES, lossy=True)
        return bare.group().strip()

    def _number(self, said: str) -> int | float:
        if not _STRICT_NUMBER.fullmatch(said):
            self._note(RepairCode.PYTHON_LITERAL, lossy=re.match(r"[-+]?0\d", said) is not None)
        try:
            if said.lstrip("+-")[:2].lower() == "0x":
                return int(said, 16)
            value = int(said) if re.fullmatch(r"[-+]?\d{1,400}", said) else float(said)
            if value in (math.inf, -math.inf):
                raise ValueError(said)
            return value
        except ValueError:
            raise Unreadable(f"{said[:40]} is no number", self._at) from None

    # ------------------------------------------------------------------ literals

    def _string(self, key: bool, item: bool = False) -> str:
        """A string in whatever quotes it stands. A quote that ends nothing is part of the text, which is a choice."""
        text, opening = self._text, self._text[self._at]
        if text.startswith('"""', self._at) or text.startswith("'''", self._at):
            return self._triple()
        closing, start = CLOSE[opening], self._at + 1
        if opening == "'":
            self._pythonic = True
            self._note(RepairCode.PYTHON_LITERAL)
        elif opening != '"':
            self._note(RepairCode.ODD_QUOTES)
        pieces: list[str] = []
        at, inner = start, False
        while True:
            self._step()
            plain = _BODY[closing].match(text, at)
            assert plain is not None  # the pattern matches the empty string
            pieces.append(plain.group())
            at = plain.end()
            if at >= len(text):
                self._at = at
                if inner and text.rstrip()[-1:] == "}":
                    raise Unreadable("a quote is missing, or has no backslash", start - 1)
                raise self._cut("it ends within a string")
            if text[at] == "\\":
                pieces.append(text[at : at + 2])
                at += 2
                continue
            if self._ends_here(at + 1, key, inner) or (item and _ITEM_AHEAD.match(text, at + 1)):
                break
            inner = True
            pieces.append(text[at])
            at += 1
        self._at = at + 1
        body = "".join(pieces)
        if inner:
            odd = opening == '"' and body.count('"') % 2 == 1
            if key or odd or _TORN.search(body) or (item and _TORN_ITEM.search(body)):
                raise Unreadable("a quote is missing, or has no backslash", start - 1)
            self._note(RepairCode.INNER_QUOTE, lossy=True)
        return self._said(body, opening)

    def _ends_here(self, after: int, key: bool, inner: bool) -> bool:
        """Whether a quote ends its string, by what follows it."""
        text = self._text
        nearest = self._blank_end(after)
        mark = text[nearest : nearest + 1]
        if key:
            return mark in (":", "", "：") or COLON.match(text, nearest) is not None
        if inner:
            return mark == "" or _END_AHEAD.match(text, after) is not None
        if mark in (",", "}", "]", "", "，") or text.startswith(("//", "/*", "#", "```"), nearest):
            return True
        if mark not in ('"', "'"):
            return False
        return KEY_AHEAD.match(text, nearest) is not None or _ITEM_AHEAD.match(text, after) is not None

    def _triple(self) -> str:
        text, mark = self._text, self._text[self._at] * 3
        end = text.find(mark, self._at + 3)
        if end < 0:
            raise self._cut("it ends within a string")
        if text[end + 3 : end + 4] == mark[0]:
            raise Unreadable("it is not clear where this string ends", self._at)
        inside = text[self._at + 3 : end]
        self._at = end + 3
        self._note(RepairCode.PYTHON_LITERAL, lossy=True)
        return inside

    def _said(self, body: str, opening: str) -> str:
        said = unescape(body, opening, self._pythonic)
        self._steps += said.escapes
        if said.torn:
            raise Unreadable("its quotes may have been single or double ones", self._at)
        for code in said.repairs:
            self._note(code)
        self._lossy = self._lossy or said.lossy
        return said.text

    # ------------------------------------------------------------------ small steps

    def _skip(self) -> None:
        text = self._text
        while True:
            self._at = self._blank_end(self._at)
            if text[self._at : self._at + 1] not in ("/", "#"):
                return
            comment = _COMMENT.match(text, self._at)
            if comment is None:
                return
            self._step()
            self._note(RepairCode.COMMENT)
            if comment.end() >= len(text) and not self._complete:
                raise self._cut("a comment runs to the end")
            if comment.end() >= len(text) and _MEMBER.search(comment.group()):
                raise Unreadable("a comment may be part of the object before it", self._at)
            if text[self._at - 1] in CLOSE and '"' in comment.group():
                raise Unreadable("a comment may be part of the text before it", self._at)
            self._at = comment.end()

    def _blank_end(self, at: int) -> int:
        blank = _BLANK.match(self._text, at)
        return blank.end() if blank else at

    def _mark(self) -> str:
        return self._text[self._at : self._at + 1]

    def _ahead(self, at: int) -> str:
        """What stands behind the blanks from a place on, "" at the end."""
        at = self._blank_end(at)
        return self._text[at : at + 1]

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise Unreadable("it is too long to repair; send valid JSON", self._at)

    def _note(self, code: RepairCode, *, lossy: bool = False) -> None:
        self._codes[code] = None
        self._lossy = self._lossy or lossy

    def _cut(self, message: str) -> Unreadable:
        return Unreadable(message, len(self._text), truncated=True)


# ---------------------------------------------------------------------- strings

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|.)?", re.S)
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONTROL = re.compile(r"[\x00-\x1f]")
# Apostrophes that are no quotes, and quotes that span lines.
_NO_QUOTE = re.compile(r"(?<=[A-Za-z]{2})'(?=(?:t|s|re|ve|ll|d|m)\b)|\"{3}|'{3}")
_MARKED = re.compile(r"([A-Za-z])?\\'(?=([a-z])?)")
_UNMARKED = re.compile(r"(?<!\\)'")


class RepairNote(Struct, frozen=True):
    """A string's text, the codes of what was repaired in it, whether a choice was made, whether none can be, and the
    number of escapes."""

    text: str
    repairs: tuple[RepairCode, ...] = ()
    lossy: bool = False
    torn: bool = False
    escapes: int = 0


def unescape(body: str, opening: str, pythonic: bool) -> RepairNote:
    """What stands between two quotes. A backslash before what JSON knows no escape for is kept: it was not doubled.
    `pythonic` says that the text around it is Python's."""
    codes = (RepairCode.RAW_CONTROL,) if _CONTROL.search(body) else ()
    if "\\" not in body:
        return RepairNote(body, codes)
    python = opening == "'" or pythonic
    found = list(_ESCAPE.finditer(body))
    bad = any(not _known(match.group(1) or "", opening, python) for match in found)
    said_so = [match.group(1) or "" for match in found]
    lossy = bad and any(one in ("n", "r", "t", "'") or one[:2] == "u{" for one in said_so) and not _breaks(body, found)
    pieces: list[str] = []
    at = 0
    for match in found:
        pieces += (body[at : match.start()], _meant(match.group(1) or "", python, bad))
        at = match.end()
    pieces.append(body[at:])
    said = "".join(pieces)
    with contextlib.suppress(UnicodeError):  # half of a character: the reader of the whole says so
        said = said.encode("utf-16", "surrogatepass").decode("utf-16")
    return RepairNote(
        said, (*codes, RepairCode.BAD_ESCAPE) if bad else codes, lossy, opening == "'" and _torn(body), len(found)
    )


def _known(escape: str, opening: str, python: bool) -> bool:
    if escape in _ESCAPES or (escape[:1] == "u" and len(escape) == 5):
        return True
    return python and (escape in ("'", "a", "v", "0") or len(escape) > 1 or escape == opening)


def _meant(escape: str, python: bool, bad: bool) -> str:
    """What an escape stands for. Beside one that JSON does not know, the writer forgot to double backslashes: a
    backspace or a form feed was not meant either."""
    if escape in _ESCAPES and not (bad and escape in ("b", "f")):
        return _ESCAPES[escape]
    if escape[:2] == "u{":
        number = int(escape[2:-1], 16)
        return chr(number) if number <= 0x10FFFF else "\\" + escape
    if escape[:1] in ("u", "U", "x") and len(escape) > 1 and (escape[0] == "u" or python):
        number = int(escape[1:], 16)
        return chr(number) if number <= 0x10FFFF else "\\" + escape
    if escape == "'" or (python and escape in ("a", "v", "0")):
        return {"'": "'", "a": "\a", "v": "\v", "0": "\0"}[escape]
    return "\\" + escape


def _breaks(body: str, found: Sequence[re.Match[str]]) -> bool:
    """Whether each line feed, return and tab can only be one, though other backslashes were not doubled: the text is
    lines of code, its quotes are closed on each line, unknown escapes stand within them, breaks and tabs outside."""
    lines: list[list[str]] = [[]]
    at = 0
    for match in found:
        said = match.group(1) or ""
        lines[-1].append(_NO_QUOTE.sub("", body[at : match.start()]))
        at = match.end()
        if said == "n":
            lines.append([])
        elif said == "'" or (said == "t" and "".join(lines[-1]).strip()):
            return False
        elif said not in ("r", "t"):
            lines[-1].append({'"': '"', "\\": "\\"}.get(said, "\0"))
        elif said == "r" and body[at : at + 2] != "\\n":
            return False
    lines[-1].append(_NO_QUOTE.sub("", body[at:]))
    return all(closed("".join(pieces)) for pieces in lines) and "n" in {match.group(1) for match in found}


def _torn(body: str) -> bool:
    """Whether text in single quotes holds some with a backslash that may have been double ones: Python writes them so
    only beside a double one, and other hands put them within words."""
    marked = list(_MARKED.finditer(body))
    alone = _UNMARKED.search(body) is not None
    if not marked or ('"' in body and not alone):
        return False
    return alone or not all(match.group(1) and match.group(2) for match in marked)
