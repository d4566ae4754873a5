"""Markdown as lines. What is finished is drawn once; of a text that grows only its open end is drawn again."""

import re
from collections.abc import Sequence
from typing import Any

from codewhale.display.transcript.highlight import GROUND, Highlighter, grounded
from codewhale.display.transcript.lines import Line, Span, clean, fold_hard, wrap
from codewhale.display.transcript.proseflow import Flow
from codewhale.display.transcript.splitting import Opening, Piece, Splitter

_MARKS = re.compile(r"[*_`\[\]#>|<~\\&!+=-]|\d[.)]|^ {4}", re.MULTILINE)


class Pen:
    """Draws pieces of markdown. Holds what is dear to load: the parser, and the lexers of `colours`."""

    def __init__(self) -> None:
        self.colours = Highlighter()
        self._parser: Any = None

    def warm(self) -> None:
        """Load what is dear to load; may be called beside the event loop."""
        self.colours.piece(["pass"], "python")  # its lexer is made at its first use, for a quarter of a second
        self._parser = self._parser or _parser()

    def piece(self, piece: Piece, width: int, *, growing: bool = False) -> list[Line]:
        """The lines of a piece, the gap before it included. Code that still grows is coloured line by line."""
        gap = [Line()] if piece.gap else []
        if piece.code is None:
            return gap + self.prose(piece.text, width)
        words = piece.code.info.split()
        return gap + self.code(piece.text, words[0] if words else "", (width, piece.code.indent), growing)

    def prose(self, text: str, width: int) -> list[Line]:
        """Markdown without fences of its own level."""
        text = clean(text)
        if _plain(text):
            return [line for row in text.split("\n") for line in wrap(((row.strip(), "text"),), width)]
        if self._parser is None:
            self._parser = _parser()
        return Flow(width, self.colours).lines(self._parser.parse(text))

    def code(self, text: str, word: str, place: tuple[int, int], growing: bool = False) -> list[Line]:
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
        self._done: list[Line] = []
        self._drawn = 0

    def feed(self, text: str) -> None:
        """Take more of the text."""
        self.taken += len(text)
        self._splitter.feed(text)

    def whole(self) -> list[Line]:
        """All lines; the text has ended."""
        self._splitter.finish()
        return self.lines()

    def lines(self) -> list[Line]:
        """All lines as the text stands."""
        pieces = self._splitter.pieces
        for piece in pieces[self._drawn :]:
            self._done += self._pen.piece(piece, self.width)
        self._drawn = len(pieces)
        tail = [line for piece in self._splitter.rest() for line in self._pen.piece(piece, self.width, growing=True)]
        return self._done + tail


def markdown_lines(pen: Pen, text: str, width: int, opening: Opening | None = None) -> list[Line]:
    """A whole text."""
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
