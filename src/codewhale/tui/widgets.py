"""Small widgets that cards and screens share: lines with tones, a page to scroll, a field to type into, key hints."""

from collections.abc import Iterable, Mapping, Sequence

from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from codewhale.display.palette import Palette
from codewhale.display.text import Span, Spans, columns, wrap_whole
from codewhale.lib.text import sanitise
from codewhale.tui.keys import first_key
from codewhale.tui.paint import Styles

MOST_LINES = 20_000
MOST_COLUMNS = 20_000
_MOST_MEASURED = 300
GAP: Span = ("  ", "muted")
# What a line of a page may begin with that stands before each of its rows where it is wrapped.
BAR, INDENT = "┃ ", "  "


LOW = 16  # rows of a screen below which whatever can do without a row does


class TagLine(Widget):
    """Lines that are wrapped to the width; it takes no room while it has none."""

    DEFAULT_CSS = "TagLine { height: auto; background: $background; }"

    def __init__(self, palette: Palette, ground: str = "background", id: str | None = None) -> None:
        super().__init__(id=id)
        self._ground = ground
        self._colours = Styles(palette, ground)
        self._lines: Sequence[Spans] = ()

    def show(self, lines: Sequence[Spans]) -> None:
        self._lines = tuple(lines)
        self.refresh(layout=True)

    @property
    def text(self) -> str:
        return "\n".join("".join(text for text, _ in line) for line in self._lines)

    def repaint(self, palette: Palette) -> None:
        self._colours = Styles(palette, self._ground)
        self.refresh()

    def pieces(self, width: int) -> list[Spans]:
        return [piece for line in self._lines for piece in wrap_whole(line, width)]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.pieces(width))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        pieces = self.pieces(width)
        return self._colours.strip(pieces[y] if y < len(pieces) else (), width)


class Grown(Message):
    """What a list or a page holds has changed: the dialog around it may have to be larger."""


class Page(ScrollView, can_focus=True):
    """Lines, at most 20,000 of them."""

    DEFAULT_CSS = """
    Page { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    """

    def __init__(self, palette: Palette, ground: str = "background", id: str | None = None) -> None:
        super().__init__(id=id)
        self._ground = ground
        self._colours = Styles(palette, ground)
        self._lines: list[Spans] = []
        self._wrapped: list[Spans] = []
        self._width = 0
        self._found = -1

    def show(self, lines: Sequence[Spans], end: bool = False) -> None:
        """Show these lines from the top, or with `end` from their end."""
        self._found = -1
        self._lines = [_bounded(line) for line in lines[:MOST_LINES]]
        self._wrap()
        self.post_message(Grown())
        if end:
            self.scroll_end(animate=False)
        elif not self.is_vertical_scroll_end:
            self.scroll_to(y=min(self.scroll_offset.y, self.max_scroll_y), animate=False)

    @property
    def lines(self) -> Sequence[Spans]:
        """The lines as they were given."""
        return self._lines

    @property
    def widest(self) -> int:
        """The columns that the lines would take with room for all."""
        return max(map(columns, self._lines), default=0) + 1

    def lines_at(self, width: int) -> int:
        """The lines that they take in so many columns, about as many where there are more than a screen has."""
        short = self._lines if len(self._lines) <= _MOST_MEASURED else ()
        return sum(len(_rows(line, max(8, width - 1))) for line in short) or len(self._lines)

    @property
    def below(self) -> int:
        """How many drawn lines stand below what is seen."""
        return max(0, len(self._wrapped) - self.scroll_offset.y - self.size.height)

    def seek(self, text: str, step: int) -> bool:
        """Scroll to the next drawn line (`step` 1) or the one before (-1) that has a text, whatever its case, round the
        ends; whether there is one. The line is marked."""
        low = text.lower()
        count = len(self._wrapped)
        start = self._found if self._found >= 0 else self.scroll_offset.y - step
        for number in range(1, count + 1):
            at = (start + step * number) % count
            if low in "".join(part for part, _ in self._wrapped[at]).lower():
                self._found = at
                self.scroll_to(y=max(0, at - self.size.height // 3), animate=False, force=True)
                self.refresh()
                return True
        return False

    def at_end(self) -> bool:
        """Whether the last line is seen."""
        return self.below == 0

    def repaint(self, palette: Palette) -> None:
        self._colours = Styles(palette, self._ground)
        self.refresh()

    def on_resize(self) -> None:
        if self.size.width != self._width:
            self._wrap()

    def _wrap(self) -> None:
        self._width = self.size.width
        width = max(8, self._width - 1)
        self._wrapped = [piece for line in self._lines for piece in _rows(line, width)]
        self.virtual_size = Size(width, len(self._wrapped))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        at = self.scroll_offset.y + y
        line = self._wrapped[at] if 0 <= at < len(self._wrapped) else ()
        if at == self._found:
            marked = "selection_text on:selection"
            return self._colours.strip([(text, marked) for text, _ in line], self.size.width, marked)
        return self._colours.strip(line, self.size.width)


class Leafed:
    """The keys of a screen that scroll its `page`."""

    page: Page

    def action_up(self) -> None:
        self.page.scroll_up(animate=False)

    def action_down(self) -> None:
        self.page.scroll_down(animate=False)

    def action_page_up(self) -> None:
        self.page.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        self.page.scroll_page_down(animate=False)

    def action_first(self) -> None:
        self.page.scroll_home(animate=False)

    def action_last(self) -> None:
        self.page.scroll_end(animate=False)


def _rows(line: Spans, width: int) -> list[Spans]:
    """A line in the rows that it takes, each behind its bar or indent."""
    if not line or line[0][0] not in (BAR, INDENT):
        return wrap_whole(line, width)
    return [(line[0], *piece) for piece in wrap_whole(line[1:], width - len(INDENT))]


def _bounded(line: Spans) -> Spans:
    if sum(len(text) for text, _ in line) <= MOST_COLUMNS:
        return line
    kept, room = [], MOST_COLUMNS
    for text, tone in line:
        kept.append((text[:room], tone))
        room = max(0, room - len(text))
    return (*kept, ("…", "muted"))


class Field(Input):
    """Textual's line, without control, bidi and zero-width characters; a tab or a line end is a blank."""

    DEFAULT_CSS = """
    Field, Field:focus, Field.-invalid, Field.-invalid:focus { border: none; height: 1; padding: 0; }
    """

    def validate_value(self, value: str) -> str:
        """The value as it may stand here."""
        if value.isprintable() and value.isascii():
            return value
        flat = value.replace("\t", " ").replace("\n", " ")
        return "".join(char for char in flat if sanitise(char) == char)


def hint(action: str, said: str, changed: Mapping[str, str]) -> Spans:
    """One key and what it does."""
    return ((first_key(action, changed), "bold accent"), (f" {said}", "muted"))


def moves(panel: str, said: str, changed: Mapping[str, str]) -> Spans:
    """The keys that go up and down in a panel's rows."""
    both = "".join(first_key(f"{panel}.{name}", changed) for name in ("previous", "next"))
    return ((both, "bold accent"), (f" {said}", "muted"))


def in_rows(hints: Iterable[Spans], width: int) -> list[Spans]:
    """Hints side by side, on as many lines as they take; none is cut in two."""
    rows: list[Spans] = []
    row: Spans = ()
    for one in hints:
        if row and columns(row) + len(GAP[0]) + columns(one) > width:
            rows.append(row)
            row = ()
        row = (*row, GAP, *one) if row else one
    return [*rows, row] if row else rows
