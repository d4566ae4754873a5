"""The attachments of the message that is being written, on one line above the text."""

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from codewhale.display.drafts.attachments import Chip
from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.lib.text import one_line

_NAME_CELLS = 24


class Chips(Widget, can_focus=False):
    """Shows `chips`; there is no line while there are none."""

    DEFAULT_CSS = "Chips { height: auto; width: 1fr; display: none; padding: 0 0 0 2; }"

    def __init__(self, words: Words, palette: Palette) -> None:
        super().__init__()
        self._words = words
        self._palette = palette
        self.chips: tuple[Chip, ...] = ()

    def show(self, chips: tuple[Chip, ...]) -> None:
        """Show these."""
        self.chips = chips
        self.display = bool(chips)
        self.refresh(layout=True)

    def repaint(self, palette: Palette) -> None:
        """Other colours."""
        self._palette = palette
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line."""
        return 1

    def render_line(self, y: int) -> Strip:
        """The chips that fit, the last ones first to stay, then how to take one away."""
        width = self.size.width
        colours = self._palette
        chip_style = Style(color=colours.accent, bgcolor=colours.surface)
        quiet = Style(color=colours.muted, bgcolor=colours.background)
        labels = [f" {self.label(chip)} " for chip in self.chips]
        shown: list[str] = []
        room = width - 6
        for label in reversed(labels):
            room -= cell_len(label) + 1
            if shown and room < 0:
                break
            shown.insert(0, label)
        hidden = len(labels) - len(shown)
        segments = [Segment(f"+{hidden} ", quiet)] if hidden else []
        for label in shown:
            segments += [Segment(label, chip_style), Segment(" ", quiet)]
        hint = self._words("composer.chip_hint")
        if room > cell_len(hint):
            segments.append(Segment(hint, quiet))
        return Strip(segments).adjust_cell_length(width, quiet)

    def label(self, chip: Chip) -> str:
        """What a chip says: what it is and how much."""
        if chip.lines:
            return self._words("composer.chip_text", n=chip.lines, lines=f"{chip.lines:,}", size=_size(chip.size))
        return self._words("composer.chip_image", name=one_line(chip.name, _NAME_CELLS), size=_size(chip.size))


def _size(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1000:.0f} kB" if count < 999_500 else f"{count / 1e6:.1f} MB"
