"""Parsed markdown as lines: headings, lists, quotes, rules, code, and words with their links' addresses."""

from collections.abc import Sequence
from typing import Any

from codewhale.display.transcript.highlight import GROUND, Highlighter, grounded
from codewhale.display.transcript.lines import Line, Span, cells, clean, flat, fold_hard, wrap
from codewhale.display.transcript.tables import Cell, table_lines

_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_BULLETS = ("• ", "◦ ", "▪ ")
_HEADINGS = {"h1": "accent bold underline", "h2": "accent bold", "h3": "text bold"}


class _Box:
    """A list item or a quote: what stands before its first line and before the others."""

    def __init__(self, first: Sequence[Span], rest: Sequence[Span], row: int = 0) -> None:
        self.first: Sequence[Span] = first
        self.rest = rest
        self.row = row

    def take(self) -> Sequence[Span]:
        """What stands before the next line."""
        first, self.first = self.first, self.rest
        return first


class Flow:
    """Draws the tokens of one text."""

    def __init__(self, width: int, colours: Highlighter) -> None:
        self._width = width
        self._colours = colours
        self._lines: list[Line] = []
        self._boxes: list[_Box] = []
        self._counts: list[int | None] = []
        self._last = 0
        self._style = "text"
        self._table: list[list[Cell]] | None = None

    def lines(self, tokens: Sequence[Any]) -> list[Line]:
        """The lines of these tokens."""
        for token in tokens:
            draw = getattr(self, f"_on_{token.type}", None)
            if draw is not None:
                draw(token)
        return self._lines

    # ------------------------------------------------------------------ what holds others

    def _on_bullet_list_open(self, token: Any) -> None:
        self._counts.append(None)

    def _on_ordered_list_open(self, token: Any) -> None:
        self._counts.append(int(token.attrGet("start") or 1) if token.attrGet("start") != 0 else 0)

    def _on_bullet_list_close(self, token: Any) -> None:
        self._counts.pop()

    _on_ordered_list_close = _on_bullet_list_close

    def _on_list_item_open(self, token: Any) -> None:
        count = self._counts[-1]
        if count is None:
            mark = _BULLETS[(len(self._counts) - 1) % len(_BULLETS)]
        else:
            mark = f"{count}. "
            self._counts[-1] = count + 1
        row = token.map[0] if token.map else 0
        within = self._fits(cells(mark))
        rest = ((" " * cells(mark), "text"),) if within else ()
        self._boxes.append(_Box(((mark, "accent"),) if within else rest, rest, row))

    def _fits(self, more: int) -> bool:
        """Whether half of the line is left when text moves in so many cells more; deeper it stays where it is."""
        return sum(cells(text) for box in self._boxes for text, _ in box.rest) + more <= self._width // 2

    def _on_list_item_close(self, token: Any) -> None:
        box = self._boxes[-1]
        if box.first is not box.rest:
            self._put_gap((box.row, box.row + 1))
            self._lines.append(Line(self._before()))
        self._boxes.pop()

    def _on_blockquote_open(self, token: Any) -> None:
        bar: Sequence[Span] = (("│ ", "border"),) if self._fits(2) else ()
        self._boxes.append(_Box(bar, bar))

    def _on_blockquote_close(self, token: Any) -> None:
        self._boxes.pop()

    # ------------------------------------------------------------------ what is drawn

    def _on_heading_open(self, token: Any) -> None:
        self._put_gap(token.map)
        self._style = _HEADINGS.get(token.tag, "muted bold")

    def _on_heading_close(self, token: Any) -> None:
        self._style = "text"

    def _on_paragraph_open(self, token: Any) -> None:
        self._put_gap(token.map)

    def _on_inline(self, token: Any) -> None:
        rows = inline_rows(token.children or (), self._style)
        if self._table is not None:
            self._table[-1][-1].rows[:] = rows
            return
        if self._counts and rows and rows[0] and rows[0][0][0][:4] in _TASKS:
            text, style = rows[0][0]
            rows[0][0] = (_TASKS[text[:4]] + text[4:], style)
        for row in rows:
            first = self._before()
            self._lines += wrap(row, self._width, first, self._before(peek=True))

    def _on_hr(self, token: Any) -> None:
        self._put_gap(token.map)
        before = self._before()
        room = self._width - cells("".join(text for text, _ in before))
        self._lines.append(Line((*before, ("─" * max(3, room), "border"))))

    def _on_fence(self, token: Any) -> None:
        self._put_gap(token.map)
        words = token.info.split()
        rows = clean(token.content).rstrip("\n").split("\n")
        for spans in self._colours.piece(rows, words[0] if words else ""):
            self._lines += fold_hard(grounded(spans), self._width, (*self._before(), (" ", GROUND)), GROUND)

    _on_code_block = _on_fence

    # ------------------------------------------------------------------ tables

    def _on_table_open(self, token: Any) -> None:
        self._put_gap(token.map)
        self._table = []

    def _on_tr_open(self, token: Any) -> None:
        if self._table is not None:
            self._table.append([])

    def _on_th_open(self, token: Any) -> None:
        if self._table is not None:
            align = str(token.attrGet("style") or "").rpartition(":")[2]
            self._style = "accent bold" if token.type == "th_open" else "text"
            self._table[-1].append(Cell([[]], align == "right"))

    _on_td_open = _on_th_open

    def _on_table_close(self, token: Any) -> None:
        before = self._before(peek=True)
        room = self._width - cells("".join(text for text, _ in before))
        for line in table_lines(self._table or [], room):
            self._lines.append(Line((*self._before(), *line.spans)))
        self._table, self._style = None, "text"

    # ------------------------------------------------------------------ where it stands

    def _before(self, peek: bool = False) -> tuple[Span, ...]:
        """What stands before the next line; `peek` what stands before the ones behind it."""
        return tuple(span for box in self._boxes for span in (box.rest if peek else box.take()))

    def _put_gap(self, rows: Sequence[int] | None) -> None:
        """A blank line where the text has one or more above these rows of it, from and to."""
        start, end = rows or (self._last, self._last)
        if self._lines and start > self._last:
            self._lines.append(Line(tuple(span for box in self._boxes for span in box.rest if span[1] == "border")))
        self._last = max(self._last, end)


def inline_rows(tokens: Sequence[Any], style: str) -> list[list[Span]]:
    """Inline tokens as rows of spans, one row for each line of the source."""
    rows: list[list[Span]] = [[]]
    marks: list[str] = []
    links: list[tuple[str, int]] = []
    for token in tokens:
        match token.type:
            case "softbreak" | "hardbreak":
                rows.append([])
            case "strong_open" | "em_open" | "s_open":
                marks.append({"strong_open": "bold", "em_open": "italic", "s_open": "strike"}[token.type])
            case "strong_close" | "em_close" | "s_close":
                marks.pop()
            case "link_open":
                links.append((flat(token.attrGet("href") or ""), len(rows[-1])))
                marks.append("underline")
            case "link_close":
                marks.pop()
                _close_link(rows[-1], *links.pop())
            case "image":
                rows[-1].append((flat(token.content) or "image", f"{style} italic"))
                rows[-1].append((f" ({flat(token.attrGet('src') or '')})", "muted"))
            case "code_inline":
                rows[-1].append((flat(token.content), "code on:code_background"))
            case _:
                base = "link" if links else style
                rows[-1].append((flat(token.content), " ".join([base, *marks])))
    return [[span for span in row if span[0]] for row in rows]


def _close_link(row: list[Span], address: str, start: int) -> None:
    """Show where a link leads, unless its text says so."""
    said = "".join(text for text, _ in row[start:])
    if address and said not in (address, address.removeprefix("mailto:")):
        row.append((f" ({address})", "muted"))
