"""A view over very many blocks of lines. Blocks are measured when they come into sight; where the reader stands is a
line of a block, so nothing that is measured or grows elsewhere moves what is seen."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol

from textual import events
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from codewhale.display.palette import Palette
from codewhale.display.text import StyledLine
from codewhale.tui.input import once
from codewhale.tui.paint import Paint, lit

# Frames at most every so many seconds, and so rarely that drawing takes no more than a part of the time.
FRAME = 0.05
_SHARE = 6
_LONGEST = 0.5
# While there is more to take in than one frame can: so long is left to keys, and so often is it drawn.
_BREATH = 0.004
_BUSY_FRAME = 0.2
_MOST_LINES = 6_000
_WHEEL = 3
_MEASURED = 4
_FOUND = "selection_text underline on:selection"


class Heights:
    """The heights of blocks in order, in lines."""

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._exact = bytearray()
        self._tree: list[int] = [0]

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        return self.start(len(self._heights))

    def is_exact(self, index: int) -> bool:
        """Whether a block's height is known and no estimate."""
        return bool(self._exact[index])

    def height(self, index: int) -> int:
        return self._heights[index]

    def append(self, height: int) -> None:
        """Add a block behind the others with an estimate."""
        self._heights.append(height)
        self._exact.append(0)
        place = len(self._heights)
        sum_ = height
        step = 1
        while step < place & -place:
            sum_ += self._tree[place - step]
            step <<= 1
        self._tree.append(sum_)

    def cut(self, count: int) -> None:
        del self._heights[count:], self._exact[count:], self._tree[count + 1 :]

    def set(self, index: int, height: int, exact: bool = True) -> int:
        """Give a block its height; by how much it has grown."""
        grown = height - self._heights[index]
        self._exact[index] = exact
        if grown:
            self._heights[index] = height
            place = index + 1
            while place < len(self._tree):
                self._tree[place] += grown
                place += place & -place
        return grown

    def start(self, index: int) -> int:
        """The first line of a block."""
        total = 0
        while index:
            total += self._tree[index]
            index &= index - 1
        return total

    def at(self, line: int) -> int:
        """The block that a line belongs to: the last one that begins at or before it and is not empty there; the last
        block for a line behind all."""
        place, step = 0, 1 << len(self._heights).bit_length()
        while step:
            if place + step < len(self._tree) and self._tree[place + step] <= line:
                place += step
                line -= self._tree[place]
            step >>= 1
        return min(place, max(0, len(self._heights) - 1))

    def forget(self) -> None:
        """Take every height for an estimate."""
        self._exact = bytearray(len(self._heights))


class PaneSource(Protocol):
    """What a pane shows: blocks by index."""

    def __len__(self) -> int: ...

    def lines(self, index: int, width: int) -> Sequence[StyledLine]: ...

    def estimate(self, index: int, width: int) -> int:
        """About how many lines that will be."""
        ...


class Pane(Widget, can_focus=True):
    """Shows a source. `follow` keeps the end in sight; `covered` lines at the end are hidden. What is marked with the
    mouse is the terminal's business."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "Pane { height: 1fr; background: $background; }"

    def __init__(self, palette: Palette, source: PaneSource, id: str | None = None) -> None:
        super().__init__(id=id)
        self.follow = True
        self.cursor = -1
        self.query_text = ""
        self.heights = Heights()
        self._source = source
        self._paint = Paint(palette)
        self._width = 0
        self._anchor = (0, 0)
        self._lines: OrderedDict[int, Sequence[StyledLine]] = OrderedDict()
        self._held = 0
        self._screen: list[Strip] = []
        self._rows: list[tuple[int, int]] = []
        self._drawn_at = 0.0
        self._rest = FRAME
        self._awake = False
        self._painted_at = 0.0
        self.covered = 0
        # Done before a frame; whether there is more of it, so much that keys come first.
        self.before_frame: Callable[[], bool] = lambda: False

    # ------------------------------------------------------------------ what changes

    def repaint(self, palette: Palette) -> None:
        self._paint = Paint(palette)
        self.wake()

    def grow(self) -> None:
        """Blocks were added behind the others."""
        width = self._width or 80
        while len(self.heights) < len(self._source):
            self.heights.append(self._source.estimate(len(self.heights), width))

    def renew(self, count: int) -> None:
        """All blocks from `count` on are others now."""
        for index in [index for index in self._lines if index >= count]:
            self._forget(index)
        self.heights.cut(count)

    def changed(self, index: int) -> None:
        """A block is to be drawn again."""
        if index < len(self.heights):
            self._forget(index)
            self.heights.set(index, self.heights.height(index), exact=False)

    def changed_all(self) -> None:
        """Every block is to be drawn again."""
        self._lines.clear()
        self._held = 0
        self.heights.forget()
        self.wake()

    def _forget(self, index: int) -> None:
        lines = self._lines.pop(index, None)
        if lines is not None:
            self._held -= len(lines)

    # ------------------------------------------------------------------ frames

    def wake(self) -> None:
        """See to it that a frame is drawn soon."""
        if not self._awake and self.is_mounted:
            self._awake = True
            once(self, self._drawn_at + self._rest - time.monotonic(), self._frame)

    def _frame(self) -> None:
        self._awake = False
        began = time.monotonic()
        more = self.before_frame()
        if more and began < self._painted_at + _BUSY_FRAME:
            self._drawn_at, self._rest = time.monotonic(), _BREATH
        else:
            self.draw()
            self._painted_at = self._drawn_at = time.monotonic()
            self._rest = _BREATH if more else min(_LONGEST, max(FRAME, (self._drawn_at - began) * _SHARE))
        if more:
            self.wake()

    def on_mount(self) -> None:
        self.wake()

    def on_resize(self, event: events.Resize) -> None:
        self.draw()

    @property
    def room(self) -> int:
        return self.size.height - self.covered

    def draw(self) -> None:
        """Work out what is seen and have the rows repainted that are not as they were."""
        width, room = self.size.width, self.room
        if not width or room <= 0:
            return
        if width != self._width:
            self._width = width
            self.changed_all()
        self.grow()
        self._rows = self._arrange(room)
        screen = self._strips(width, room)
        screen += [self._paint.row(StyledLine(), width)] * (self.size.height - len(screen))
        former, self._screen = self._screen, screen
        if len(former) != len(screen):
            self.refresh()
            return
        changed = [at for at, strip in enumerate(screen) if strip is not former[at]]
        if changed:
            self.refresh(*_regions(changed, width))

    def _strips(self, width: int, room: int) -> list[Strip]:
        first, last = self._bar(room)
        hint = self.hint() if self._rows else ""
        chosen = self.marked
        strips = []
        for at in range(room):
            line, index = StyledLine(), -1
            if at < len(self._rows):
                index, number = self._rows[at]
                line = self.lines_at(index)[number]
                if self.query_text:
                    line = lit(line, self.query_text, _FOUND)
            if hint and at == room - 1:
                line = StyledLine(((f" {hint} ", "selection_text on:selection"),))
            bar = "" if last >= room and first == 0 else ("thumb" if first <= at < last else "track")
            marked = index == chosen and index >= 0 and bool(line.spans)
            strips.append(self._paint.row(line, width, marked=marked, bar=bar))
        return strips

    @property
    def marked(self) -> int:
        """The block that is marked at the side, -1 for none."""
        return -1

    def hint(self) -> str:
        """What is said over the last row, "" for nothing."""
        return ""

    def _bar(self, room: int) -> tuple[int, int]:
        """The rows of the scroll bar's thumb; while there is little, all of it is measured."""
        for index in range(len(self.heights) if self.heights.total <= room * _MEASURED else 0):
            self._height(index)
        total = max(1, self.heights.total)
        if total <= room:
            return 0, room
        size = max(1, room * room // total)
        first = round((room - size) * min(1.0, self.top / max(1, total - room)))
        return first, first + size

    def render_lines(self, crop: Region) -> list[Strip]:
        if len(self._screen) != self.size.height:
            self.draw()
        width = self.size.width
        blank = self._paint.row(StyledLine(), width)
        rows = [self._screen[y] if y < len(self._screen) else blank for y in crop.line_range]
        for wanted in self.get_line_filters():  # such as the one of NO_COLOR; no colour of ours is a terminal's own
            if not isinstance(wanted, ANSIToTruecolor):
                rows = [row.apply_filter(wanted, self.background_colors[1]) for row in rows]
        return rows if crop.column_span == (0, width) else [row.crop(*crop.column_span) for row in rows]

    # ------------------------------------------------------------------ measuring

    def lines_at(self, index: int) -> Sequence[StyledLine]:
        """The lines of a block, drawn if need be; its height is exact from here on."""
        lines = self._lines.get(index)
        if lines is not None:
            self._lines.move_to_end(index)
            return lines
        lines = self._source.lines(index, max(10, self._width - 2))
        self._lines[index] = lines
        self._held += len(lines)
        self.heights.set(index, len(lines))
        while self._held > _MOST_LINES and len(self._lines) > 1:
            _, old = self._lines.popitem(last=False)
            self._held -= len(old)
        return lines

    def _height(self, index: int) -> int:
        if not self.heights.is_exact(index):
            self.lines_at(index)
        return self.heights.height(index)

    def _arrange(self, room: int) -> list[tuple[int, int]]:
        """The rows that are seen, as block and line."""
        count = len(self._source)
        if not count:
            return []
        rows = [] if self.follow else self._rows_from(*self._anchor, room)
        if len(rows) < room:
            self._anchor = self._back(count - 1, self._height(count - 1), room)
            rows = self._rows_from(*self._anchor, room)
            self.follow = True
        elif rows:
            self._anchor = rows[0]
        return rows

    def _rows_from(self, index: int, offset: int, room: int) -> list[tuple[int, int]]:
        rows: list[tuple[int, int]] = []
        count = len(self._source)
        index = min(index, count - 1)
        offset = max(0, min(offset, self._height(index) - 1))
        while index < count and len(rows) < room:
            rows += [(index, line) for line in range(offset, min(self._height(index), offset + room - len(rows)))]
            index, offset = index + 1, 0
        return rows

    def _back(self, index: int, offset: int, lines: int) -> tuple[int, int]:
        """The place `lines` lines above a place."""
        while lines > offset and index > 0:
            lines -= offset
            index -= 1
            offset = self._height(index)
        return index, max(0, offset - lines)

    @property
    def top(self) -> int:
        """The first line that is seen, counted from the first of all; exact as far as all above is measured."""
        index, offset = self._anchor
        return self.heights.start(min(index, len(self.heights))) + offset

    @property
    def seen(self) -> list[tuple[int, int]]:
        """The rows that are seen, as block and line."""
        return self._rows

    # ------------------------------------------------------------------ moving

    def move(self, lines: int) -> None:
        """Scroll by so many lines, up where they are negative."""
        index, offset = self._anchor
        if not len(self._source):
            return
        if lines < 0:
            self.follow = False
            self._anchor = self._back(index, offset, -lines)
        else:
            place, last = offset + lines, len(self._source) - 1
            while index < last and place >= self._height(index):
                place -= self._height(index)
                index += 1
            self._anchor = index, place
        self.draw()
        if (
            lines > 0
            and self._rows
            and self._rows[-1] == (len(self._source) - 1, self._height(len(self._source) - 1) - 1)
        ):
            self.follow = True

    def go_to(self, index: int, line: int = 0, above: int = 0) -> None:
        """Have a line of a block seen first, or so many lines below the first row."""
        self.follow = False
        self._anchor = self._back(index, line, above) if above else (index, line)
        self.draw()

    def show(self, index: int, line: int = 0) -> None:
        """Have a line of a block in sight, moving no more than is needed."""
        if (index, line) in self._rows:
            self.draw()
            return
        first = self._rows[0] if self._rows else (0, 0)
        self.go_to(index, line, above=0 if (index, line) < first else max(0, self.room - 4))

    def go_to_top(self) -> None:
        self.go_to(0, 0)

    def go_to_end(self) -> None:
        """Show the end, and keep it in sight."""
        self.follow = True
        self.draw()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-_WHEEL)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(_WHEEL)

    def on_focus(self) -> None:
        self.wake()

    def on_blur(self) -> None:
        self.wake()


def _regions(rows: Sequence[int], width: int) -> list[Region]:
    """Neighbouring rows as one region each."""
    found: list[list[int]] = []
    for row in rows:
        if found and found[-1][1] == row:
            found[-1][1] = row + 1
        else:
            found.append([row, row + 1])
    return [Region(0, start, width, end - start) for start, end in found]
