"""A list of rows with a cursor, in groups, filtered by a few letters; only what is seen is drawn."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct
from rich.cells import set_cell_size
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from codewhale.display.palette import Palette
from codewhale.display.text import Span, Spans, cells, fit, flat
from codewhale.tui.paint import CURSOR, Styles
from codewhale.tui.widgets import Grown

MOST_LETTERS = 100
_SEARCHED = 400
_LETTER, _RUN, _BEGINNING, _WHOLE = 4, 8, 10, 30
MOST_ROWS = 5000
MOST_SHOWN = 500
_GAP = 2
# The column of names that have a sentence; a longer name pushes its own sentence aside, which keeps some columns.
_NAME, _LEAST = 28, 16
_SENTENCE = 72


class FuzzyMatch(Struct, frozen=True):
    """How well a text fits (higher is better), and where its letters stand."""

    score: int
    places: tuple[int, ...]


def find(sought: str, text: str, beside: str = "") -> FuzzyMatch | None:
    """Where the letters of all words of `sought` stand in the first 400 characters of `text`, whatever their case; a
    word may stand whole in what is said `beside` it instead. None where one does neither. An empty search fits
    everything with score 0."""
    low, other = _folded(text[:_SEARCHED]), _folded(beside[:_SEARCHED])
    score, places = 0, set[int]()
    for word in _folded(sought[:MOST_LETTERS]).split():
        spots = _spots(word, low)
        if not spots and word not in other:
            return None
        score += _score(spots, low) if spots else len(word)
        places.update(spots)
    return FuzzyMatch(score - len(low) // 20, tuple(sorted(places)))


def _folded(text: str) -> str:
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _spots(word: str, low: str) -> range | list[int]:
    """The best places of a word: together, at a beginning if it can be, else the shortest stretch that ends first."""
    together = _together(word, low)
    if together >= 0:
        return range(together, together + len(word))
    end = -1
    for letter in word:
        end = low.find(letter, end + 1)
        if end < 0:
            return []
    spots = []
    for letter in reversed(word):
        end = low.rfind(letter, 0, end + 1)
        spots.append(end)
        end -= 1
    return spots[::-1]


def _together(word: str, low: str) -> int:
    first = at = low.find(word)
    while at > 0:
        if _begins(at, low):
            return at
        at = low.find(word, at + 1)
    return first if at < 0 else at


def _begins(at: int, low: str) -> bool:
    return at == 0 or not low[at - 1].isalnum()


def _score(spots: Iterable[int], low: str) -> int:
    score, last = 0, -2
    for spot in spots:
        score += _LETTER + (_RUN if spot == last + 1 else 0) + (_BEGINNING if _begins(spot, low) else 0)
        last = spot
    whole = isinstance(spots, range) and _begins(spots.start, low)
    return score + (_WHOLE if whole else 0)


class Item(Struct, frozen=True):
    """A row: `key` tells it from all others and `value` is what it stands for. `mark` is one character before the
    `label`, in `tone`; `detail` is one short sentence, `side` the columns at the right, the first of them the last to
    go where there is no room; `more` is searched but not shown."""

    key: str
    label: str
    detail: str = ""
    group: str = ""
    mark: str = ""
    tone: str = "muted"
    more: str = ""
    value: Any = None
    side: tuple[str, ...] = ()


class RowMatch(Struct, frozen=True):
    """A row that fits, and where the letters stand in its label as it is shown."""

    item: Item
    label: str
    score: int = 0
    places: tuple[int, ...] = ()


def unranked(items: Sequence[Item]) -> list[RowMatch]:
    """Rows as they are, whatever is sought."""
    return [RowMatch(item, flat(item.label)) for item in items]


def ranked(items: Sequence[Item], sought: str, most: int = MOST_SHOWN) -> list[RowMatch]:
    """The rows that fit, best first within their group and the group of the best first; all in their order where
    nothing is sought. At most `most`."""
    if not sought.strip():
        return unranked(items[:most])
    found: list[RowMatch] = []
    for item in items[:MOST_ROWS]:
        label = flat(item.label)
        fits = find(sought, label, " ".join((item.detail, item.more, *item.side)))
        if fits is not None:
            found.append(RowMatch(item, label, fits.score, fits.places))
    best: dict[str, int] = {}
    for match in found:
        best[match.item.group] = max(best.get(match.item.group, match.score), match.score)
    found.sort(key=lambda match: (-best[match.item.group], match.item.group, -match.score))
    return found[:most]


class RowList(ScrollView, can_focus=True):
    """The rows. The cursor stands on one wherever there is one."""

    DEFAULT_CSS = """
    RowList { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    """

    class Moved(Message):
        """The cursor stands on another row (or on none)."""

        def __init__(self, item: Item | None) -> None:
            super().__init__()
            self.item = item

    class Taken(Message):
        """A row was clicked."""

        def __init__(self, item: Item) -> None:
            super().__init__()
            self.item = item

    def __init__(self, palette: Palette, id: str | None = None) -> None:
        super().__init__(id=id)
        self._colours = Styles(palette)
        self._matches: list[RowMatch] = []
        self._lines: list[int | str] = []
        self._cursor = 0
        # Columns of names that have a sentence, of sentences, of names alone, and of each side column. They only grow,
        # so that the columns stand still while rows are filtered.
        self._wide = [0, 0, 0]
        # Columns before the names: for the cursor, and for marks where rows have one.
        self._edge = len(CURSOR)

    # -------------------------------------------------------------- rows

    def show(self, matches: Sequence[RowMatch], keep: str = "") -> None:
        """Show these; the cursor goes to the row `keep`, else to the first."""
        self._matches = list(matches)
        self._lines = []
        group = ""
        for at, match in enumerate(self._matches):
            if match.item.group != group:
                group = match.item.group
                self._lines += [flat(group)] if at == 0 else ["", flat(group)]
            self._lines.append(at)
            self._widen(match)
        kept = (at for at, match in enumerate(self._matches) if keep and match.item.key == keep)
        self._cursor = next(kept, 0)
        self.virtual_size = Size(max(1, self.size.width - 1), len(self._lines))
        self._see()
        self.call_after_refresh(self._see, True)
        self.post_message(self.Moved(self.current))
        self.post_message(Grown())

    def _widen(self, match: RowMatch) -> None:
        name, item = cells(match.label), match.item
        sizes = [name, cells(flat(item.detail)), 0] if item.detail else [0, 0, name]
        sizes += [cells(text) for text in item.side]
        self._wide = [max(pair) for pair in zip_longest(self._wide, sizes, fillvalue=0)]
        self._edge = len(CURSOR) * 2 if item.mark else self._edge

    @property
    def widest(self) -> int:
        """The columns that the rows would take with room for all."""
        name, detail, alone, *side = self._wide
        widest = max(min(name, _NAME) + _GAP + min(detail, _SENTENCE) if detail else 0, alone)
        return self._edge + widest + sum(size + _GAP for size in side) + 1

    def lines_at(self, width: int) -> int:
        """The lines that the rows and their headings take."""
        return len(self._lines)

    def _columns(self) -> tuple[int, int, list[int]]:
        """The columns of a name and of a sentence, and of the side columns for which there is room."""
        name, detail, alone, *side = self._wide
        room = max(4, self.size.width - 1 - self._edge)
        least = min(name, _NAME) + _GAP + min(detail, _LEAST) if detail else 0
        while side and sum(size + _GAP for size in side) + max(least, min(alone, _NAME // 2)) > room:
            side.pop()
        room = max(4, room - sum(size + _GAP for size in side))
        name = max(min(name, _NAME, room - _GAP - _LEAST), min(name, room - _GAP - detail))
        return (name, room - name - _GAP, side) if detail and name > 3 else (room, 0, side)

    @property
    def current(self) -> Item | None:
        return self._matches[self._cursor].item if self._matches else None

    @property
    def matches(self) -> list[RowMatch]:
        """The rows that are shown, and where what was sought stands in them."""
        return list(self._matches)

    @property
    def items(self) -> list[Item]:
        return [match.item for match in self._matches]

    def move(self, by: int) -> None:
        """Move the cursor, to the ends at most; by one it goes round."""
        count = len(self._matches)
        if not count:
            return
        target = self._cursor + by
        self._cursor = target % count if abs(by) == 1 else min(count - 1, max(0, target))
        self._see()
        self.post_message(self.Moved(self.current))

    def cut(self, item: Item) -> list[str]:
        """What a row has not enough room for: its name, its sentence."""
        name, sentence, _ = self._columns()
        label, said = flat(item.label), flat(item.detail)
        wide = name + (_GAP + sentence if sentence else 0)
        most = max(name, wide - _GAP - _LEAST) if said and sentence else wide
        left = max(0, sentence - max(0, min(cells(label), most) - name))
        return [text for text, room in ((label, most), (said, left)) if cells(text) > room]

    def page(self) -> int:
        """How many rows a page has."""
        return max(1, self.size.height - 1)

    def repaint(self, palette: Palette) -> None:
        self._colours = Styles(palette)
        self.refresh()

    # -------------------------------------------------------------- drawing

    def _see(self, anew: bool = False) -> None:
        """Scroll so that the cursor, and the heading right above it, is seen; rows that are shown `anew`, or have more
        room, from the first on where that shows it."""
        if not self._matches:
            self.refresh()
            return
        line = self._lines.index(self._cursor)
        top = line - 1 if line and isinstance(self._lines[line - 1], str) else line
        at, height = self.scroll_offset.y, max(1, self.size.height)
        if anew and line < height:
            self.scroll_to(y=0, animate=False, force=True)
        elif top < at:
            self.scroll_to(y=top, animate=False, force=True)
        elif line >= at + height:
            self.scroll_to(y=line - height + 1, animate=False, force=True)
        self.refresh()

    def on_resize(self) -> None:
        self.virtual_size = Size(max(1, self.size.width - 1), len(self._lines))
        self._see(anew=True)

    def on_click(self, event: Any) -> None:
        at = self.scroll_offset.y + event.y
        line = self._lines[at] if 0 <= at < len(self._lines) else ""
        if isinstance(line, int):
            self._cursor = line
            self.refresh()
            self.post_message(self.Taken(self._matches[line].item))

    def render_line(self, y: int) -> Strip:
        at, width = self.scroll_offset.y + y, self.size.width
        if not 0 <= at < len(self._lines):
            return self._colours.strip((), width)
        line = self._lines[at]
        if isinstance(line, str):
            return self._colours.strip(((fit(line, width), "bold muted"),), width)
        chosen = line == self._cursor
        mark, *rest = _drawn(self._matches[line], *self._columns())
        edge = CURSOR if chosen else " " * len(CURSOR)
        drawn: Spans = ((edge, "text"), *((mark,) if self._edge > len(CURSOR) else ()), *rest)
        if chosen:
            drawn = tuple((text, "selection_text on:selection") for text, _ in drawn)
        return self._colours.strip(drawn, width, "selection_text on:selection" if chosen else "text")


def _drawn(match: RowMatch, name: int, sentence: int, side: Sequence[int]) -> Spans:
    """A row in columns: its mark, its name with what was sought, its sentence, what stands at the right."""
    item, wide = match.item, name + (_GAP + sentence if sentence else 0)
    if not item.detail or not sentence:
        name, sentence = wide, 0
    elif cells(match.label) > name:
        name = min(cells(match.label), max(name, wide - _GAP - _LEAST))
        sentence = wide - _GAP - name
    label = fit(match.label, name)
    lit = [at for at in match.places if at < len(label)]
    spans: list[Span] = [(fit(flat(item.mark, 1), 1).ljust(1) + " ", item.tone), *_lit(label, lit)]
    spans.append((" " * (name - cells(label)), "text"))
    if sentence:
        spans.append((" " * _GAP + set_cell_size(fit(flat(item.detail), sentence), sentence), "muted"))
    for size, text in zip_longest(side, item.side[: len(side)], fillvalue=""):
        shown = fit(flat(str(text)), int(size))
        spans.append((" " * (_GAP + int(size) - cells(shown)) + shown, "muted"))
    return tuple(spans)


def _lit(label: str, places: Sequence[int]) -> list[Span]:
    """A label with the letters that were sought in another tone."""
    spans: list[Span] = []
    lit = set(places)
    for at, char in enumerate(label):
        tone = "bold accent" if at in lit else "text"
        if spans and spans[-1][1] == tone:
            spans[-1] = (spans[-1][0] + char, tone)
        else:
            spans.append((char, tone))
    return spans
