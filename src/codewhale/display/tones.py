"""Lines of text as spans with a tone, safe to show: cutting and wrapping by terminal columns, and the style of a tone
under a palette."""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from codewhale.display.palette import Palette
from codewhale.lib.text import sanitise

# (text, tone). A tone is the name of a palette's colour; "bold " may stand before it, " on NAME" behind it.
Span = tuple[str, str]
Line = tuple[Span, ...]

TAB = 4


def flat(text: str, most: int = 400) -> str:
    """Foreign text safe on one line, cut after `most` characters."""
    said = sanitise(" ".join(text[: most * 4].split()))
    return said if len(said) <= most else said[: most - 1] + "…"


def safe_lines(text: str, tone: str = "text") -> list[Line]:
    """Foreign text line by line, tabs as spaces, without anything that a terminal would obey."""
    return [((sanitise(line.expandtabs(TAB)), tone),) for line in text.split("\n")]


def columns(line: Iterable[Span]) -> int:
    """How many terminal columns a line takes."""
    return sum(cell_len(text) for text, _ in line)


def fit(text: str, width: int) -> str:
    """Text in at most `width` columns, with an ellipsis where it was cut."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    return text[: _reach(text, 0, width - 1)] + "…"


def wrap(line: Line, width: int, words: bool = True) -> list[Line]:
    """A line in pieces of at most `width` columns; with `words` cut behind a blank where one is near the end."""
    width = max(2, width)
    pieces: list[Line] = []
    piece: list[Span] = []
    room = width
    for text, tone in line:
        at = 0
        while at < len(text):
            end = _reach(text, at, room)
            if end < len(text):
                blank = text.rfind(" ", max(at, end - width // 3), end) if words else -1
                end = blank + 1 if blank >= 0 else end
            if end == at and not piece:
                end = at + 1
            if end > at:
                piece.append((text[at:end], tone))
            if end == len(text):
                room -= cell_len(text[at:])
            else:
                pieces.append(tuple(piece))
                piece, room = [], width
            at = end
    return [*pieces, tuple(piece)] if piece or not pieces else pieces


def _reach(text: str, start: int, room: int) -> int:
    """Up to which character a text fits into so many columns, from `start` on."""
    if text[start : start + room + 1].isascii():
        return min(start + room, len(text))
    used = 0
    for at in range(start, len(text)):
        used += get_character_cell_size(text[at])
        if used > room:
            return at
    return len(text)


class Tones:
    """Styles of a palette by tone, on a ground."""

    def __init__(self, palette: Palette, ground: str = "background") -> None:
        self._palette = palette
        self._ground = ground
        self._styles: dict[str, Style] = {}

    def style(self, tone: str) -> Style:
        """The style of a tone. Raises AttributeError for a colour that no palette has."""
        style = self._styles.get(tone)
        if style is None:
            name, _, ground = tone.removeprefix("bold ").partition(" on ")
            style = Style(
                color=getattr(self._palette, name),
                bgcolor=getattr(self._palette, ground or self._ground),
                bold=tone.startswith("bold "),
            )
            self._styles[tone] = style
        return style

    def strip(self, line: Iterable[Span], width: int, rest: str = "text") -> Strip:
        """A line exactly `width` columns wide."""
        return Strip(self._segments(line)).adjust_cell_length(width, self.style(rest))

    def _segments(self, line: Iterable[Span]) -> Iterator[Segment]:
        for text, tone in line:
            if text:
                # Whatever comes here was made safe before; nothing gets past this line that was not.
                yield Segment(sanitise(text).replace("\n", " ").replace("\t", " "), self.style(tone))
