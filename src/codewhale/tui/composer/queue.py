"""What waits for the turn, above the text: each message on a line, to be changed, dropped or sent into the turn."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import EditQueue, Op, Query
from codewhale.protocol.views import GetQueue, QueuedRow
from codewhale.tui.keys import bindings

SHOWN_ROWS = 4
_TEXT_MOST = 400


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
        query: Callable[[Query], Awaitable[Any]],
        submit: Callable[[Op], Awaitable[Any]],
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
        """The line above."""
        self._move(-1)

    def action_next(self) -> None:
        """The line below; after the last one, the text."""
        if self._at + 1 >= len(self.rows):
            self.post_message(self.Left())
        else:
            self._move(1)

    async def action_edit(self) -> None:
        """Take the message back into the composer."""
        await self.take(self._at, "edit")

    async def action_drop(self) -> None:
        """Let the message go."""
        await self.take(self._at, "drop")

    async def action_steer(self) -> None:
        """Send the message into the running turn."""
        if self.rows and self.rows[self._at].delivery == "queue":
            await self.take(self._at, "steer")

    def action_close(self) -> None:
        """Back to the text."""
        self.post_message(self.Left())

    def _move(self, by: int) -> None:
        self._at = max(0, min(self._at + by, len(self.rows) - 1))
        self.refresh()

    def choose_last(self) -> None:
        """Stand on the line next to the text."""
        self._at = max(0, len(self.rows) - 1)
        self.refresh()

    def on_focus(self) -> None:
        """The chosen line shows."""
        self.refresh(layout=True)

    def on_blur(self) -> None:
        """No line is chosen."""
        self.refresh(layout=True)

    # -------------------------------------------------------------- drawing

    def repaint(self, palette: Palette) -> None:
        """Other colours."""
        self._palette = palette
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """A line each, then one that says how many more there are, and the keys while it has the focus."""
        more = len(self.rows) > SHOWN_ROWS
        return min(len(self.rows), SHOWN_ROWS) + more + self.has_focus

    def render_line(self, y: int) -> Strip:
        """A message, or how many more."""
        width = self.size.width
        colours = self._palette
        quiet = Style(color=colours.muted, bgcolor=colours.background)
        first = min(max(0, self._at - SHOWN_ROWS + 1), max(0, len(self.rows) - SHOWN_ROWS)) if self.has_focus else 0
        shown = self.rows[first : first + SHOWN_ROWS]
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
