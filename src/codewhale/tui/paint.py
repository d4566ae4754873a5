"""Lines as what the terminal is sent: styles by name become colours of a palette, and nothing that it would obey."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from codewhale.display.palette import Palette
from codewhale.display.text import Span, StyledLine, cells, fit, one_row
from codewhale.lib.text import sanitise

_ATTRIBUTES = {"bold", "italic", "underline", "strike"}
_MOST_STRIPS = 1_500
# What stands before the row at the cursor of any list, and before the one that is in use: neither by colour alone.
CURSOR, CURRENT = "› ", "*"
_MARK = "▌"
_THUMB = "┃"
_TRACK = "│"


class Styles:
    """The styles of a palette by name: a palette field for the text, attributes, "on:field" for the ground."""

    def __init__(self, palette: Palette, ground: str = "background") -> None:
        self._palette = palette
        self._ground = ground
        self._made: dict[str, Style] = {}

    def style(self, name: str) -> Style:
        """Raises AttributeError for a colour that no palette has."""
        style = self._made.get(name)
        if style is None:
            style = self._made[name] = self._make(name)
        return style

    def _make(self, name: str) -> Style:
        colour, ground, on = self._palette.text, getattr(self._palette, self._ground), set[str]()
        for word in name.split():
            if word in _ATTRIBUTES:
                on.add(word)
            elif word.startswith("on:"):
                ground = getattr(self._palette, word[3:])
            else:
                colour = getattr(self._palette, word)
        return Style(
            color=colour,
            bgcolor=ground,
            bold="bold" in on,
            italic="italic" in on,
            underline="underline" in on,
            strike="strike" in on,
        )

    def strip(self, line: Iterable[Span], width: int, rest: str = "text") -> Strip:
        """A line exactly `width` cells wide."""
        # Whatever comes here was made safe before; nothing gets past this line that was not.
        segments = [
            Segment(sanitise(text).replace("\n", " ").replace("\t", " "), self.style(s)) for text, s in line if text
        ]
        return Strip(segments).adjust_cell_length(width, self.style(rest))


class Paint(Styles):
    """Makes strips of the lines of a pane. Equal lines give the same strip: that is how changes are seen."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self._strips: OrderedDict[tuple[StyledLine, int, bool, str], Strip] = OrderedDict()

    def row(self, line: StyledLine, width: int, *, marked: bool = False, bar: str = "") -> Strip:
        """A line of the screen, exactly `width` cells: the mark of the chosen block, the line, the scroll bar (`bar` is
        "thumb", "track" or "")."""
        key = (line, width, marked, bar)
        found = self._strips.get(key)
        if found is None:
            found = self._strips[key] = self._build(line, width, marked, bar)
            if len(self._strips) > _MOST_STRIPS:
                self._strips.popitem(last=False)
        else:
            self._strips.move_to_end(key)
        return found

    def _build(self, line: StyledLine, width: int, marked: bool, bar: str) -> Strip:
        room = max(0, width - 2)
        pieces: list[tuple[str, str]] = [(_MARK, "accent") if marked else (" ", "text")]
        for text, style in line.spans:
            if not text.isprintable():
                text = one_row(text)  # whatever was forgotten where the line was made
            size = cells(text)
            if size > room:
                text = fit(text, room) if room else ""
                size = cells(text)
            pieces.append((text, style))
            room -= size
        pieces.append((" " * room, f"text {line.fill}" if line.fill else "text"))
        pieces.append(_BARS.get(bar, (" ", "text")))
        return Strip(self._segments(pieces), width)

    def _segments(self, pieces: Sequence[Span]) -> list[Segment]:
        """Neighbours of one style as one segment: each change of style is sent to the terminal."""
        segments: list[Segment] = []
        for text, name in pieces:
            style = self.style(name)
            if text and segments and segments[-1].style is style:
                segments[-1] = Segment(segments[-1].text + text, style)
            elif text:
                segments.append(Segment(text, style))
        return segments


_BARS = {"thumb": (_THUMB, "accent"), "track": (_TRACK, "border")}


def lit(line: StyledLine, query: str, style: str) -> StyledLine:
    """A line with every place where `query` stands (letter case apart) in another style."""
    low, text = query.casefold(), line.text
    if not low or low not in text.casefold() or len(text.casefold()) != len(text):
        return line
    places, at = [], text.casefold().find(low)
    while at >= 0:
        places.append((at, at + len(low)))
        at = text.casefold().find(low, at + len(low))
    return StyledLine(tuple(_lit(line.spans, places, style)), line.fill)


def _lit(spans: Sequence[Span], places: Sequence[tuple[int, int]], style: str) -> list[Span]:
    found: list[Span] = []
    start = 0
    for text, own in spans:
        end, at = start + len(text), start
        for low, high in places:
            low, high = max(low, start), min(high, end)
            if low < high:
                found += [(text[at - start : low - start], own), (text[low - start : high - start], style)]
                at = high
        found.append((text[at - start :], own))
        start = end
    return [span for span in found if span[0]]
