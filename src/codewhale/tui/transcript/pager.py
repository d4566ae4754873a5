"""A whole block on a screen of its own: all that there is of it, drawn as far as it is seen, searched, opened in the
person's own pager or editor."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.screen import ModalScreen

from codewhale.display.palette import Palette
from codewhale.display.text import StyledLine, clean, fit, fold_hard, one_row, uncoloured
from codewhale.display.transcript.blocks import CallCard, Explored, TextBlock, TranscriptBlock
from codewhale.display.transcript.cards import DrawOptions
from codewhale.display.transcript.code import DiffRow, diff_lines, diff_rows
from codewhale.display.transcript.drawing import Drawer
from codewhale.display.transcript.markdown import Pen, markdown_lines
from codewhale.display.transcript.model import TranscriptModel
from codewhale.display.transcript.splitting import Opening
from codewhale.display.words import Words
from codewhale.protocol.blocks import Block as Display
from codewhale.protocol.blocks import DiffBlock, MarkdownBlock, TerminalBlock
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.requests import Ask
from codewhale.protocol.views import ReadOutput
from codewhale.tui.keys import bindings
from codewhale.tui.screens.context import ScreenContext
from codewhale.tui.screens.table import text_shower
from codewhale.tui.transcript.copying import bounded, whole_text
from codewhale.tui.transcript.pane import Pane
from codewhale.tui.transcript.search import PaneSearch, TextSearch
from codewhale.tui.widgets import TagLine, hint, in_rows

HINTS = (
    ("pager.find", "report.find"), ("pager.page_outside", "transcript.pager_outside"),
    ("pager.edit", "transcript.pager_edit"), ("pager.close", "frame.close"),
)  # fmt: skip
PAGERS, EDITORS = ("less", "more"), ("vi", "nano")
# The first frame waits so long for an output that is not here, and shows its part when it takes longer.
_AT_ONCE = 0.04
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
        rows = clean(uncoloured(page.text)).split("\n")
        return [line for row in rows for line in fold_hard(((row, page.style),), width)]

    def text(self, index: int) -> str:
        """What is searched of a page."""
        page = self.pages[index]
        if page.kind == "diff":
            return "\n".join(row.text for row in page.rows)
        return "\n".join(line.text for line in page.lines) if page.kind == "lines" else uncoloured(page.text)


class Pager(ModalScreen[None]):
    """One text, with its title. `whole` is asked for where what is here is only a part of it."""

    BINDINGS: ClassVar = bindings("pager")
    DEFAULT_CSS = """
    Pager { background: $background; layout: vertical; }
    Pager > TagLine { background: $surface; padding: 0 1; }
    """

    def __init__(
        self,
        title: str,
        pages: Sequence[PagerPart],
        text: str,
        words: Words,
        palette: Palette,
    ) -> None:
        super().__init__()
        self._title = one_row(title)
        self._handed: ScreenContext | None = None
        self._whole: ReadOutput | None = None
        self._command = ""
        self._words = words
        self._text = text
        self._head, self._foot = TagLine(palette, "surface"), TagLine(palette, "surface")
        self._said = ""
        self._held = held = Pages(pages)
        self.pane = Pane(palette, held)
        self.pane.follow = False
        self._search = PaneSearch(self.pane, words, lambda query: TextSearch(len(held), held.text, query))
        self.pane.before_frame = self._search.scan

    @classmethod
    def of_block(
        cls,
        model: TranscriptModel,
        block: TranscriptBlock,
        words: Words,
        palette: Palette,
        context: ScreenContext | None = None,
    ) -> "Pager":
        """All that is kept of a block; what is not here is asked for by `context`."""
        whole: ReadOutput | None = None
        match block:
            case CallCard():
                title, pages = block.subject or block.name, _card_pages(block, words)
                if block.kept or block.shortened:
                    whole = ReadOutput(context.session if context else "", block.call_id, block.kept)
            case Explored(cards=cards):
                title, pages = (
                    words("transcript.pager_call"),
                    [page for card in cards for page in _card_pages(card, words)],
                )
            case TextBlock():
                title, pages = words("transcript.pager_words"), _said_pages(model, block)
            case _:
                title, pages = words("transcript.pager_words"), _line_pages(block, words)
        pager = cls(title, pages, whole_text(model, block), words, palette)
        pager._handed, pager._whole = context, whole
        pager._command = command_of(block) if isinstance(block, CallCard) else ""
        return pager

    def compose(self) -> ComposeResult:
        yield self._head
        yield self.pane
        yield self._foot

    async def on_mount(self) -> None:
        self.pane.focus()
        if self._whole is not None and self._handed is not None:
            fetching = self.run_worker(self._fetch(self._handed.query, self._whole), group="whole")
            await asyncio.wait({asyncio.ensure_future(fetching.wait())}, timeout=_AT_ONCE)
            if not fetching.is_finished:
                self.say(self._words("transcript.pager_loading"))

    async def _fetch(self, ask: Ask, whole: ReadOutput) -> None:
        """Show all of an output in the place of its part."""
        try:
            text = await ask(whole)
        except (CodeWhaleError, OSError) as error:
            self.say(self._words("transcript.pager_gone", why=one_row(str(error))))
            return
        before = f"$ {self._command}\n" if self._command else ""
        self._text = before + text
        pages = await asyncio.to_thread(_plain, text)
        self._held.pages = [*(_plain(before, "accent bold") if before else ()), *pages]
        self.pane.renew(0)
        self.pane.grow()
        self.pane.go_to_top()
        self._title = self._with_size(text)
        self.say("")

    def _with_size(self, text: str) -> str:
        count = text.rstrip().count("\n") + 1
        return f"{self._title}  ·  {self._words('transcript.pager_lines', n=f'{count:,}')}"

    def say(self, text: str) -> None:
        """Show a sentence in the place of the keys, until "" brings them back."""
        self._said = text
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = max(2, self.app.size.width - 2)
        self._head.show([((fit(self._title, width), "bold accent"),)])
        changed = self._handed.keys if self._handed else {}
        hints = [hint(action, self._words(key), changed) for action, key in HINTS]
        self._foot.show([((self._said, "muted"),)] if self._said else in_rows(hints, width))

    def repaint(self, palette: Palette) -> None:
        for part in (self._head, self.pane, self._foot):
            part.repaint(palette)

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
        self.say(self._words("transcript.pager_copied", n=f"{len(kept):,}"))

    def action_page_outside(self) -> None:
        """Show all of it in the person's own pager."""
        self._show(self._handed.pager if self._handed else "", PAGERS)

    def action_edit(self) -> None:
        """Show all of it in the person's editor; what is changed there changes nothing here."""
        self._show(self._handed.editor if self._handed else "", EDITORS)

    def _show(self, command: str, others: Sequence[str]) -> None:
        async def show() -> None:
            result = await text_shower()(self.app, command, others, self._text)
            if result.code:
                self.say(self._words(f"composer.{result.code}", wrong=result.wrong))

        runs: Callable[[], Awaitable[None]] = show
        self.run_worker(runs, group="outside", exclusive=True)

    def action_close(self) -> None:
        if not self._search.close():
            self.dismiss(None)


def command_of(card: CallCard) -> str:
    """The command line that a card is of, "" for any other tool."""
    return next((display.command for display in card.display if isinstance(display, TerminalBlock)), "")


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
    text, pages, at, end = text.rstrip("\n"), list[PagerPart](), 0, -1
    while end < len(text):
        end = text.rfind("\n", at, at + _CHARS) if at + _CHARS < len(text) else len(text)
        end = at + _CHARS if end < 0 else end
        if text.count("\n", at, end) >= _ROWS:
            end = at - 1
            for _ in range(_ROWS):
                end = text.find("\n", end + 1)
        pages.append(PagerPart(text[at:end], style=style))
        at = end + text.startswith("\n", end)
    return pages
