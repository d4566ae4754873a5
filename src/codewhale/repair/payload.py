"""Reading the argument string that a model meant: strict JSON first, then a parser that forgives known damage.

Each departure from JSON is recorded by its code. It is lossless where no other reading makes sense, lossy where one
was chosen. What looks cut off is never completed. Linear in the input, with a bound on the work.
"""

import json
import re
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from codewhale.catalog.arguments import MAX_CHARACTERS, doubled
from codewhale.repair.scan import CLOSE, COLON, KEY_AHEAD, Scanner, Unreadable

__all__ = ["Reading", "Unreadable", "read"]
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


class Reading(Struct, frozen=True):
    """What a string says: its value, the codes of what was mended, and whether a choice was made on the way. `open`
    tells that it ended before its last closer, behind a whole value: members may have been cut off."""

    value: Any
    repairs: tuple[str, ...] = ()
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
        codes = tuple(dict.fromkeys((*reading.repairs, "P7", *inner.repairs)))
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
        raise Unreadable(f"it holds more than {MOST_MEMBERS:,} members; no tool takes so many", 0)
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
    return Reading(value, ("P10",), any(twice)) if twice else Reading(value)


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
        return bare and Reading(bare.value, ("P7", *bare.repairs), bare.lossy, bare.open)
    if not _ENCODED.match(text) or text[0] in "\"'":
        return None
    try:
        inner = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return None
    reading = _unwrapped(inner)
    return reading and Reading(reading.value, ("P7", *reading.repairs), reading.lossy, reading.open)


class _Reader(Scanner):
    """One pass over one damaged string."""

    def __init__(self, text: str, ended: bool = False) -> None:
        super().__init__(text)
        self._ended = ended
        self._unclosed = 0
        self._fenced = False
        self._values = 0
        self._arrays = 0
        self._strays = 0

    def whole(self) -> Reading:
        """The one value of the string, with what stands around it accounted for."""
        self._begin()
        if self._mark() == '"' and _QUOTED_KEY.match(self._text, self._at) and self._text.rstrip("` \n")[-1:] == "}":
            self._note("P2")
            value: Any = self._members(1)
        else:
            value = self._value(0)
        if self._unclosed and self._ends_in_number and not self._ended:
            self._note("P2", lossy=True)
        self._complete = True
        value = self._rest(value)
        try:
            msgspec.json.encode(value)
        except UnicodeEncodeError:
            raise Unreadable("it holds half of a character (a lone surrogate)", 0) from None
        return Reading(value, tuple(self._codes), self._lossy, self._unclosed > 0 and not self._ended)

    # ------------------------------------------------------------------ around the value

    def _begin(self) -> None:
        """Go to where the value begins: past a fence or a sentence before the first bracket, an empty string, a
        closing of nothing."""
        text = self._text
        self._at = self._blank_end(0)
        if text.startswith('""', self._at) and self._ahead(self._at + 2) == "{":
            self._note("P15")
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
                if self._fenced and "```" not in text[self._at :]:
                    return value
            elif mark in "{[" or (mark == '"' and value == {}) or (mark == "," and self._ahead(self._at + 1) == "{"):
                self._at += mark == ","
                value = self._again(value)
            elif mark == "," and isinstance(value, dict) and KEY_AHEAD.match(text, self._at + 1):
                # A closer came too early: the members after it belong to the object that it closed.
                self._note("P2", lossy=True)
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
        self._note("P5", lossy=self._text[self._at - 1] in "}]" and rest[0].isalnum())
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
            if depth == 0 and self._ahead(self._at) == "{":
                self._note("P2")
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
                self._astray()
                if self._arrays:  # the object's own closer is missing; the array around it ends here
                    return found
                self._at += 1
                if not self._ahead(self._at):  # in the place of the last brace
                    return found
                continue
            if not comma:
                self._note("P12", lossy=True)
            key = self._key()
            value = self._value(depth)
            if key in found:
                self._note("P10", lossy=found[key] != value)
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
                    self._note("P1")
                self._at += 1
                return found
            if mark == "":
                return self._unclosed_at_end(found, comma)
            if mark == "}":  # the array's own closer is missing; the object around it ends here
                self._astray()
                return found
            if mark == ",":
                self._note("P1", lossy=True)
                self._at += 1
                continue
            if mark in "\"'" and found and KEY_AHEAD.match(self._text, self._at):
                # A key: the array should have ended before it.
                self._at = last
                self._note("P2", lossy=True)
                return found
            if not comma:
                self._note("P12", lossy=True)
            found.append(self._string(key=False, item=True) if mark in CLOSE else self._value(depth))
            last = self._at
            comma = self._comma()

    def _unclosed_at_end(self, found: T, comma: bool) -> T:
        """The text ends within a container: a closer was forgotten, or the text was cut off."""
        if comma:
            raise self._cut("it ends where another value should stand")
        self._unclosed += 1
        self._astray()
        return found

    def _astray(self) -> None:
        """A closer is missing or another's. One such is clear, several may have been meant otherwise."""
        self._strays += 1
        self._note("P2", lossy=self._strays > 1)

    def _comma(self) -> bool:
        self._skip()
        if self._mark() in (",", "，"):
            if self._mark() != ",":
                self._note("P4")
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
            self._note("P4")
            self._at, key = bare.end(), bare.group()
        self._skip()
        if self._mark() == "":
            raise self._cut("it ends after a key")
        colon = COLON.match(text, self._at)
        if colon is None:
            raise Unreadable(f"after the key {key[:40]!r} stands {text[self._at]!r} where a colon should", self._at)
        if colon.group() != ":":
            self._note("P4")
        self._at = colon.end()
        return key
