"""Streamed text up to where calls written as text may begin, so that nobody is shown marks that are no words.

What is let through depends on the text alone, not on the pieces it came in.
"""

from codewhale.lib.patterns import lazy
from codewhale.protocol.marks import Fences, may_stand, opens, opens_whole

_PART = lazy(r"[^\n]*\n|[^\n]+")
_FIRST = lazy(r"[<\[tf]")
_NEVER = "\0"
_THOUGHT = "</think>"
_NEAR = 8
_LONGEST_MARK = 80
_LONGEST_FENCE = 200


class HoldBack:
    """Passes a stream of text on and keeps back what follows a place where calls may begin."""

    def __init__(self) -> None:
        self._begun = False
        self._shut = False
        self._fenced_whole = False
        self._kept: list[str] = []
        self._waiting = ""
        self._before = self._last = ""
        self._line = ""
        self._fences = Fences()

    def feed(self, piece: str) -> str:
        return "".join([self._step(part) for part in _PART().findall(piece)])

    def end(self) -> str:
        rest = "".join(self._kept) + self._waiting
        self._kept, self._waiting = [], ""
        return rest

    def _step(self, part: str) -> str:
        if self._shut:
            self._kept.append(part)
            return ""
        self._line = (self._line + part)[:_LONGEST_FENCE]
        shown = self._pass(part)
        if part.endswith("\n"):
            self._fences.pass_line(self._line.removesuffix("\n"))
            self._line = ""
        return shown

    def _pass(self, part: str) -> str:
        if self._fenced_whole:
            if self._fences.inside or not part.strip():
                self._kept.append(part)
                return ""
            self._fenced_whole = False
            return self.end() + self._scan(part)
        if self._begun:
            return self._words(part)
        text = self.end() + part if "".join([self._waiting, *self._kept[-1:], part]).strip() else part
        bare = text.lstrip()
        if not bare or (opens_whole(bare) and not opens_whole(bare + _NEVER)):
            self._kept.append(text)
            return ""
        self._begun = True
        if not opens_whole(bare):
            return self._words(text)
        self._fenced_whole = bare[0] == "`"
        self._shut = not self._fenced_whole
        self._kept.append(text)
        return ""

    def _words(self, part: str) -> str:
        text = self._last + part
        end = text.find(_THOUGHT) + len(_THOUGHT)
        self._last = text[1 - len(_THOUGHT) :]
        if end < len(_THOUGHT):
            return self._scan(part)
        rest = text[end:]
        self._begun, self._last = False, ""
        shown = self._scan(part[: len(part) - len(rest)])
        if self._shut:
            self._kept.append(rest)
            return shown
        return shown + (self._pass(rest) if rest else "")

    def _scan(self, part: str) -> str:
        text, self._waiting = self._waiting + part, ""
        cut = len(text)
        for match in () if self._fences.inside else _FIRST().finditer(text):
            place = match.start()
            rest = text[place : place + _LONGEST_MARK]
            if may_stand((self._before + text[max(0, place - _NEAR) : place])[-_NEAR:]) and opens(rest):
                self._shut = opens(rest + _NEVER)
                if self._shut or place + len(rest) == len(text):
                    cut = place
                    break
        if self._shut:
            self._kept.append(text[cut:])
        else:
            self._waiting = text[cut:]
        self._before = (self._before + text[max(0, cut - _NEAR) : cut])[-_NEAR:]
        return text[:cut]
