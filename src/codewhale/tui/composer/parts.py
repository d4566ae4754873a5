"""What stands around the text: the mark before it, the attachments, the list of completions, the queued messages."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from codewhale.display.attachments import Chip
from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import EditQueue
from codewhale.protocol.requests import Ask, Do
from codewhale.protocol.views import GetQueue, QueuedRow
from codewhale.tui.keys import bindings

# What is written: the mark and its colour.
MARKS = {
    "prompt": ("\u203a", "accent"),
    "shell": ("\u203a", "warning"),
    "command": ("\u203a", "link"),
    "history": ("?", "link"),
    "stash": ("=", "link"),
}
_NAME_CELLS = 24
SHOWN_ROWS = 8
_LABEL_MOST = 400
QUEUED_ROWS = 4
_TEXT_MOST = 400


class PromptMark(Widget, can_focus=False):
    """Two cells."""

    DEFAULT_CSS = "PromptMark { width: 2; height: 1; }"

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self.kind = "prompt"

    def show(self, kind: str) -> None:
        if kind != self.kind:
            self.kind = kind
            self.refresh()

    def repaint(self, palette: Palette) -> None:
        self._palette = palette
        self.refresh()

    def render_line(self, y: int) -> Strip:
        sign, colour = MARKS[self.kind]
        style = Style(color=getattr(self._palette, colour), bgcolor=self._palette.background, bold=True)
        return Strip([Segment(f"{sign} " if y == 0 else "  ", style)]).adjust_cell_length(self.size.width, style)


class Chips(Widget, can_focus=False):
    """Shows `chips`; there is no line while there are none."""

    DEFAULT_CSS = "Chips { height: auto; width: 1fr; display: none; padding: 0 0 0 2; }"

    def __init__(self, words: Words, palette: Palette) -> None:
        super().__init__()
        self._words = words
        self._palette = palette
        self.chips: tuple[Chip, ...] = ()

    def show(self, chips: tuple[Chip, ...]) -> None:
        self.chips = chips
        self.display = bool(chips)
        self.refresh(layout=True)

    def repaint(self, palette: Palette) -> None:
        self._palette = palette
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
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


class PopupRow(Struct, frozen=True):
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
        self._lines: tuple[PopupRow, ...] = ()
        self._header = ""
        self._at = 0

    @property
    def open(self) -> bool:
        return bool(self.display)

    @property
    def chosen(self) -> PopupRow | None:
        return self._lines[self._at] if self.open and self._lines else None

    @property
    def moved(self) -> bool:
        """Whether another row than the first was chosen."""
        return self._at > 0

    def show(self, lines: Sequence[PopupRow], header: str = "") -> None:
        """Show rows, the first one chosen."""
        self._lines = tuple(lines)
        self._header = one_line(header, _LABEL_MOST) if header else ""
        self._at = 0
        self.display = bool(self._lines or self._header)
        self.refresh(layout=True)

    def close(self) -> None:
        if self.open:
            self._lines, self._header, self._at = (), "", 0
            self.display = False

    def move(self, by: int) -> None:
        """Choose another row, around the ends."""
        if self._lines:
            self._at = (self._at + by) % len(self._lines)
            self.refresh()

    def repaint(self, palette: Palette) -> None:
        self._palette = palette
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(len(self._lines), SHOWN_ROWS) + bool(self._header)

    def render_line(self, y: int) -> Strip:
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


class QueueLines(Widget, can_focus=True):
    """The queue of `session`. It takes the focus only when it is asked to, and gives it back with Left. `known` tells
    whether the attachments of a text are at hand; `busy`, that a turn runs."""

    BINDINGS: ClassVar = bindings("queue")
    DEFAULT_CSS = "QueueLines { height: auto; width: 1fr; display: none; }"

    class Left(Message):
        """The focus belongs to the text again."""

    class Taken(Message):
        """A message left the queue: to be changed (`purpose` "edit"), sent into the turn ("steer") or let go ("drop").
        `attachments` counts those it carried."""

        def __init__(self, text: str, purpose: str, attachments: int) -> None:
            super().__init__()
            self.text = text
            self.purpose = purpose
            self.attachments = attachments

    class Kept(Message):
        """A message stays in the queue, for what it carries is not known here."""

    def __init__(
        self,
        words: Words,
        palette: Palette,
        query: Ask,
        submit: Do,
        known: Callable[[str], bool],
    ) -> None:
        super().__init__()
        self._known = known
        self._words = words
        self._palette = palette
        self._query = query
        self._submit = submit
        self._at = 0
        self._asking = self._stale = False
        self.session = ""
        self.busy = False
        self.rows: tuple[QueuedRow, ...] = ()

    # -------------------------------------------------------------- what waits

    async def look(self) -> None:
        """Ask what waits now. While one question is out, more of them become one."""
        if self._asking:
            self._stale = True
            return
        self._asking = True
        try:
            rows: tuple[QueuedRow, ...] = await self._query(GetQueue(self.session)) if self.session else ()
        except (CodeWhaleError, KeyError):
            rows = ()
        finally:
            self._asking = False
        self._show(tuple(rows))
        if self._stale:
            self._stale = False
            await self.look()

    def _show(self, rows: tuple[QueuedRow, ...]) -> None:
        if rows != self.rows:
            self.rows = rows
            self._at = max(0, min(self._at, len(rows) - 1))
            self.display = bool(rows)
            self.refresh(layout=True)
        if not rows and self.has_focus:
            self.post_message(self.Left())

    async def take(self, index: int, purpose: str) -> None:
        """Take a message out of the queue; Taken says what it was, unless the turn has taken it already."""
        if not 0 <= index < len(self.rows):
            return
        row = self.rows[index]
        if purpose == "steer" and self.busy:
            await self._change(index, row.text, row.text, "steer")
            await self.look()
            return
        if row.attachments and purpose != "drop" and not self._known(row.text):
            self.post_message(self.Kept())
            return
        former = await self._change(index, row.text, "")
        if former:
            self.post_message(self.Taken(former, purpose, row.attachments))
        await self.look()

    async def _change(self, index: int, was: str, text: str, delivery: Literal["", "steer"] = "") -> str:
        """Change a message where it still says `was`; its former text, "" when it is gone."""
        try:
            former: str = await self._submit(EditQueue(self.session, index, text, was, delivery))
        except CodeWhaleError:
            return ""
        return former

    async def push_oldest(self) -> None:
        """Send the message that has waited longest into the turn."""
        for index, row in enumerate(self.rows):
            if row.delivery == "queue":
                await self.take(index, "steer")
                return

    # -------------------------------------------------------------- keys

    def action_previous(self) -> None:
        self._move(-1)

    def action_next(self) -> None:
        if self._at + 1 >= len(self.rows):
            self.post_message(self.Left())
        else:
            self._move(1)

    async def action_edit(self) -> None:
        await self.take(self._at, "edit")

    async def action_drop(self) -> None:
        await self.take(self._at, "drop")

    async def action_steer(self) -> None:
        if self.rows and self.rows[self._at].delivery == "queue":
            await self.take(self._at, "steer")

    def action_close(self) -> None:
        self.post_message(self.Left())

    def _move(self, by: int) -> None:
        self._at = max(0, min(self._at + by, len(self.rows) - 1))
        self.refresh()

    def choose_last(self) -> None:
        """Stand on the line next to the text."""
        self._at = max(0, len(self.rows) - 1)
        self.refresh()

    def on_focus(self) -> None:
        self.refresh(layout=True)

    def on_blur(self) -> None:
        self.refresh(layout=True)

    # -------------------------------------------------------------- drawing

    def repaint(self, palette: Palette) -> None:
        self._palette = palette
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A line each, then one that says how many more there are, and the keys while it has the focus."""
        more = len(self.rows) > QUEUED_ROWS
        return min(len(self.rows), QUEUED_ROWS) + more + self.has_focus

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        colours = self._palette
        quiet = Style(color=colours.muted, bgcolor=colours.background)
        first = min(max(0, self._at - QUEUED_ROWS + 1), max(0, len(self.rows) - QUEUED_ROWS)) if self.has_focus else 0
        shown = self.rows[first : first + QUEUED_ROWS]
        if y >= len(shown):
            more = len(self.rows) - len(shown)
            text = self._words("composer.queue_more", n=more) if more and y == len(shown) else ""
            return _cut(text or self._words("composer.queue_keys"), width, quiet)
        row = shown[y]
        chosen = self.has_focus and first + y == self._at
        style = Style(color=colours.selection_text, bgcolor=colours.selection) if chosen else quiet
        label = self._words("composer.queued_steer" if row.delivery == "steer" else "composer.queued")
        extra = " " + self._words("composer.queued_files", n=row.attachments) if row.attachments else ""
        return _cut(f"{'>' if chosen else ' '} {label} {one_line(row.text, _TEXT_MOST)}{extra}", width, style)


def _cut(text: str, width: int, style: Style) -> Strip:
    cut = text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "\u2026"
    return Strip([Segment(cut, style)]).adjust_cell_length(width, style)
