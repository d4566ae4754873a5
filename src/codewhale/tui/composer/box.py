"""The text and the list above it: completions, what was sent before, what was put aside; and what goes with the text.
What is done with it is the composer's."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import TextArea

from codewhale.display.attachments import MOST_CHIPS, Chip, TooLargeError
from codewhale.display.drafts import Draft, Entry, Parked
from codewhale.display.palette import Palette
from codewhale.display.setup import is_command
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import NoteFile, Op, Query
from codewhale.tui.composer.completion import Completer, Found, Row, Wanted, wanted
from codewhale.tui.composer.keeper import Keeper
from codewhale.tui.composer.parts import Chips, Line, Mark, Popup
from codewhale.tui.composer.text import ComposerText
from codewhale.tui.input import once

HINT_SECONDS = 6.0
# Longer text from an editor or another place goes along as an attachment.
MOST_CHARACTERS = 200_000
_LABEL = 300


class Box(Widget, can_focus=False):
    """Asks by `query`, acts by `submit`; `keeper` knows where text is kept."""

    def __init__(
        self,
        words: Words,
        palette: Palette,
        query: Callable[[Query], Awaitable[Any]],
        submit: Callable[[Op], Awaitable[Any]],
        keeper: Keeper,
    ) -> None:
        super().__init__()
        self._words = words
        self._submit = submit
        self._keeper = keeper
        keeper.trouble = lambda why: self.hint("not_kept", why=why)
        self.text = ComposerText(self._pasted, self._rubbed, words("composer.placeholder"))
        self._popup = Popup(palette)
        self._chips = Chips(words, palette)
        self._mark = Mark(palette)
        self._completer = Completer(query, self._found)
        self._completion: Found | None = None
        # What a key waits for, and what it does then.
        self._then: tuple[Wanted, Callable[[], None]] | None = None
        # "" while the list shows completions, else "history" or "stash"; `_held` stood here before that was opened.
        self._list = ""
        self._held = Draft()
        self._walked: Draft | None = None
        self._hint_timer: asyncio.TimerHandle | None = None
        self._hinted = ""
        self.busy = False
        self._whole = False

    def compose(self) -> ComposeResult:
        """The text; what is only seen at times comes behind the first frame."""
        with Horizontal():
            yield self._mark
            yield self.text

    def on_mount(self) -> None:
        self.call_after_refresh(self.complete)

    async def complete(self) -> None:
        """Have all parts there: the list and what goes with the text stand above it."""
        if not self._whole:
            self._whole = True
            await self.mount(*self._above(), before=0)

    def _above(self) -> tuple[Widget, ...]:
        return self._popup, self._chips

    # -------------------------------------------------------------- what stands here

    @property
    def draft(self) -> Draft:
        """What was written here and not sent."""
        return self._held if self._list else self._now

    @property
    def _now(self) -> Draft:
        return Draft(self.text.content, self.text.offset_of_cursor, self._chips.chips)

    def _put(self, draft: Draft) -> None:
        self.text.put(draft)
        self._chips.show(draft.chips)
        self._changed()

    def _changed(self) -> None:
        content = self.text.content
        if self._list:
            self._fill_list()
        else:
            self._completer.look(content, self.text.offset_of_cursor)
            self._keeper.save(self._now)
        shell = not self._list and content.startswith("!")
        self._mark.show(self._list or ("shell" if shell else "command" if is_command(content) else "prompt"))
        self.set_class(shell, "-shell")

    def _set_busy(self, busy: bool) -> None:
        self.busy = busy
        self.set_class(busy, "-busy")
        self._set_placeholder()

    def _set_placeholder(self) -> None:
        name = f"placeholder_{self._list}" if self._list else "placeholder_busy" if self.busy else "placeholder"
        self.text.placeholder = self._words(f"composer.{name}")

    def hint(self, key: str, **values: object) -> None:
        """Say a sentence of the composer's words on its edge for some seconds."""
        self.border_title = Content(self._words(f"composer.{key}", **values))
        if self._hint_timer is not None:
            self._hint_timer.cancel()
        self._hinted = key
        self._hint_timer = once(self, HINT_SECONDS, self._unhint)

    def _unhint(self, key: str = "") -> None:
        """Say nothing any more; with `key` only where that was said."""
        if not key or key == self._hinted:
            self.border_title = None

    def repaint(self, palette: Palette) -> None:
        for part in (self._popup, self._chips, self._mark):
            part.repaint(palette)

    def on_text_area_changed(self, message: TextArea.Changed) -> None:
        message.stop()
        self._changed()

    def on_text_area_selection_changed(self, message: TextArea.SelectionChanged) -> None:
        message.stop()
        if not self._list:
            self._completer.look(self.text.content, self.text.offset_of_cursor)

    # -------------------------------------------------------------- attachments

    def _pasted(self, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        line = self.text.content[:1] in ("!", "/")
        whole = self._list or (line and len(text) <= MOST_CHARACTERS)
        try:
            chip = None if whole else self._keeper.chip(text)
        except TooLargeError as error:
            self.hint("too_large", size=error.limit >> 20)
        else:
            if chip is None:
                self.text.type(text[:_LABEL] if self._list else text)
            else:
                self._add_chip(chip)

    def _add_chip(self, chip: Chip) -> None:
        if len(self._chips.chips) >= MOST_CHIPS:
            self.hint("too_many_chips", n=MOST_CHIPS)
        elif chip not in self._chips.chips:
            self._chips.show((*self._chips.chips, chip))
            self._keeper.save(self._now)

    def _rubbed(self) -> None:
        if self._chips.chips and not self._list:
            self._chips.show(self._chips.chips[:-1])
            self._keeper.save(self._now)

    def _put_long(self, text: str) -> None:
        """Put a text of any length: what is too long to edit here becomes an attachment."""
        chips = self._chips.chips
        try:
            chip = self._keeper.text(text) if len(text) > MOST_CHARACTERS else None
        except TooLargeError as error:
            self.hint("too_large", size=error.limit >> 20)
        else:
            self._put(Draft(text, len(text), chips) if chip is None else Draft("", 0, (*chips, chip)))

    # -------------------------------------------------------------- completion

    def _found(self, found: Found | None) -> None:
        if self._list:
            return
        self._completion = found
        if found is None:
            self._popup.close()
        else:
            self._popup.show([Line(row.label, row.detail, row) for row in found.rows], found.header)
        then, self._then = self._then, None
        if then is not None and then[0] == self._wanted:
            then[1]()

    @property
    def _wanted(self) -> Wanted | None:
        return wanted(self.text.content, self.text.offset_of_cursor)

    def when_found(self, do: Callable[[], None]) -> bool:
        """Do it when the completions of the text as it stands have come; False when none are on their way."""
        self._completer.look(self.text.content, self.text.offset_of_cursor)
        if not self._completer.asking:
            return False
        at = self._wanted
        self._then = None if at is None else (at, do)
        return True

    def take_first(self) -> None:
        """Take the completion at hand, if there is one."""
        if (row := self._row_at_hand()) is not None:
            self._take(row)

    def _row_at_hand(self) -> Row | None:
        """The completion that is chosen, None when it was found for another text."""
        line = None if self._list else self._popup.chosen
        if line is None or self._completion is None or self._completion.wanted != self._wanted:
            return None
        row: Row = line.stands_for
        return row

    def _enter_takes(self, row: Row) -> bool:
        """Whether Enter takes a completion rather than sends the text as it stands."""
        if self._popup.moved:
            return True
        assert self._completion is not None
        at = self._completion.wanted
        if at.trigger.line:
            whole = at.line if " " not in at.line else at.word
            return bool(at.word) and row.insert.rstrip() != whole and row.insert.startswith(whole)
        return row.insert.strip().strip('"') != at.word

    def _take(self, row: Row) -> None:
        after = self.text.content[row.end : row.end + 1]
        insert = row.insert.rstrip(" ") if after in (" ", "\n") else row.insert
        self.text.replace_between(row.start, row.end, insert)
        if row.path:
            self.run_worker(self._tell(NoteFile(self._keeper.session, row.path)))
        if not row.more:
            self._completer.refuse(self.text.content)
        self._changed()

    async def _tell(self, op: Op) -> None:
        with contextlib.suppress(CodeWhaleError):
            await self._submit(op)

    def _open_list(self, name: str) -> None:
        self._held = self._now
        self._completer.stop()
        self._list = name
        self.text.put(Draft())
        self._set_placeholder()
        self._changed()

    def _fill_list(self) -> None:
        letters = self.text.content
        if self._list == "history":
            entries = self._keeper.history.search(letters)
            self._popup.show([Line(_label(entry.draft(), self._chips), "", entry) for entry in entries])
        else:
            rows = [row for row in self._keeper.parked() if letters.lower() in row.draft.text.lower()]
            self._popup.show([_parked_line(row, self._chips) for row in rows])

    def _close_list(self, put: Draft | None = None) -> None:
        """Leave a list for what stood here before it, or for `put`: then that is put aside."""
        if not self._list:
            return
        held, self._held, self._list = self._held, Draft(), ""
        self._popup.close()
        self._set_placeholder()
        self._put(held if put is None else put)
        if put is not None and held:
            self._keeper.park(held)
            self.hint("recalled")

    def _take_row(self) -> None:
        if (line := self._popup.chosen) is None:
            return
        if isinstance(line.stands_for, Entry):
            self._close_list(line.stands_for.draft())
            return
        draft = self._keeper.take(line.stands_for)
        self._close_list(draft)
        if draft is None:
            self.hint("stash_gone")

    def action_search_history(self) -> None:
        if self._list:
            self._close_list()
        elif not self._keeper.history.entries:
            self.hint("history_empty")
        else:
            self._open_list("history")

    def action_up(self) -> None:
        """Up in the list, in the text, and at its top to what was sent before."""
        if self._popup.chosen is not None:
            self._popup.move(-1)
        elif not self._list and (self.text.at_top or self._now == self._walked):
            self._walk(self._keeper.walk.up(self._now))
        else:
            self.text.action_cursor_up()

    def action_down(self) -> None:
        """Down in the list, in the text, and at its end to what was sent after."""
        if self._popup.chosen is not None:
            self._popup.move(1)
        elif not self._list and (self.text.at_bottom or self._now == self._walked):
            self._walk(self._keeper.walk.down(self._now))
        else:
            self.text.action_cursor_down()

    def _walk(self, draft: Draft | None) -> None:
        if draft is not None:
            self._put(draft)
            self._completer.refuse(self.text.content)
            self._walked = self._now

    def action_newline(self) -> None:
        if not self._list:
            self.text.type("\n")


def _parked_line(row: Parked, chips: Chips) -> Line:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.at))
    return Line(_label(row.draft, chips), when, row)


def _label(draft: Draft, chips: Chips) -> str:
    """A draft on one line: what it says, and what goes with it."""
    named = "  ".join(f"[{chips.label(chip)}]" for chip in draft.chips)
    return f"{one_line(draft.text, _LABEL)} {named}".strip()
