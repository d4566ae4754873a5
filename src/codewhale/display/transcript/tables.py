"""Tables as lines: columns share the width by what they need, cells wrap, and what does not fit side by side is told
row by row."""

from collections.abc import Sequence
from typing import NamedTuple

from codewhale.display.transcript.lines import Line, Span, cells, wrap

_LEAST_COLUMN = 5
_BETWEEN = " │ "


class Cell(NamedTuple):
    """A cell: its rows of spans, and whether they stand at its right side."""

    rows: list[list[Span]]
    right: bool = False


def table_lines(rows: Sequence[Sequence[Cell]], width: int) -> list[Line]:
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
    lines.append(Line((("─┼─".join("─" * size for size in sizes), "border"),)))
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


def _row_lines(row: Sequence[Cell], sizes: Sequence[int]) -> list[Line]:
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
        lines.append(Line(tuple(span for span in spans if span[0])))
    return lines


def _lines(spans: Sequence[Span], size: int) -> list[Line]:
    return wrap(spans, size) if size >= 4 else [Line(tuple(spans))]


def _in_width(line: Line, size: int) -> tuple[Span, ...]:
    """The spans of a line, cut where a column is narrower than any line can be."""
    kept, left = [], size
    for text, style in line.spans:
        while cells(text) > left:
            text = text[:-1]
        if text:
            kept.append((text, style))
            left -= cells(text)
    return tuple(kept)


def _records(rows: Sequence[Sequence[Cell]], width: int) -> list[Line]:
    """Each row for itself, every cell under its column's name."""
    header = ["".join(text for row in cell.rows for text, _ in row) for cell in rows[0]]
    lines: list[Line] = []
    for number, row in enumerate(rows[1:]):
        lines += [Line()] if number else []
        for at, cell in enumerate(row):
            name: list[Span] = [(f"{header[at]}: ", "muted")] if at < len(header) and header[at] else []
            for spans in cell.rows:
                lines += wrap([*name, *spans], width, (), (("  ", "text"),))
                name = []
    return lines
