"""The list above the text: completions, former prompts, parked drafts. One row is chosen; a few are shown."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from codewhale.display.palette import Palette
from codewhale.lib.text import one_line

SHOWN_ROWS = 8
_LABEL_MOST = 400


class Line(Struct, frozen=True):
    """A row of the list and what it stands for."""

    label: str
    detail: str
    stands_for: Any = None


class Popup(Widget, can_focus=False):
    """`chosen` is the row that a key would take, None while the list is closed or empty."""

    DEFAULT_CSS = "Popup { height: auto; width: 1fr; display: none; }"

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._lines: tuple[Line, ...] = ()
        self._header = ""
        self._at = 0

    @property
    def open(self) -> bool:
        """Whether it is shown."""
        return bool(self.display)

    @property
    def chosen(self) -> Line | None:
        """The row at hand."""
        return self._lines[self._at] if self.open and self._lines else None

    @property
    def moved(self) -> bool:
        """Whether another row than the first was chosen."""
        return self._at > 0

    def show(self, lines: Sequence[Line], header: str = "") -> None:
        """Show rows, the first one chosen."""
        self._lines = tuple(lines)
        self._header = one_line(header, _LABEL_MOST) if header else ""
        self._at = 0
        self.display = bool(self._lines or self._header)
        self.refresh(layout=True)

    def close(self) -> None:
        """Show nothing."""
        if self.open:
            self._lines, self._header, self._at = (), "", 0
            self.display = False

    def move(self, by: int) -> None:
        """Choose another row, around the ends."""
        if self._lines:
            self._at = (self._at + by) % len(self._lines)
            self.refresh()

    def repaint(self, palette: Palette) -> None:
        """Other colours."""
        self._palette = palette
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The header and the rows that are shown."""
        return min(len(self._lines), SHOWN_ROWS) + bool(self._header)

    def render_line(self, y: int) -> Strip:
        """One row."""
        width = self.size.width
        colours = self._palette
        ground = Style(color=colours.text, bgcolor=colours.surface)
        if self._header and y == 0:
            return _row(f"  {self._header}", "", width, Style(color=colours.accent, bgcolor=colours.surface), ground)
        first = self._first()
        index = first + y - bool(self._header)
        if not 0 <= index < len(self._lines):
            return Strip.blank(width, ground)
        line = self._lines[index]
        at = index == self._at
        style = Style(color=colours.selection_text, bgcolor=colours.selection) if at else ground
        quiet = style if at else Style(color=colours.muted, bgcolor=colours.surface)
        edge = _edge(first, y - bool(self._header), len(self._lines))
        label = f"{'>' if at else edge} {one_line(line.label, _LABEL_MOST)}"
        return _row(label, one_line(line.detail, _LABEL_MOST), width, style, quiet)

    def _first(self) -> int:
        """The first row shown: the chosen one stays inside."""
        most = max(0, len(self._lines) - SHOWN_ROWS)
        return min(max(0, self._at - SHOWN_ROWS + 2), most)


def _edge(first: int, y: int, rows: int) -> str:
    """A mark where there is more than is shown."""
    if y == 0 and first > 0:
        return "\u2191"
    return "\u2193" if y == SHOWN_ROWS - 1 and first + SHOWN_ROWS < rows else " "


def _row(label: str, detail: str, width: int, style: Style, quiet: Style) -> Strip:
    room = width - cell_len(label) - 4
    if detail and room > 8:
        gap = " " * max(2, min(34, width // 2) - cell_len(label))
        text = set_cell_size(detail, min(cell_len(detail), max(0, width - cell_len(label) - len(gap))))
        strip = Strip([Segment(label, style), Segment(gap, style), Segment(text, quiet)])
    else:
        cut = label if cell_len(label) <= width else set_cell_size(label, max(0, width - 1)) + "\u2026"
        strip = Strip([Segment(cut, style)])
    return strip.adjust_cell_length(width, quiet if not detail else style)
