"""Taking things out of a transcript: into the clipboard, into the editor, onto a screen of their own."""

import importlib
from typing import TYPE_CHECKING, Any

from textual.message import Message

from codewhale.display.palette import Palette
from codewhale.tui.transcript.finding import Finding
from codewhale.tui.transcript.sheet import Sheet

if TYPE_CHECKING:
    from codewhale.tui.transcript.copying import Place

_COPYING = "codewhale.tui.transcript.copying"
_PAGER = "codewhale.tui.transcript.pager:Pager"


class Taking(Finding):
    """A transcript that things are taken out of. `chosen` is the index of the block that is meant."""

    sheet: Sheet
    _palette: Palette
    _code: tuple[int, int] = (-1, -1)

    class OpenFile(Message, namespace="transcript"):
        """A file is to be opened in the person's editor; `line` is 0 where none is known."""

        def __init__(self, path: str, line: int) -> None:
            super().__init__()
            self.path = path
            self.line = line

    class Copied(Message, namespace="transcript"):
        """Something was put into the clipboard: what it is, in words, and its size in characters. `whole` is False
        where only its beginning fitted; with a `size` of 0 there was nothing."""

        def __init__(self, what: str, size: int, whole: bool = True) -> None:
            super().__init__()
            self.what = what
            self.size = size
            self.whole = whole

    class Left(Message, namespace="transcript"):
        """The person is done here: the composer has the keys again."""

    @property
    def copying(self) -> Any:
        """The module that knows what can be taken out of a story."""
        return importlib.import_module(_COPYING)

    @property
    def chosen(self) -> int:
        """The block that keys are about, -1 for none."""
        raise NotImplementedError

    def take_all(self) -> None:
        """Fold all that has come."""
        raise NotImplementedError

    def action_copy(self) -> None:
        """Copy the chosen block."""
        if self.chosen >= 0:
            block = self.sheet.block(self.chosen)
            what = {"Card": "call", "Said": "message"}.get(type(block).__name__, "message")
            text = self.copying.whole_text(self.sheet.story, block)
            self._copy(what, text or self.copying.shown_text(block, self._words))

    def action_copy_block(self) -> None:
        """Copy a code block of the chosen words; the next one each time."""
        if self.chosen >= 0:
            self._copy_code(self.chosen)

    def action_copy_answer(self) -> None:
        """Copy the last answer."""
        self.take_all()
        words = self.copying.last_words(self.sheet.story)
        self._copy("answer", "" if words is None else self.copying.whole_text(self.sheet.story, words))

    def action_copy_code(self) -> None:
        """Copy a code block of the last answer; the one before it each time."""
        self.take_all()
        words = self.copying.last_words(self.sheet.story)
        if words is None:
            self._copy("block", "")
        else:
            self._copy_code(self.sheet.index_of(words.whole), -1)

    def _copy_code(self, index: int, step: int = 1) -> None:
        blocks = self.copying.code_blocks(self.copying.whole_text(self.sheet.story, self.sheet.block(index)))
        former, number = self._code
        number = number + step if former == index else (0 if step > 0 else -1)
        self._code = index, number
        self._copy("block", blocks[number % len(blocks)] if blocks else "")

    def _copy(self, what: str, text: str) -> None:
        kept, whole = self.copying.bounded(text)
        if kept:
            self.app.copy_to_clipboard(kept)
        self.post_message(self.Copied(self._words(f"transcript.copied_{what}"), len(kept), whole))

    def action_open(self) -> None:
        """Open the file that the chosen block is about."""
        if self.chosen >= 0:
            self._open(self.copying.place_of(self.sheet.story, self.sheet.block(self.chosen)))

    def action_open_last(self) -> None:
        """Open the file that was changed last."""
        self.take_all()
        path = self.sheet.story.last_file
        self._open(self.copying.Place(path) if path else None)

    def _open(self, place: "Place | None") -> None:
        if place is not None:
            self.post_message(self.OpenFile(place.path, place.line))
        else:
            self.app.bell()

    def action_pager(self) -> None:
        """Show all of the chosen block, or of the last one that is seen, on a screen of its own."""
        if self.chosen >= 0:
            module, _, name = _PAGER.partition(":")
            pager: Any = getattr(importlib.import_module(module), name)
            self.app.push_screen(
                pager.of_block(self.sheet.story, self.sheet.block(self.chosen), self._words, self._palette)
            )
