"""The text itself: a text area with the keys of a shell line. Characters that a terminal must never get are held as one
private character each, and are themselves again when the text is sent."""

import re
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.widgets import TextArea

from codewhale.display.drafts import Draft
from codewhale.lib.text import sanitise
from codewhale.tui.input import HELD_KEYS, is_letter

# Plane 16 is for private use: nothing that a person writes stands there.
_BASE = 0x100000
# Invisible characters beyond 0xFFFD, in the places of surrogates and of characters for private use.
_FAR = (*range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000))
_FAR_BASE = 0x10D800
_HELD = re.compile("[\U00100000-\U0010fffd]")
_LONE = re.compile("[\ud800-\udfff]")
_DOT = "\u00b7"
Location = tuple[int, int]
MOST_LINES = 10
_KILLED_MOST = 200_000
_MOVES = (
    ("left", "left", "cursor_left"),
    ("right", "right", "cursor_right"),
    ("ctrl+left,alt+left", "word_left", "cursor_word_left"),
    ("ctrl+right,alt+right", "word_right", "cursor_word_right"),
    ("home,ctrl+a", "line_start", "cursor_line_start"),
    ("end,ctrl+e", "line_end", "cursor_line_end"),
    ("shift+left", "select_left", "cursor_left(True)"),
    ("shift+right", "select_right", "cursor_right(True)"),
    ("shift+up", "select_up", "cursor_up(True)"),
    ("shift+down", "select_down", "cursor_down(True)"),
    ("ctrl+shift+left", "select_word_left", "cursor_word_left(True)"),
    ("ctrl+shift+right", "select_word_right", "cursor_word_right(True)"),
    ("shift+home", "select_line_start", "cursor_line_start(True)"),
    ("shift+end", "select_line_end", "cursor_line_end(True)"),
    ("alt+a", "select_all", "select_all"),
    ("backspace", "delete_left", "rub_out"),
    ("delete", "delete_right", "delete_right"),
    ("ctrl+w,ctrl+backspace,alt+backspace", "kill_word", "kill_word"),
    ("alt+d,alt+delete", "delete_word", "delete_word_right"),
    ("ctrl+u", "kill_before", "kill_before"),
    ("alt+k", "kill_after", "kill_after"),
    ("ctrl+y", "yank", "yank"),
    ("ctrl+x", "cut", "cut"),
    ("ctrl+z,ctrl+underscore", "undo", "undo"),
    ("alt+z,ctrl+shift+z", "redo", "redo"),
)


def hold(text: str) -> str:
    """The text as it is edited: line ends are "\\n", every control, bidi and zero-width character but tab and newline
    is one private character of one cell."""
    text = _HELD.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _LONE.sub("\ufffd", text)
    if sanitise(text) == text:
        return text
    return "".join(char if sanitise(char) == char else _private(char) for char in text)


def release(held: str) -> str:
    """The text itself: what `hold` was given, but for its line ends."""
    return _HELD.sub(lambda match: _public(match.group()), held)


def drawn(held: str) -> str:
    """What stands on the screen for held text, character by character: control pictures and dots."""
    return _HELD.sub(lambda match: _picture(_public(match.group())), held)


def _private(char: str) -> str:
    code = ord(char)
    if code <= 0xFFFD:
        return chr(_BASE + code)
    return chr(_FAR_BASE + _FAR.index(code)) if code in _FAR else "\ufffd"


def _public(char: str) -> str:
    code = ord(char)
    if _FAR_BASE <= code < _FAR_BASE + len(_FAR):
        return chr(_FAR[code - _FAR_BASE])
    return chr(code - _BASE)


def _picture(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else _DOT


class ComposerText(TextArea, inherit_bindings=False):
    """One to MOST_LINES lines. `pasted` is given what was pasted, `rubbed` is called for a backspace before the first
    character. Texts go in and out as they are; only inside stand private characters for invisible ones."""

    BINDINGS: ClassVar = [Binding(keys, action, name, show=False) for keys, name, action in _MOVES]
    DEFAULT_CSS = """
    ComposerText { height: auto; min-height: 1; max-height: 10; width: 1fr; border: none; padding: 0;
        background: $background; color: $foreground; scrollbar-size-vertical: 1; }
    ComposerText:focus { border: none; }
    ComposerText .text-area--placeholder { color: $cw-muted; }
    ComposerText .text-area--selection { background: $cw-selection; color: $cw-selection-text; }
    """

    def __init__(self, pasted: Callable[[str], None], rubbed: Callable[[], None], placeholder: str) -> None:
        super().__init__(
            tab_behavior="focus",
            highlight_cursor_line=False,
            compact=True,
            max_checkpoints=200,
            placeholder=placeholder,
            id="composer",
        )
        self.cursor_blink = False
        self.match_cursor_bracket = False
        self._pasted = pasted
        self._rubbed = rubbed
        self._killed = ""

    # -------------------------------------------------------------- what stands there

    @property
    def content(self) -> str:
        """The text as it will be sent."""
        return release(self.document.text)

    @property
    def offset_of_cursor(self) -> int:
        row, column = self.cursor_location
        return sum(len(line) + 1 for line in self.document.lines[:row]) + column

    @property
    def chosen(self) -> str:
        return release(self.selected_text)

    def at(self, offset: int) -> Location:
        """The place of a character offset."""
        for row, line in enumerate(self.document.lines):
            if offset <= len(line):
                return row, max(0, offset)
            offset -= len(line) + 1
        return self.document.end

    def put(self, draft: Draft) -> None:
        """Replace everything, as a step that can be undone."""
        self.history.checkpoint()
        self.replace(hold(draft.text), (0, 0), self.document.end, maintain_selection_offset=False)
        self.move_cursor(self.at(draft.cursor))
        self.history.checkpoint()

    def replace_between(self, start: int, end: int, text: str) -> None:
        """Replace characters by offset and stand behind what came."""
        result = self.replace(hold(text), self.at(start), self.at(end), maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def type(self, text: str) -> None:
        """Insert at the cursor, in place of what is selected."""
        start, end = self.selection
        result = self.replace(hold(text), start, end, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    @property
    def at_top(self) -> bool:
        """Whether there is no line above on the screen."""
        return bool(self.navigator.is_first_wrapped_line(self.cursor_location))

    @property
    def at_bottom(self) -> bool:
        """Whether there is no line below on the screen."""
        return bool(self.navigator.is_last_wrapped_line(self.cursor_location))

    # -------------------------------------------------------------- drawing

    def get_line(self, line_index: int) -> Text:
        return Text(drawn(self.document.get_line(line_index)), end="", no_wrap=True)

    # -------------------------------------------------------------- keys

    async def _on_key(self, event: events.Key) -> None:
        # Bindings are found when a key has bubbled up to the app: the next letter would be faster. Ours are run here.
        held = event.key.startswith(HELD_KEYS)
        if event.is_printable and not held:
            return
        if not held and event.character is not None and is_letter(event.character):
            self.type(event.character)
        elif not await self._bound(event.key):
            # A letter with Alt comes with the letter: it is not meant to be written.
            if event.key == "enter" or held:
                event.prevent_default()
            return
        event.stop()
        event.prevent_default()

    async def _bound(self, key: str) -> bool:
        active = self.screen.active_bindings.get(key)
        if active is None or not active.enabled:
            return False
        return bool(await self.app.run_action(active.binding.action, active.node))

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._pasted(event.text)

    def action_rub_out(self) -> None:
        """Delete what is selected, or the character before the cursor."""
        if self.selection.is_empty and self.cursor_at_start_of_text:
            self._rubbed()
        else:
            self.action_delete_left()

    def action_kill_word(self) -> None:
        """Delete back to the beginning of a word; it can be yanked."""
        if not self.selection.is_empty:
            self._kill(*self.selection)
        elif not self.cursor_at_start_of_text:
            self._kill(self.get_cursor_word_left_location(), self.cursor_location)

    def action_kill_before(self) -> None:
        """Delete back to the beginning of the line, or the line end before it; it can be yanked."""
        row, column = self.cursor_location
        self._kill((row, 0) if column else self.get_cursor_left_location(), (row, column))

    def action_kill_after(self) -> None:
        """Delete to the end of the line, or the line end; it can be yanked."""
        row, column = self.cursor_location
        end = len(self.document[row])
        self._kill((row, column), (row, end) if column < end else self.get_cursor_right_location())

    def action_yank(self) -> None:
        """Insert what was deleted last. Where nothing was, the text stays."""
        if self._killed:
            self.type(self._killed)

    def action_cut(self) -> None:
        if self.chosen:
            self.app.copy_to_clipboard(self.chosen)
            self._kill(*self.selection)

    def _kill(self, start: Location, end: Location) -> None:
        start, end = sorted((start, end))
        if start != end:
            self._killed = release(self.get_text_range(start, end))[-_KILLED_MOST:]
            self.delete(start, end, maintain_selection_offset=False)
