"""Bars for work that takes long: indexing, installs, tools. One line for each, gone when it is done."""

from rich.cells import set_cell_size

from codewhale.display.palette import Palette
from codewhale.display.tones import Line, fit, flat
from codewhale.display.words import Words
from codewhale.protocol.events import Envelope, ProgressShown
from codewhale.tui.screens.figures import bar
from codewhale.tui.screens.tagline import TagLine

MOST_BARS = 4
BAR = 20
TASKS = ("index", "install", "tool")
_NAME = 16
_SHARE = 7  # columns of a percentage


class ProgressPanel(TagLine):
    """The bars, each on its line at any width. It takes no room while nothing goes on."""

    def __init__(self, words: Words, palette: Palette) -> None:
        super().__init__(palette, id="progress")
        self._words = words
        self._going: dict[str, ProgressShown] = {}

    def take(self, envelope: Envelope) -> None:
        """Count an event in."""
        event = envelope.event
        if not isinstance(event, ProgressShown):
            return
        if event.total and event.done >= event.total:
            self._going.pop(event.task, None)
        else:
            self._going[event.task] = event
            while len(self._going) > MOST_BARS:
                del self._going[next(iter(self._going))]
        self.refresh(layout=True)

    def begin(self) -> None:
        """Another session is followed: nothing goes on in it yet."""
        self._going.clear()
        self.refresh(layout=True)

    def pieces(self, width: int) -> list[Line]:
        """One line a bar."""
        return [self._line(shown, width) for shown in self._going.values()]

    def _line(self, shown: ProgressShown, width: int) -> Line:
        known = shown.task in TASKS
        name = self._words(f"progress.{shown.task}") if known else flat(shown.task, 40)
        room = min(_NAME, width // 3)
        label = set_cell_size(fit(name, room), room)
        said = flat(shown.text, 120)
        if not shown.total:
            return ((label, "muted"), (f" {shown.done:,} ", "accent"), (said, "muted"))
        share = f" {100 * shown.done // shown.total:>3} % "
        length = max(0, min(BAR, width - room - _SHARE))
        return ((label, "muted"), *bar(shown.done, shown.total, length), (share, "text"), (said, "muted"))
