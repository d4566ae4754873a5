"""Going through damaged JSON one literal at a time: blanks, comments, strings in any quotes, numbers and words.

A quote that ends nothing is part of its text, which is a choice; text that runs to the end was cut off.
"""

import math
import re
from typing import Any

from codewhale.repair.strings import unescape

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


class Scanner:
    """A place in a damaged text, what was mended up to it, and whether a choice was made."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps = 0
        self._codes: dict[str, None] = {}
        self._lossy = False
        self._ends_in_number = False
        self._complete = False
        self._pythonic = False

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
                self._note("P3")
            return _WORDS[said]
        bare = _BARE_VALUE.match(text, at)
        if bare is None:
            raise Unreadable(f"{text[at]!r} cannot begin a value", at)
        self._at = bare.end()
        if self._at >= len(text):
            raise self._cut("a value without quotes runs to the end")
        if text[self._at] in CLOSE or "\\" in bare.group():
            raise Unreadable("a quote is missing before it", at)
        self._note("P4", lossy=True)
        return bare.group().strip()

    def _number(self, said: str) -> int | float:
        if not _STRICT_NUMBER.fullmatch(said):
            self._note("P3", lossy=re.match(r"[-+]?0\d", said) is not None)
        try:
            if said.lstrip("+-")[:2].lower() == "0x":
                return int(said, 16)
            value = int(said) if re.fullmatch(r"[-+]?\d{1,400}", said) else float(said)
            if value in (math.inf, -math.inf):
                raise ValueError(said)
            return value
        except ValueError:
            raise Unreadable(f"{said[:40]} is no number", self._at) from None

    # ------------------------------------------------------------------ strings

    def _string(self, key: bool, item: bool = False) -> str:
        """A string in whatever quotes it stands. A quote that ends nothing is part of the text, which is a choice."""
        text, opening = self._text, self._text[self._at]
        if text.startswith('"""', self._at) or text.startswith("'''", self._at):
            return self._triple()
        closing, start = CLOSE[opening], self._at + 1
        if opening == "'":
            self._pythonic = True
            self._note("P3")
        elif opening != '"':
            self._note("P4")
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
            self._note("P8", lossy=True)
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
            raise Unreadable("where this string ends cannot be told", self._at)
        inside = text[self._at + 3 : end]
        self._at = end + 3
        self._note("P3", lossy=True)
        return inside

    def _said(self, body: str, opening: str) -> str:
        """A string's text with its escapes undone."""
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
            raise Unreadable("it is too long to be mended; send valid JSON", self._at)

    def _note(self, code: str, *, lossy: bool = False) -> None:
        self._codes[code] = None
        self._lossy = self._lossy or lossy

    def _cut(self, message: str) -> Unreadable:
        return Unreadable(message, len(self._text), truncated=True)
