"""The mark before the text: what Enter would do with it."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from codewhale.display.palette import Palette

# What is written: the mark and its colour.
MARKS = {
    "prompt": ("\u203a", "accent"),
    "shell": ("\u203a", "warning"),
    "command": ("\u203a", "link"),
    "history": ("?", "link"),
    "stash": ("=", "link"),
}


class Mark(Widget, can_focus=False):
    """Two cells."""

    DEFAULT_CSS = "Mark { width: 2; height: 1; }"

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self.kind = "prompt"

    def show(self, kind: str) -> None:
        """Show another one."""
        if kind != self.kind:
            self.kind = kind
            self.refresh()

    def repaint(self, palette: Palette) -> None:
        """Other colours."""
        self._palette = palette
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The mark and a space."""
        sign, colour = MARKS[self.kind]
        style = Style(color=getattr(self._palette, colour), bgcolor=self._palette.background, bold=True)
        return Strip([Segment(f"{sign} " if y == 0 else "  ", style)]).adjust_cell_length(self.size.width, style)
