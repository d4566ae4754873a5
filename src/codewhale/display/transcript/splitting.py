"""A markdown text that grows, cut into pieces that can each be drawn for itself: prose up to a blank line, and fenced
code. What is cut depends on the text alone, never on how it arrived."""

from msgspec import Struct, structs

from codewhale.lib.patterns import lazy

# A piece is cut where it has so many characters, at the next list item from half of it on; code also at so many lines.
MOST_CHARS = 4_096
MOST_CODE_LINES = 100
_NEAR = 200
_FENCE = lazy(r"( {0,3}(?:[-*+]|\d{1,9}[.)])(?= ))?( *)(`{3,}|~{3,})([^`\n]*)$")
_ITEM = lazy(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)")


class Fence(Struct, frozen=True, gc=False):
    """An open code fence: its mark, how far it is indented, and what its first line says behind the mark."""

    mark: str
    indent: int
    info: str


class Opening(Struct, frozen=True, gc=False):
    """How things stand where a text goes on: in which fence, whether below a list, and whether inside a line, where
    nothing is a mark."""

    fence: Fence | None = None
    listed: bool = False
    inside: bool = False


class MarkdownPiece(Struct, frozen=True):
    """A part of a text: `code` is its fence (None for prose). `gap` tells whether a blank line stands before it,
    `goes_on` whether it continues the code before it. `end` is where it ends in the text, `then` how things
    stand there (None where a text cannot be parted); `broken` that it ends inside a line."""

    text: str
    code: Fence | None
    gap: bool
    goes_on: bool
    end: int
    then: Opening | None
    broken: bool = False


class Splitter:
    """Takes a text in any slices. `pieces` are those that are finished."""

    def __init__(self, opening: Opening | None = None) -> None:
        opening = opening or Opening()
        self.pieces: list[MarkdownPiece] = []
        self._fence = opening.fence
        self._listed = opening.listed
        self._inside = self._ends_inside = opening.inside
        self._goes_on = opening.fence is not None
        self._partial = ""
        self._lines: list[str] = []
        self._size = 0
        self._blank = 0
        self._gap = False
        self._position = 0
        self._end = 0

    def feed(self, text: str) -> None:
        lines = (self._partial + text).split("\n")
        self._partial = lines.pop()
        for line in lines:
            self._line(self._shortened(line), 1)
        self._partial = self._shortened(self._partial)

    def _shortened(self, line: str) -> str:
        """What is left of a line after all that is too long for one piece has been passed on."""
        while len(line) > MOST_CHARS:
            space = line.rfind(" ", MOST_CHARS - _NEAR, MOST_CHARS)
            cut = space + 1 if space >= 0 else MOST_CHARS
            had = len(self.pieces)
            self._line(line[:cut], 0)
            self._flush()
            if len(self.pieces) > had:
                self.pieces[-1] = structs.replace(self.pieces[-1], broken=True)
            line = line[cut:]
        return line

    def rest(self) -> list[MarkdownPiece]:
        """The pieces that the unfinished end of the text would be, if it ended here."""
        other = Splitter(Opening(self._fence, self._listed, self._inside))
        other._goes_on, other._gap, other._blank = self._goes_on, self._gap, self._blank
        other._lines, other._size = list(self._lines), self._size
        other._position, other._end, other._ends_inside = self._position, self._end, self._ends_inside
        if self._partial:
            other._line(self._partial, 0)
        other._flush()
        return other.pieces

    def finish(self) -> list[MarkdownPiece]:
        """All pieces; the text has ended."""
        self.pieces += self.rest()
        self._partial, self._lines = "", []
        return self.pieces

    def _line(self, line: str, ended: int) -> None:
        self._position += len(line) + ended
        inside, self._inside = self._inside, not ended
        if self._fence is not None:
            self._code_line(self._fence, line, inside)
        elif line.strip():
            self._prose_line(line, inside)
        elif not inside:
            self._blank += 1

    def _code_line(self, fence: Fence, line: str, inside: bool) -> None:
        if not inside and _closes(line, fence):
            self._reach()
            self._flush(closes=True)
            return
        self._add(line if inside else line[min(_indent(line), fence.indent) :])
        if len(self._lines) >= MOST_CODE_LINES or self._size >= MOST_CHARS:
            self._flush()

    def _prose_line(self, line: str, inside: bool) -> None:
        fence = None if inside else _FENCE().match(line)
        if fence is not None and (len(fence[2]) <= 3 or fence[1] or self._listed):
            item = fence[1] or ""
            self._open_fence(item, Fence(fence[3], len(item + fence[2]), fence[4].strip()))
            return
        item = not inside and _ITEM().match(line) is not None
        if self._blank and self._lines and line[:2].isspace():
            self._lines += [""] * self._blank
        elif self._blank or (item and self._size > MOST_CHARS // 2):
            gap = self._blank > 0
            self._flush()
            self._gap = gap
        self._blank = 0
        self._listed = item or (self._listed and (inside or line[:2].isspace()))
        self._add(line)
        if self._size >= MOST_CHARS:
            self._flush()

    def _open_fence(self, item: str, fence: Fence) -> None:
        """Begin code; `item` is the mark of the list item that it is the first thing of, or ""."""
        self._flush()
        self._gap, self._blank = self._gap or self._blank > 0, 0
        if item:
            self._listed = True
            self._add(item)
            self._flush()
            self.pieces[-1] = structs.replace(self.pieces[-1], then=None)
        self._fence, self._goes_on = fence, False
        self._reach()

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        self._reach()

    def _reach(self) -> None:
        """What was taken so far belongs to the piece that is open."""
        self._end, self._ends_inside = self._position, self._inside

    def _flush(self, closes: bool = False) -> None:
        then = Opening(None if closes else self._fence, self._listed, self._ends_inside)
        if self._lines or (closes and not self._goes_on):
            text = "\n".join(self._lines)
            self.pieces.append(MarkdownPiece(text, self._fence, self._gap, self._goes_on, self._end, then))
            self._gap = False
        elif closes and self.pieces:
            self.pieces[-1] = structs.replace(self.pieces[-1], end=self._end, then=then)
        self._lines, self._size = [], 0
        self._fence, self._goes_on = then.fence, then.fence is not None


def _closes(line: str, fence: Fence) -> bool:
    """Whether a line of code is the fence's end."""
    bare = line.strip()
    return len(bare) >= len(fence.mark) and bare == fence.mark[0] * len(bare) and _indent(line) < fence.indent + 4


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
