"""What stands around the text: the mark before it, the attachments, the list of completions, the queued messages."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from msgspec import Struct
from textual.message import Message

from codewhale.display.attachments import Chip
from codewhale.display.palette import Palette
from codewhale.display.text import Span, Spans, cells, columns, fit
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import EditQueue
from codewhale.protocol.requests import Ask, Do
from codewhale.protocol.views import FileMention, GetQueue, QueuedRow
from codewhale.tui.keys import bindings
from codewhale.tui.paint import CURSOR
from codewhale.tui.widgets import TagLine

# What is written: the mark and its colour.
MARKS = {
    "prompt": ("\u203a", "accent"),
    "shell": ("\u203a", "warning"),
    "command": ("\u203a", "link"),
    "fact": ("\u203a", "success"),
    "history": ("?", "link"),
    "stash": ("=", "link"),
}
_NAME_CELLS = 24
MENTIONS_SHOWN = 4
SHOWN_ROWS = 8
_LABEL_MOST = 400
QUEUED_ROWS = 4
_TEXT_MOST = 400


class PromptMark(TagLine, can_focus=False):
    """The mark before the text, two cells: what Enter would do with it."""

    DEFAULT_CSS = "PromptMark { width: 2; height: 1; }"

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self.kind = "prompt"

    def set_kind(self, kind: str) -> None:
        if kind != self.kind:
            self.kind = kind
            self.refresh()

    def pieces(self, width: int) -> list[Spans]:
        sign, colour = MARKS[self.kind]
        return [((f"{sign} ", f"bold {colour}"),)]


class Chips(TagLine, can_focus=False):
    """The attachments of the message that is being written, on one line above the text."""

    DEFAULT_CSS = "Chips { width: 1fr; display: none; padding: 0 0 0 2; }"

    def __init__(self, words: Words, palette: Palette) -> None:
        super().__init__(palette)
        self._words = words
        self.chips: tuple[Chip, ...] = ()
        self._mentions: tuple[FileMention, ...] = ()

    def set_chips(self, chips: tuple[Chip, ...]) -> None:
        self.chips = chips
        self._redraw()

    def set_mentions(self, mentions: tuple[FileMention, ...]) -> None:
        """Show the files that the text names, and what becomes of each."""
        if mentions != self._mentions:
            self._mentions = mentions
            self._redraw()

    def _redraw(self) -> None:
        self.display = bool(self.chips or self._mentions)
        self.refresh(layout=True)

    def pieces(self, width: int) -> list[Spans]:
        """The chips that fit, the last ones first to stay, then how to take one away; a line for each file that the
        text names."""
        named = [((fit(self._mention(one), width), "warning" if one.refused else "muted"),) for one in self._mentions]
        return [*([self._line(width)] if self.chips else []), *named[:MENTIONS_SHOWN]]

    def _mention(self, one: FileMention) -> str:
        state = "refused" if one.refused else "attached" if one.attached else "large"
        facts = {"name": one_line(one.path, 200), "size": _size(one.size), "why": one_line(one.refused)}
        return self._words(f"composer.mention_{state}", **facts)

    def _line(self, width: int) -> Spans:
        labels = [f" {self.label(chip)} " for chip in self.chips]
        shown: list[str] = []
        room = width - 6
        for label in reversed(labels):
            room -= cells(label) + 1
            if shown and room < 0:
                break
            shown.insert(0, label)
        hidden = len(labels) - len(shown)
        spans: list[Span] = [(f"+{hidden} ", "muted")] if hidden else []
        for label in shown:
            spans += [(label, "accent on:surface"), (" ", "muted")]
        hint = self._words("composer.chip_hint")
        return (*spans, *(((hint, "muted"),) if room > cells(hint) else ()))

    def label(self, chip: Chip) -> str:
        """What a chip says: what it is and how much."""
        if chip.lines:
            return self._words("composer.chip_text", n=chip.lines, lines=f"{chip.lines:,}", size=_size(chip.size))
        return self._words("composer.chip_image", name=one_line(chip.name, _NAME_CELLS), size=_size(chip.size))


class PopupRow(Struct, frozen=True):
    """A row of the list and what it stands for."""

    label: str
    detail: str
    stands_for: Any = None


class Popup(TagLine, can_focus=False):
    """The list above the text: completions, former prompts, drafts put aside. `chosen` is the row that a key takes,
    None while the list is closed or empty."""

    DEFAULT_CSS = "Popup { width: 1fr; display: none; background: $surface; }"

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette, "surface")
        self._rows: tuple[PopupRow, ...] = ()
        self._header = ""
        self._at = 0

    @property
    def open(self) -> bool:
        return bool(self.display)

    @property
    def chosen(self) -> PopupRow | None:
        return self._rows[self._at] if self.open and self._rows else None

    @property
    def moved(self) -> bool:
        """Whether another row than the first was chosen."""
        return self._at > 0

    def set_rows(self, rows: Sequence[PopupRow], header: str = "") -> None:
        """Show rows, the first one chosen."""
        self._rows = tuple(rows)
        self._header = one_line(header, _LABEL_MOST) if header else ""
        self._at = 0
        self.display = bool(self._rows or self._header)
        self.refresh(layout=True)

    def close(self) -> None:
        if self.open:
            self._rows, self._header, self._at = (), "", 0
            self.display = False

    def move(self, by: int) -> None:
        """Choose another row, around the ends."""
        if self._rows:
            self._at = (self._at + by) % len(self._rows)
            self.refresh()

    def pieces(self, width: int) -> list[Spans]:
        """The header, and the rows around the chosen one."""
        first = min(max(0, self._at - SHOWN_ROWS + 2), max(0, len(self._rows) - SHOWN_ROWS))
        header: list[Spans] = [((fit(f"  {self._header}", width), "accent"),)] if self._header else []
        shown = enumerate(self._rows[first : first + SHOWN_ROWS])
        return [*header, *(self._line(row, first, y, width) for y, row in shown)]

    def _line(self, row: PopupRow, first: int, y: int, width: int) -> Spans:
        at = first + y == self._at
        more = "↑" if y == 0 and first > 0 else " "
        more = "↓" if y == SHOWN_ROWS - 1 and first + SHOWN_ROWS < len(self._rows) else more
        label = f"{CURSOR if at else more + ' '}{one_line(row.label, _LABEL_MOST)}"
        detail = one_line(row.detail, _LABEL_MOST)
        spans: list[Span] = [(fit(label, width), "text")]
        if detail and width - cells(label) - 4 > 8:
            gap = " " * max(2, min(34, width // 2) - cells(label))
            spans += [(gap, "text"), (fit(detail, width - cells(label) - len(gap)), "muted")]
        return chosen_line(spans, width) if at else tuple(spans)


def chosen_line(spans: Sequence[Span], width: int) -> Spans:
    """A line as the row at hand is shown, in its whole width."""
    rest = (" " * max(0, width - columns(spans)), "")
    return tuple((text, "selection_text on:selection") for text, _ in (*spans, rest))


def _size(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1000:.0f} kB" if count < 999_500 else f"{count / 1e6:.1f} MB"


class QueueLines(TagLine, can_focus=True):
    """The queue of `session`. It takes the focus only when it is asked to, and gives it back with Left. `known` tells
    whether the attachments of a text are at hand; `busy`, that a turn runs."""

    BINDINGS: ClassVar = bindings("queue")
    DEFAULT_CSS = "QueueLines { width: 1fr; display: none; }"

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
        super().__init__(palette)
        self._known = known
        self._words = words
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

    def pieces(self, width: int) -> list[Spans]:
        """A line each, then one that says how many more there are, and the keys while it has the focus."""
        first = min(max(0, self._at - QUEUED_ROWS + 1), max(0, len(self.rows) - QUEUED_ROWS)) if self.has_focus else 0
        shown = self.rows[first : first + QUEUED_ROWS]
        lines = [self._line(row, self.has_focus and first + at == self._at, width) for at, row in enumerate(shown)]
        more = len(self.rows) - len(shown)
        below = [self._words("composer.queue_more", n=more)] if more else []
        below += [self._words("composer.queue_keys")] if self.has_focus else []
        return [*lines, *(((fit(text, width), "muted"),) for text in below)]

    def _line(self, row: QueuedRow, chosen: bool, width: int) -> Spans:
        label = self._words("composer.queued_steer" if row.delivery == "steer" else "composer.queued")
        extra = " " + self._words("composer.queued_files", n=row.attachments) if row.attachments else ""
        text = fit(f"{CURSOR if chosen else '  '}{label} {one_line(row.text, _TEXT_MOST)}{extra}", width)
        return chosen_line(((text, "muted"),), width) if chosen else ((text, "muted"),)
