"""Cutting a source into chunks: pieces that the syntax gives are kept together with the comment above them, small
neighbours share a chunk, what is too long is cut at a blank line; without syntax, windows of lines."""

from bisect import bisect_right
from collections.abc import Sequence

from codewhale.codesearch.model import Chunk
from codewhale.codesearch.symbols import SourceSpan

SMALL = 1000  # bytes: neighbours are joined while together they stay below
LONG = 3000  # bytes: what is longer is cut
LINES = 80  # and what has more lines
WINDOW = 50  # lines of a window where no syntax tells
_NEWLINE = ord("\n")


class LineOffsets:
    """Where the lines of a text begin; a line ends with its newline."""

    def __init__(self, data: bytes) -> None:
        import numpy

        newlines = numpy.flatnonzero(numpy.frombuffer(data, numpy.uint8) == _NEWLINE) if data else numpy.empty(0, int)
        starts: list[int] = [0, *(newlines + 1).tolist()]
        if len(starts) > 1 and starts[-1] == len(data):
            starts.pop()
        self.starts = starts
        self.end = len(data)
        self._data = data

    def __len__(self) -> int:
        return len(self.starts)

    def offset(self, row: int) -> int:
        """Where row `row` (0-based) begins; the end of the text for rows beyond."""
        return self.starts[row] if row < len(self.starts) else self.end

    def row_at(self, offset: int) -> int:
        """The row that holds the byte at `offset`."""
        return bisect_right(self.starts, offset) - 1

    def is_blank(self, row: int) -> bool:
        """Whether a row holds nothing but white space."""
        return not self._data[self.starts[row] : self.offset(row + 1)].strip()


def cut(lines: LineOffsets, pieces: Sequence[SourceSpan]) -> list[Chunk]:
    """The chunks of a text, in order and covering every line; at least one."""
    if not pieces:
        return _windows(lines, SourceSpan(0, len(lines) - 1, "block", ""), WINDOW)
    chunks: list[Chunk] = []
    for piece in _joined(lines, _filled(lines, pieces)):
        long = lines.offset(piece.end + 1) - lines.offset(piece.start) > LONG or piece.end - piece.start >= LINES
        if long:
            chunks += _windows(lines, piece, LINES)
        else:
            chunks.append(Chunk(piece.start + 1, piece.end + 1, piece.kind, piece.name))
    return chunks


def _filled(lines: LineOffsets, pieces: Sequence[SourceSpan]) -> list[SourceSpan]:
    """The pieces in order, each with the lines directly above it, and what lies between them as blocks."""
    filled: list[SourceSpan] = []
    free = 0
    for piece in sorted(pieces, key=lambda piece: piece.start):
        start, end = max(piece.start, free), min(piece.end, len(lines) - 1)
        if start > end:
            continue
        while start > free and not lines.is_blank(start - 1):
            start -= 1
        if start > free:
            filled.append(SourceSpan(free, start - 1, "block", ""))
        filled.append(SourceSpan(start, end, piece.kind, piece.name))
        free = end + 1
    if free < len(lines):
        filled.append(SourceSpan(free, len(lines) - 1, "block", ""))
    return filled


def _joined(lines: LineOffsets, pieces: Sequence[SourceSpan]) -> list[SourceSpan]:
    """Small neighbours as one piece, named by the largest definition in it."""
    joined: list[SourceSpan] = []
    best = 0
    for piece in pieces:
        size = lines.offset(piece.end + 1) - lines.offset(piece.start)
        last = joined[-1] if joined else None
        if last is None or lines.offset(piece.end + 1) - lines.offset(last.start) > SMALL:
            joined.append(piece)
            best = size if piece.name else 0
            continue
        named = piece if piece.name and size > best else last
        best = max(best, size) if piece.name else best
        joined[-1] = SourceSpan(last.start, piece.end, named.kind, named.name)
    return joined


def _windows(lines: LineOffsets, piece: SourceSpan, most: int) -> list[Chunk]:
    """A piece cut into stretches of at most `most` lines and about LONG bytes, at a blank line where one is near."""
    found: list[Chunk] = []
    start = piece.start
    while start <= piece.end:
        end = min(start + most - 1, piece.end, max(start, lines.row_at(lines.offset(start) + LONG - 1)))
        if end < piece.end:
            blank = next((row for row in range(end, max(start, end - 12), -1) if lines.is_blank(row)), end)
            end = blank
        found.append(Chunk(start + 1, end + 1, piece.kind, piece.name))
        start = end + 1
    return found
