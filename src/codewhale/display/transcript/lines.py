"""Lines as the transcript draws them: spans of safe text with the name of a style, wrapped to a width in cells."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from codewhale.lib.text import sanitise

# A text and how it looks: palette fields and attributes by name, "keyword bold on:code_background".
Span = tuple[str, str]
# No drawn line holds more than so many characters for each of its cells: combining marks take no cell of their own.
_CHARS_A_CELL = 4
_TAB = 4
# What does not begin a line in Chinese or Japanese (JIS X 4051 and GB/T 15834 agree on these).
_NOT_FIRST = "，。、；：！？）》」』】〉’”…,.;:!?)]}"
_WIDE_FROM = "\u2e80"


class Line(NamedTuple):
    """One line of the screen: its spans, and the style of whatever is right of them."""

    spans: tuple[Span, ...] = ()
    fill: str = ""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.spans)


def clean(text: str) -> str:
    """Text that can be drawn: no control or bidi characters, line ends as newlines, tabs as blanks."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return sanitise(text.expandtabs(_TAB) if "\t" in text else text)


def flat(text: str) -> str:
    """Text that can be drawn on one row."""
    return clean(text).replace("\n", " ")


def ends(text: str, most: int) -> str:
    """A text in about `most` characters: what is too long keeps its beginning and its end, and says what is not
    shown."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]} … +{len(text) - head - tail:,} … {text[-tail:]}"


def cells(text: str) -> int:
    """How many cells a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """A text in at most `width` cells; what had to be cut ends in "…"."""
    if len(text) <= width and cells(text) <= width:
        return text
    cut = text[: _end(text, 0, width - 1, text.isascii())] if width > 1 else ""
    return (cut.rstrip() if cells(cut) < width else "") + "…"[:width]


def wrap(spans: Sequence[Span], width: int, first: Sequence[Span] = (), rest: Sequence[Span] = ()) -> list[Line]:
    """Words as lines of at most `width` cells; `first` stands before the first one, `rest` before the others."""
    return _wrap(spans, width, (tuple(first), tuple(rest)), "", False)


def fold_hard(spans: Sequence[Span], width: int, before: Sequence[Span] = (), fill: str = "") -> list[Line]:
    """Code as lines of at most `width` cells, cut wherever they are full; `before` stands before each of them, blanks
    where it is not the first."""
    blank = tuple((" " * cells(text), style) for text, style in before)
    return _wrap(spans, width, (tuple(before), blank), fill, True)


def _wrap(
    spans: Sequence[Span], width: int, before: tuple[tuple[Span, ...], tuple[Span, ...]], fill: str, hard: bool
) -> list[Line]:
    first, rest = before
    text = "".join(part for part, _ in spans)
    room = max(4, width - cells("".join(part for part, _ in first)))
    if len(text) <= room and cells(text) <= room:
        return [Line((*first, *(span for span in spans if span[0])), fill)]
    later = max(4, width - cells("".join(part for part, _ in rest)))
    lines: list[Line] = []
    start, plain = 0, text.isascii()
    places = list(accumulate((len(part) for part, _ in spans), initial=0))
    while start < len(text) or not lines:
        end = _end(text, start, later if lines else room, plain)
        if not hard and end < len(text):
            end = _soft(text, start, end)
        lines.append(Line((*(rest if lines else first), *_slice(spans, places, start, end)), fill))
        start = end
        while not hard and start < len(text) and text[start] == " ":
            start += 1
    return lines


def _end(text: str, start: int, width: int, plain: bool) -> int:
    """Where a line that begins at `start` is full; at least one character on."""
    if plain:
        return min(len(text), start + width)
    from rich.cells import get_character_cell_size

    at, used, bound = start, 0, min(len(text), start + width * _CHARS_A_CELL)
    while at < bound:
        size = 2 if text[at + 1 : at + 2] == "\ufe0f" else get_character_cell_size(text[at])
        if used + size > width:
            break
        used += size
        at += 1
    return max(at, start + 1)


def _soft(text: str, start: int, end: int) -> int:
    """The last place up to `end` where words may part; `end` when there is none."""
    if text[end] == " ":
        return end
    for at in range(end, start, -1):
        before, here = text[at - 1], text[at]
        if before == " " or ((before >= _WIDE_FROM or here >= _WIDE_FROM) and here not in _NOT_FIRST):
            return at
    return end


def _slice(spans: Sequence[Span], places: Sequence[int], start: int, end: int) -> Iterable[Span]:
    for (part, style), place in zip(spans, places, strict=False):
        if place < end and place + len(part) > start:
            yield part[max(0, start - place) : end - place], style
