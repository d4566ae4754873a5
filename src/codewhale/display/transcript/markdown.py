"""Markdown as lines. What is finished is drawn once; of a text that grows only its open end is drawn again."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from codewhale.display.text import PROSE, Span, StyledLine, cells, clean, fold_hard, one_row, wrap
from codewhale.display.transcript.code import GROUND, Highlighter, grounded
from codewhale.display.transcript.splitting import MarkdownPiece, Opening, Splitter

_LEAST_COLUMN = 5
_BETWEEN = " │ "
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_BULLETS = ("• ", "◦ ", "▪ ")
_HEADINGS = {"h1": "accent bold underline", "h2": "accent bold", "h3": "text bold"}
_MARKS = re.compile(r"[*_`\[\]#>|<~\\&!+=-]|\d[.)]|^ {4}", re.MULTILINE)


class Cell(NamedTuple):
    """A cell: its rows of spans, and whether they stand at its right side."""

    rows: list[list[Span]]
    right: bool = False


def table_lines(rows: Sequence[Sequence[Cell]], width: int) -> list[StyledLine]:
    """A table whose first row is its header, in at most `width` cells."""
    count = max((len(row) for row in rows), default=0)
    if not count:
        return []
    needed = [max((_needs(row[at]) for row in rows if at < len(row)), default=1) for at in range(count)]
    room = width - (count - 1) * len(_BETWEEN)
    if room < count * _LEAST_COLUMN and sum(needed) > room:
        return _records(rows, width)
    sizes = share(needed, room)
    lines = _row_lines(rows[0], sizes)
    lines.append(StyledLine((("─┼─".join("─" * size for size in sizes), "border"),)))
    for row in rows[1:]:
        lines += _row_lines(row, sizes)
    return lines


def share(needed: Sequence[int], room: int) -> list[int]:
    """How wide each column is: all that it needs where there is room, else the wide ones are cut to one size."""
    if sum(needed) <= room:
        return list(needed)
    low, high = 1, max(needed)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(need, middle) for need in needed) <= room:
            low = middle
        else:
            high = middle - 1
    return [min(need, low) for need in needed]


def _needs(cell: Cell) -> int:
    return max((sum(cells(text) for text, _ in row) for row in cell.rows), default=1) or 1


def _row_lines(row: Sequence[Cell], sizes: Sequence[int]) -> list[StyledLine]:
    columns = []
    for at, size in enumerate(sizes):
        inner = row[at].rows if at < len(row) else [[]]
        columns.append([_in_width(line, size) for spans in inner for line in _lines(spans, size)])
    lines = []
    for at in range(max(map(len, columns))):
        spans: list[Span] = []
        for number, (column, size) in enumerate(zip(columns, sizes, strict=True)):
            inside = column[at] if at < len(column) else ()
            blank = (" " * (size - sum(cells(text) for text, _ in inside)), "text")
            right = number < len(row) and row[number].right
            spans += ([(_BETWEEN, "border")] if number else []) + ([blank, *inside] if right else [*inside, blank])
        lines.append(StyledLine(tuple(span for span in spans if span[0])))
    return lines


def _lines(spans: Sequence[Span], size: int) -> list[StyledLine]:
    return wrap(spans, size) if size >= 4 else [StyledLine(tuple(spans))]


def _in_width(line: StyledLine, size: int) -> tuple[Span, ...]:
    """The spans of a line, cut where a column is narrower than any line can be."""
    kept, left = [], size
    for text, style in line.spans:
        while cells(text) > left:
            text = text[:-1]
        if text:
            kept.append((text, style))
            left -= cells(text)
    return tuple(kept)


def _records(rows: Sequence[Sequence[Cell]], width: int) -> list[StyledLine]:
    """Each row for itself, every cell under its column's name."""
    header = ["".join(text for row in cell.rows for text, _ in row) for cell in rows[0]]
    lines: list[StyledLine] = []
    for number, row in enumerate(rows[1:]):
        lines += [StyledLine()] if number else []
        for at, cell in enumerate(row):
            name: list[Span] = [(f"{header[at]}: ", "muted")] if at < len(header) and header[at] else []
            for spans in cell.rows:
                lines += wrap([*name, *spans], width, (), (("  ", "text"),))
                name = []
    return lines


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
        self._lines: list[StyledLine] = []
        self._boxes: list[_Box] = []
        self._counts: list[int | None] = []
        self._last = 0
        self._style = "text"
        self._table: list[list[Cell]] | None = None

    def lines(self, tokens: Sequence[Any]) -> list[StyledLine]:
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
            self._lines.append(StyledLine(self._before()))
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
            self._lines += wrap(row, min(self._width, PROSE), first, self._before(peek=True))

    def _on_hr(self, token: Any) -> None:
        self._put_gap(token.map)
        before = self._before()
        room = min(self._width, PROSE) - cells("".join(text for text, _ in before))
        self._lines.append(StyledLine((*before, ("─" * max(3, room), "border"))))

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
            self._lines.append(StyledLine((*self._before(), *line.spans)))
        self._table, self._style = None, "text"

    # ------------------------------------------------------------------ where it stands

    def _before(self, peek: bool = False) -> tuple[Span, ...]:
        """What stands before the next line; `peek` what stands before the ones behind it."""
        return tuple(span for box in self._boxes for span in (box.rest if peek else box.take()))

    def _put_gap(self, rows: Sequence[int] | None) -> None:
        """A blank line where the text has one or more above these rows of it, from and to."""
        start, end = rows or (self._last, self._last)
        if self._lines and start > self._last:
            self._lines.append(
                StyledLine(tuple(span for box in self._boxes for span in box.rest if span[1] == "border"))
            )
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
                links.append((one_row(token.attrGet("href") or ""), len(rows[-1])))
                marks.append("underline")
            case "link_close":
                marks.pop()
                _close_link(rows[-1], *links.pop())
            case "image":
                rows[-1].append((one_row(token.content) or "image", f"{style} italic"))
                rows[-1].append((f" ({one_row(token.attrGet('src') or '')})", "muted"))
            case "code_inline":
                rows[-1].append((one_row(token.content), "code on:code_background"))
            case _:
                base = "link" if links else style
                rows[-1].append((one_row(token.content), " ".join([base, *marks])))
    return [[span for span in row if span[0]] for row in rows]


def _close_link(row: list[Span], address: str, start: int) -> None:
    """Show where a link leads, unless its text says so."""
    said = "".join(text for text, _ in row[start:])
    if address and said not in (address, address.removeprefix("mailto:")):
        row.append((f" ({address})", "muted"))


class Pen:
    """Draws pieces of markdown. Holds what is dear to load: the parser, and the lexers of `colours`."""

    def __init__(self) -> None:
        self.colours = Highlighter()
        self._parser: Any = None

    def warm(self) -> None:
        """Load what is dear to load; may be called beside the event loop."""
        self.colours.piece(["pass"], "python")  # its lexer is made at its first use, for a quarter of a second
        self._parser = self._parser or _parser()

    def piece(self, piece: MarkdownPiece, width: int, *, growing: bool = False) -> list[StyledLine]:
        """The lines of a piece, the gap before it included. Code that still grows is coloured line by line."""
        gap = [StyledLine()] if piece.gap else []
        if piece.code is None:
            return gap + self.prose(piece.text, width)
        words = piece.code.info.split()
        return gap + self.code(piece.text, words[0] if words else "", (width, piece.code.indent), growing)

    def prose(self, text: str, width: int) -> list[StyledLine]:
        """Markdown without fences of its own level."""
        text = clean(text)
        if _plain(text):
            return [line for row in text.split("\n") for line in wrap(((row.strip(), "text"),), min(width, PROSE))]
        if self._parser is None:
            self._parser = _parser()
        return Flow(width, self.colours).lines(self._parser.parse(text))

    def code(self, text: str, word: str, place: tuple[int, int], growing: bool = False) -> list[StyledLine]:
        """Code on its own ground; `place` is the width and how far it is indented."""
        width, indent = place
        rows = clean(text).split("\n")
        if growing:
            coloured = [self.colours.single(row, word) for row in rows]
        else:
            coloured = self.colours.piece(rows, word)
        before: Sequence[Span] = ((" " * indent, "text"), (" ", GROUND)) if indent else ((" ", GROUND),)
        return [line for spans in coloured for line in fold_hard(grounded(spans), width, before, GROUND)]


class Growing:
    """The lines of a text that grows."""

    def __init__(self, pen: Pen, width: int, opening: Opening | None = None) -> None:
        self.width = width
        self.taken = 0
        self._pen = pen
        self._splitter = Splitter(opening)
        self._done: list[StyledLine] = []
        self._drawn = 0

    def feed(self, text: str) -> None:
        self.taken += len(text)
        self._splitter.feed(text)

    def whole(self) -> list[StyledLine]:
        """All lines; the text has ended."""
        self._splitter.finish()
        return self.lines()

    def lines(self) -> list[StyledLine]:
        """All lines as the text stands."""
        pieces = self._splitter.pieces
        for piece in pieces[self._drawn :]:
            self._done += self._pen.piece(piece, self.width)
        self._drawn = len(pieces)
        tail = [line for piece in self._splitter.rest() for line in self._pen.piece(piece, self.width, growing=True)]
        return self._done + tail


def markdown_lines(pen: Pen, text: str, width: int, opening: Opening | None = None) -> list[StyledLine]:
    growing = Growing(pen, width, opening)
    growing.feed(text)
    return growing.whole()


def _plain(text: str) -> bool:
    """Whether there is nothing in a text that markdown would read as a mark."""
    return _MARKS.search(text) is None


def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False, "maxNesting": 20})
    return parser.enable(["table", "strikethrough"]).disable(["reference"])
