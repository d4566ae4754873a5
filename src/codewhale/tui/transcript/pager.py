"""A whole block on a screen of its own: all that is kept of it, drawn as far as it is seen."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from codewhale.display.palette import Palette
from codewhale.display.text import StyledLine, clean, fit, fold_hard, one_row
from codewhale.display.transcript.blocks import CallCard, TextBlock, TranscriptBlock
from codewhale.display.transcript.cards import DrawOptions
from codewhale.display.transcript.code import DiffRow, diff_lines, diff_rows
from codewhale.display.transcript.drawing import Drawer
from codewhale.display.transcript.markdown import Pen, markdown_lines
from codewhale.display.transcript.model import TranscriptModel
from codewhale.display.transcript.splitting import Opening
from codewhale.display.words import Words
from codewhale.protocol.blocks import Block as Display
from codewhale.protocol.blocks import DiffBlock, MarkdownBlock, TerminalBlock
from codewhale.tui.keys import bindings
from codewhale.tui.transcript.copying import bounded, whole_text
from codewhale.tui.transcript.pane import Pane
from codewhale.tui.transcript.search import PaneSearch, TextSearch

_ROWS = 100
_CHARS = 8_000


class PagerPart(Struct):
    """A bounded part of what is shown: plain text, markdown (with how it opens), rows of a diff, or lines."""

    text: str = ""
    kind: str = "plain"
    opening: Opening | None = None
    rows: Sequence[DiffRow] = ()
    lines: Sequence[StyledLine] = ()
    style: str = "text"


class Pages:
    """What a pager shows, page by page."""

    def __init__(self, pages: Sequence[PagerPart]) -> None:
        self.pages = pages
        self._pen = Pen()

    def __len__(self) -> int:
        return len(self.pages)

    def estimate(self, index: int, width: int) -> int:
        """About how many lines a page takes."""
        page = self.pages[index]
        return max(1, len(page.rows), len(page.lines), page.text.count("\n") + 1 + len(page.text) // max(10, width * 2))

    def lines(self, index: int, width: int) -> Sequence[StyledLine]:
        page = self.pages[index]
        match page.kind:
            case "markdown":
                return markdown_lines(self._pen, page.text, width, page.opening)
            case "diff":
                return diff_lines(page.rows, page.text, width, self._pen.colours)
            case "lines":
                return page.lines
        rows = clean(page.text).split("\n")
        return [line for row in rows for line in fold_hard(((row, page.style),), width)]

    def text(self, index: int) -> str:
        """What is searched of a page."""
        page = self.pages[index]
        if page.kind == "diff":
            return "\n".join(row.text for row in page.rows)
        return "\n".join(line.text for line in page.lines) if page.kind == "lines" else page.text


class Pager(ModalScreen[None]):
    """One text, with its title."""

    BINDINGS: ClassVar = bindings("pager")
    DEFAULT_CSS = """
    Pager { background: $background; layout: vertical; }
    Pager > .title { height: 1; background: $surface; color: $cw-accent; text-style: bold; padding: 0 1; }
    Pager > .keys { height: 1; background: $surface; color: $cw-muted; padding: 0 1; }
    """

    def __init__(self, title: str, pages: Sequence[PagerPart], text: str, words: Words, palette: Palette) -> None:
        super().__init__()
        self._title = one_row(title)
        self._words = words
        self._text = text
        self._keys = Static(words("transcript.pager_keys"), markup=False, classes="keys")
        held = Pages(pages)
        self.pane = Pane(palette, held)
        self.pane.follow = False
        self._search = PaneSearch(self.pane, words, lambda query: TextSearch(len(held), held.text, query))
        self.pane.before_frame = self._search.scan

    @classmethod
    def of_block(cls, model: TranscriptModel, block: TranscriptBlock, words: Words, palette: Palette) -> "Pager":
        """All that is kept of a block."""
        if isinstance(block, CallCard):
            title = words("transcript.pager_call", name=block.name)
            pages = _card_pages(block, words)
        else:
            title = words("transcript.pager_words")
            pages = _said_pages(model, block) if isinstance(block, TextBlock) else _line_pages(block, words)
        return cls(title, pages, whole_text(model, block), words, palette)

    def compose(self) -> ComposeResult:
        yield Static(fit(self._title, 200), markup=False, classes="title")
        yield self.pane
        yield self._keys

    def on_mount(self) -> None:
        self.pane.focus()

    def repaint(self, palette: Palette) -> None:
        self.pane.repaint(palette)

    def action_up(self) -> None:
        self.pane.move(-1)

    def action_down(self) -> None:
        self.pane.move(1)

    def action_page_up(self) -> None:
        self.pane.move(1 - self.pane.room)

    def action_page_down(self) -> None:
        self.pane.move(self.pane.room - 1)

    def action_first(self) -> None:
        self.pane.go_to_top()

    def action_last(self) -> None:
        self.pane.go_to_end()

    def action_find(self) -> None:
        self._search.open()

    def action_find_next(self) -> None:
        self._search.step(1)

    def action_find_previous(self) -> None:
        self._search.step(-1)

    def action_copy(self) -> None:
        """Copy all of it, as far as a terminal takes it."""
        kept, _ = bounded(self._text)
        self.app.copy_to_clipboard(kept)
        self._keys.update(Content(self._words("transcript.pager_copied", n=f"{len(kept):,}")))

    def action_close(self) -> None:
        if not self._search.close():
            self.dismiss(None)


def _said_pages(model: TranscriptModel, block: TextBlock) -> list[PagerPart]:
    pages: list[PagerPart] = []
    step = 1 if block.whole >= 0 else -1
    other: TranscriptBlock | None = model.find(block.whole)
    while isinstance(other, TextBlock) and other.whole == block.whole:
        if other.who == "model":
            pages.append(PagerPart(other.text, "markdown", other.opening))
        else:
            pages += _plain(other.text)
        other = model.find(other.id + step)
    return pages


def _line_pages(block: TranscriptBlock, words: Words) -> list[PagerPart]:
    return [PagerPart(kind="lines", lines=Drawer(words).lines(block, DrawOptions(200, opened=True)))]


def _card_pages(card: CallCard, words: Words) -> list[PagerPart]:
    pages = _plain(f"{card.name} {card.subject}", "accent bold")
    if card.arguments:
        pages += [*_plain(words("transcript.pager_arguments"), "muted"), *_plain(card.arguments, "code"), PagerPart()]
    for display in card.display:
        pages += [*_display_pages(display, card, words), PagerPart()]
    if card.said or card.tail:
        pages += _plain(words("transcript.pager_answer"), "muted")
        pages += _plain(card.said or "\n".join(card.tail))
    return pages


def _display_pages(display: Display, card: CallCard, words: Words) -> list[PagerPart]:
    match display:
        case DiffBlock(path=path, diff=diff):
            rows = diff_rows(diff)
            return [PagerPart(path, "diff", rows=rows[at : at + _ROWS]) for at in range(0, len(rows), _ROWS)]
        case TerminalBlock(command=command, output=output):
            return [*_plain(f"$ {command}", "accent"), *_plain(output)]
        case MarkdownBlock(text=text):
            return [PagerPart(text, "markdown")]
    shown = CallCard(name=card.name, display=(display,), status=card.status)
    return [PagerPart(kind="lines", lines=Drawer(words).lines(shown, DrawOptions(200, opened=True))[1:])]


def _plain(text: str, style: str = "text") -> list[PagerPart]:
    """A text as pages of bounded size; a line that is too long for one goes on in the next."""
    pages, rows, size = [], list[str](), 0
    for row in text.rstrip("\n").split("\n"):
        for at in range(0, max(1, len(row)), _CHARS):
            part = row[at : at + _CHARS]
            rows.append(part)
            size += len(part) + 1
            if size >= _CHARS or len(rows) >= _ROWS:
                pages.append(PagerPart("\n".join(rows), style=style))
                rows, size = [], 0
    if rows:
        pages.append(PagerPart("\n".join(rows), style=style))
    return pages
