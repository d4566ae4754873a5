"""Hebrew and Arabic on terminals that do not order text themselves. Text is kept in the order in which it is read; a
line is put into the order in which it is seen when it is drawn, stretch by stretch, so that no column moves. A terminal
that orders text by itself gets it as it is: done twice, it would stand backwards again."""

import re
import unicodedata
from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
# What parts a row into stretches that are ordered each by itself: columns, lines of boxes, two blanks.
_PARTS = re.compile("([\u2500-\u259f]+| {2,})")
# A number, or a character with the marks that stand on it.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u200c\u200d\ufe0f"
)
_CLUSTER = re.compile(rf"\d+(?:[.,:/]\d+)*|.[{_MARKS}]*", re.DOTALL)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_ORDERING = ("VTE_VERSION", "KONSOLE_VERSION")
_PROGRAMS = ("Apple_Terminal", "mlterm")


def orders_itself(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to put right-to-left text in order: GNOME's and its kin, Konsole, Apple's, mlterm.
    What tmux and screen show they place by cell, and order nothing."""
    if environ.get("TMUX") or environ.get("TERM", "").startswith(("screen", "tmux")):
        return False
    program = environ.get("TERM_PROGRAM", "")
    return any(environ.get(name) for name in _ORDERING) or program in _PROGRAMS or "MLTERM" in environ


class RightToLeft(LineFilter):
    """Puts each drawn line into the order in which it is seen."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        text = "".join(segment.text for segment in segments if not segment.control)
        if text.isascii() or not _RIGHT.search(text):
            return segments
        styles = [segment.style for segment in segments if not segment.control for _ in segment.text]
        ordered: list[tuple[str, Style | None]] = []
        at = 0
        for part in _PARTS.split(text):
            chars = list(zip(part, styles[at : at + len(part)], strict=True))
            ordered += _visual(part, chars) if _RIGHT.search(part) else chars
            at += len(part)
        return [*(segment for segment in segments if segment.control), *_joined(ordered)]


def _visual(text: str, chars: list[tuple[str, Style | None]]) -> list[tuple[str, Style | None]]:
    """A stretch in the order in which it is seen: the way of its first letter is that of the whole, runs of the other
    way and numbers stand in it as they are written (Unicode's algorithm without embeddings). Blanks at its ends, and
    the marks before a text of the other way such as a bullet, stay where they are."""
    spans = [match.span() for match in _CLUSTER.finditer(text.rstrip())]
    kinds = [_way(text[start]) for start, _ in spans]
    first = next((at for at, kind in enumerate(kinds) if kind in "LR"), -1)
    if first < 0:
        return chars
    base = kinds[first]
    begin = first if base == "R" else 0
    ways = _ways([text[start] for start, _ in spans[begin:]], kinds[begin:], base)
    runs: list[tuple[str, list[int]]] = []
    for at, way in enumerate(ways, begin):
        if not runs or runs[-1][0] != way:
            runs.append((way, []))
        runs[-1][1].append(at)
    seen = chars[: spans[begin][0]]
    for way, run in reversed(runs) if base == "R" else runs:
        for at in reversed(run) if way == "R" else run:
            start, end = spans[at]
            mirrored = way == "R" and kinds[at] == "N"
            seen += [
                (char.translate(_MIRRORED), style) if mirrored else (char, style) for char, style in chars[start:end]
            ]
    return [*seen, *chars[spans[-1][1] :]]


def _way(char: str) -> str:
    """L or R for letters, D for a number, N for what takes the way of its neighbours."""
    kind = unicodedata.bidirectional(char)
    return {"L": "L", "R": "R", "AL": "R", "EN": "D", "AN": "D"}.get(kind, "N")


def _ways(marks: list[str], kinds: list[str], base: str) -> list[str]:
    """The way of each piece: brackets go with what they hold, other neutral ones with both their neighbours or with
    the whole, and a number is written to the right but belongs to what it follows."""
    ways, strong = list(kinds), base
    for at, kind in enumerate(kinds):
        strong = kind if kind in "LR" else strong
        ways[at] = strong if kind == "D" else kind
    for opened, closed in _pairs(marks):
        inside = set(ways[opened + 1 : closed]) - {"N"}
        before = next((way for way in reversed(ways[:opened]) if way != "N"), base)
        if inside:
            ways[opened] = ways[closed] = base if base in inside else before
    settled = list(ways)
    for at, way in enumerate(ways):
        if way == "N":
            before = next((each for each in reversed(ways[:at]) if each != "N"), base)
            after = next((each for each in ways[at:] if each != "N"), base)
            settled[at] = before if before == after else base
    return settled


def _pairs(marks: list[str]) -> list[tuple[int, int]]:
    """The places of brackets that belong together."""
    found, waiting = [], list[tuple[str, int]]()
    for at, mark in enumerate(marks):
        if mark in _BRACKETS:
            waiting.append((_BRACKETS[mark], at))
        elif waiting and waiting[-1][0] == mark:
            found.append((waiting.pop()[1], at))
    return sorted(found)


def _joined(chars: list[tuple[str, Style | None]]) -> list[Segment]:
    """Neighbours of one style as one segment."""
    found: list[Segment] = []
    for char, style in chars:
        if found and found[-1].style is style:
            found[-1] = Segment(found[-1].text + char, style)
        else:
            found.append(Segment(char, style))
    return found
