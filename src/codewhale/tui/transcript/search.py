"""Searching in a pane: the line that is typed into, the blocks in which it stands, and going from one to the next."""

import bisect
import time
from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from codewhale.display.words import Words
from codewhale.tui.keys import bindings
from codewhale.tui.transcript.pane import Pane

_AT_ONCE = 64
_SLICE = 0.012


class TextSearch:
    """The texts in which `query` stands (letter case apart), in `found`, by index: looked through from the last on, a
    slice of time at once, so that keys are never kept waiting. `text_of` gives a text."""

    def __init__(self, count: int, text_of: Callable[[int], str], query: str) -> None:
        self.query = query
        self.found: list[int] = []
        self._text_of = text_of
        self._low = query.casefold()
        self._next = count - 1 if query else -1

    @property
    def done(self) -> bool:
        return self._next < 0

    def scan(self, seconds: float) -> bool:
        """Look on for about so long; whether something was found."""
        until = time.monotonic() + seconds
        earlier: list[int] = []
        while self._next >= 0:
            for index in range(self._next, max(-1, self._next - _AT_ONCE), -1):
                if self._low in self._text_of(index).casefold():
                    earlier.append(index)
            self._next -= _AT_ONCE
            if time.monotonic() > until:
                break
        self.found = earlier[::-1] + self.found
        return bool(earlier)

    def near(self, index: int, direction: int) -> int:
        """The next text behind (`direction` 1) or before (-1) `index` in which it stands, around the end; -1 for
        none."""
        if not self.found:
            return -1
        if direction > 0:
            return self.found[bisect.bisect_right(self.found, index) % len(self.found)]
        return self.found[bisect.bisect_left(self.found, index) - 1]

    def place(self, index: int) -> int:
        """Which one of those found a text is, from 1; 0 when it is none of them."""
        at = bisect.bisect_left(self.found, index)
        return at + 1 if at < len(self.found) and self.found[at] == index else 0


class PaneSearch:
    """Searches what `pane` shows. `search_for` begins a search for words; `reveal` shows all of a block, for what is
    sought may be folded away."""

    def __init__(
        self,
        pane: Pane,
        words: Words,
        search_for: Callable[[str], TextSearch],
        reveal: Callable[[int], None] = lambda index: None,
    ) -> None:
        self.pane = pane
        self.words = words
        self.search: TextSearch | None = None
        self.line: SearchLine | None = None
        self._search_for = search_for
        self._reveal = reveal
        self._at = (-1, -1)
        self._sought = False

    def open(self) -> None:
        """Type what is to be found."""
        if self.line is None:
            self.line = SearchLine(self)
            self.pane.covered = 1
            self.pane.mount(self.line)
            self.pane.draw()
        self.pane.call_after_refresh(self.line.focus)

    def close(self) -> bool:
        """Search no more; whether anything was searched for."""
        line, self.line = self.line, None
        searched = line is not None or self.search is not None
        self.search, self._at, self.pane.query_text, self.pane.covered = None, (-1, -1), "", 0
        if line is not None:
            line.remove()
        if searched:
            self.pane.draw()
        return searched

    def seek(self, query: str) -> None:
        """Find these words, the nearest place at or above what is seen last."""
        self.pane.query_text = query
        self.search = self._search_for(query) if query else None
        self._at, self._sought = (-1, -1), bool(query)
        self.pane.wake()

    def scan(self) -> bool:
        """Look on for a slice of time; whether there is more to look through."""
        search = self.search
        if search is None:
            return False
        if not search.done:
            search.scan(_SLICE)
        if self._sought and search.found:
            self._sought = False
            seen = self.pane.seen
            self._go(search.near(seen[-1][0] + 1 if seen else 0, -1), 1)
        self._say_count()
        return not search.done

    def step(self, direction: int) -> None:
        """The next place, or with -1 the one before."""
        search = self.search
        if search is None or not search.found:
            return
        index, line = self._at
        inside = self._places(index) if 0 <= index < len(self.pane.heights) else []
        rest = [place for place in inside if (place - line) * direction > 0]
        if rest:
            self._show(index, rest[0] if direction > 0 else rest[-1])
        else:
            self._go(search.near(index, direction), direction)
        self._say_count()

    def _go(self, index: int, direction: int) -> None:
        """Show the first place in a block, or the last one; open it where it is folded away."""
        if index < 0:
            return
        places = self._places(index)
        if not places:
            self._reveal(index)
            places = self._places(index)
        self._show(index, (places[0] if direction > 0 else places[-1]) if places else 0)

    def _show(self, index: int, line: int) -> None:
        self._at, self.pane.cursor = (index, line), index
        self.pane.show(index, line)

    def _places(self, index: int) -> list[int]:
        low = self.pane.query_text.casefold()
        return [at for at, line in enumerate(self.pane.lines_at(index)) if low in line.text.casefold()]

    def _say_count(self) -> None:
        if self.line is None or self.search is None:
            return
        count, at = len(self.search.found), self.search.place(self._at[0])
        if count:
            key = "transcript.search_some" if self.search.done else "transcript.search_more"
            self.line.say(self.words(key, at=at, n=count))
        else:
            self.line.say(self.words("transcript.search_none") if self.search.done else "")


class SearchLine(Widget):
    """The line below a pane into which is typed what is to be found; it finds while it is typed."""

    BINDINGS: ClassVar = bindings("search")
    DEFAULT_CSS = """
    SearchLine { dock: bottom; height: 1; layout: horizontal; background: $surface; color: $foreground; }
    SearchLine > .label { width: auto; padding: 0 1; color: $cw-accent; background: $surface; }
    SearchLine > Input { width: 1fr; border: none; height: 1; padding: 0; background: $surface; color: $foreground; }
    SearchLine > .count { width: auto; padding: 0 1; color: $cw-muted; background: $surface; }
    """

    def __init__(self, search: PaneSearch) -> None:
        super().__init__()
        self._search = search
        self._count = Static("", markup=False, classes="count")
        self._input = Input(compact=True, max_length=200)

    def compose(self) -> ComposeResult:
        yield Static(self._search.words("transcript.search"), markup=False, classes="label")
        yield self._input
        yield self._count

    def focus(self, scroll_visible: bool = True) -> "SearchLine":
        self._input.focus(scroll_visible)
        return self

    def say(self, text: str) -> None:
        """How many places there are."""
        self._count.update(Content(text))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._search.seek(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_accept()

    def action_accept(self) -> None:
        """Move about from the place that was found."""
        self._search.pane.focus()

    def action_later(self) -> None:
        self._search.step(1)

    def action_earlier(self) -> None:
        self._search.step(-1)

    def action_close(self) -> None:
        self._search.close()
        self._search.pane.focus()
