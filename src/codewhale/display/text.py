"""Lines of text as spans of safe text, each with the name of a style: cleaned, measured, cut and wrapped by the
cells of a terminal. The one place where text is wrapped."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from codewhale.lib.patterns import lazy
from codewhale.lib.text import sanitise

# A text and how it looks: palette fields and attributes by name, "keyword bold on:code_background".
Span = tuple[str, str]
Spans = tuple[Span, ...]
# No drawn line holds more than so many characters for each of its cells: combining marks take no cell of their own.
_CHARS_A_CELL = 4
_TAB = 4
_COLOUR = lazy(r"\x1b\[[\d;:]*m")
# Words are wrapped here however wide the window is; tables, code and output use all of it.
PROSE = 100
# What does not begin a line in Chinese or Japanese (JIS X 4051 and GB/T 15834 agree on these).
_JOINER = "\u200d"
_NOT_FIRST = (
    "，。、；：！？）》」』】〉’”…,.;:!?)]}\u200d\ufe0f\u20e3\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
)
_WIDE_FROM = "\u2e80"


class StyledLine(NamedTuple):
    """One line of the screen: its spans, and the style of whatever is right of them."""

    spans: Spans = ()
    fill: str = ""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.spans)


def clean(text: str) -> str:
    """Text that can be drawn: no control or bidi characters, line ends as newlines, tabs as blanks."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return sanitise(text.expandtabs(_TAB) if "\t" in text else text)


def uncoloured(text: str) -> str:
    """A program's text without the sequences that colour it."""
    return _COLOUR().sub("", text) if "\x1b[" in text else text


def one_row(text: str) -> str:
    """Text that can be drawn on one row, its blanks as they are."""
    return clean(text).replace("\n", " ")


def flat(text: str, most: int = 400) -> str:
    """Foreign text safe on one line, each stretch of blanks as one, cut after `most` characters."""
    short = sanitise(" ".join(text[: most * 4].split()))
    return short if len(short) <= most else short[: most - 1] + "…"


def safe_rows(text: str) -> list[str]:
    """Foreign text row by row with everything that is not seen shown as escapes."""
    return [sanitise(row.expandtabs(_TAB)) for row in text.split("\n")]


def safe_lines(text: str, style: str = "text") -> list[Spans]:
    """Foreign text line by line, without anything that a terminal would obey."""
    return [((row, style),) for row in safe_rows(text)]


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


def columns(line: Iterable[Span]) -> int:
    """How many cells spans take."""
    return sum(cells(text) for text, _ in line)


def fit(text: str, width: int) -> str:
    """A text in at most `width` cells; what had to be cut ends in "…"."""
    if len(text) <= width and cells(text) <= width:
        return text
    cut = text[: _end(text, 0, width - 1)] if width > 1 else ""
    return (cut.rstrip() if cells(cut) < width else "") + "…"[:width]


def wrap(spans: Sequence[Span], width: int, first: Sequence[Span] = (), rest: Sequence[Span] = ()) -> list[StyledLine]:
    """Words as lines of at most `width` cells; `first` stands before the first one, `rest` before the others."""
    widths = max(4, width - columns(first)), max(4, width - columns(rest))
    return [
        StyledLine((*(rest if number else first), *piece))
        for number, piece in enumerate(_pieces(spans, widths, soft=True, trim=True))
    ]


def fold_hard(spans: Sequence[Span], width: int, before: Sequence[Span] = (), fill: str = "") -> list[StyledLine]:
    """Code as lines of at most `width` cells that lose nothing, cut behind blanks where there are some; `before` stands
    before each of them, blanks where it is not the first."""
    blank = tuple((" " * cells(text), style) for text, style in before)
    room = max(4, width - columns(before))
    return [
        StyledLine((*(blank if number else before), *piece), fill)
        for number, piece in enumerate(_pieces(spans, (room, room), soft=True, trim=False))
    ]


def wrap_whole(line: Spans, width: int, words: bool = True) -> list[Spans]:
    """A line in pieces of at most `width` cells that lose nothing; with `words` cut behind blanks where it can be."""
    width = max(2, width)
    return list(_pieces(line, (width, width), soft=words, trim=False))


def _pieces(spans: Sequence[Span], widths: tuple[int, int], soft: bool, trim: bool) -> Iterator[Spans]:
    """Spans in pieces: the first of at most `widths[0]` cells, the others of `widths[1]`. `soft` parts them between
    words; `trim` leaves out the blanks that they are parted at."""
    text = "".join(part for part, _ in spans)
    room = widths[0]
    if len(text) <= room and cells(text) <= room:
        yield tuple(span for span in spans if span[0])
        return
    places = list(accumulate((len(part) for part, _ in spans), initial=0))
    start = 0
    while start < len(text):
        end = _end(text, start, room)
        if soft and end < len(text):
            end = _soft(text, start, end, trim)
        yield tuple(_slice(spans, places, start, end))
        start, room = end, widths[1]
        while trim and start < len(text) and text[start] == " ":
            start += 1


def _end(text: str, start: int, width: int) -> int:
    """Where a line that begins at `start` is full; at least one character on."""
    if text[start : start + width + 1].isascii():
        return min(len(text), start + width)
    from rich.cells import get_character_cell_size

    at, used, bound = start, 0, min(len(text), start + width * _CHARS_A_CELL)
    while at < bound:
        joined = at > start and text[at - 1] == _JOINER
        size = 0 if joined else 2 if text[at + 1 : at + 2] == "\ufe0f" else get_character_cell_size(text[at])
        if used + size > width:
            break
        used += size
        at += 1
    return max(at, start + 1)


def _soft(text: str, start: int, end: int, trim: bool) -> int:
    """The last place up to `end` where words may part; `end` when there is none but behind an indentation."""
    if trim and text[end] == " ":
        return end
    for at in range(end, start, -1):
        before, after = text[at - 1], text[at]
        wide = before >= _WIDE_FROM or after >= _WIDE_FROM
        if before == " " or (wide and before != _JOINER and after not in _NOT_FIRST):
            return at if text[start:at].strip() else end
    return end


def _slice(spans: Sequence[Span], places: Sequence[int], start: int, end: int) -> Iterable[Span]:
    for (part, style), place in zip(spans, places, strict=False):
        if place < end and place + len(part) > start:
            yield part[max(0, start - place) : end - place], style
