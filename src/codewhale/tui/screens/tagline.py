"""A few lines with tones, as high as what they say."""

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from codewhale.display.palette import Palette
from codewhale.display.tones import Line, Tones, wrap


class TagLine(Widget):
    """Lines that are wrapped to the width; it takes no room while it has none."""

    DEFAULT_CSS = "TagLine { height: auto; background: $background; }"

    def __init__(self, palette: Palette, ground: str = "background", id: str | None = None) -> None:
        super().__init__(id=id)
        self._ground = ground
        self._tones = Tones(palette, ground)
        self._lines: Sequence[Line] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Say this from now on."""
        self._lines = tuple(lines)
        self.refresh(layout=True)

    @property
    def text(self) -> str:
        """What it says."""
        return "\n".join("".join(text for text, _ in line) for line in self._lines)

    def repaint(self, palette: Palette) -> None:
        """Draw in other colours."""
        self._tones = Tones(palette, self._ground)
        self.refresh()

    def pieces(self, width: int) -> list[Line]:
        """Its lines at a width."""
        return [piece for line in self._lines for piece in wrap(line, width)]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Its height at a width."""
        return len(self.pieces(width))

    def render_line(self, y: int) -> Strip:
        """One of its lines."""
        width = self.size.width
        pieces = self.pieces(width)
        return self._tones.strip(pieces[y] if y < len(pieces) else (), width)
