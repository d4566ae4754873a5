"""Searching in a pane: the line that is typed into, the blocks where it stands, and going from one to the next."""

import importlib
from typing import TYPE_CHECKING, Any

from codewhale.display.words import Words
from codewhale.tui.transcript.pane import Pane
from codewhale.tui.transcript.search import Search

if TYPE_CHECKING:
    from codewhale.tui.transcript.searchline import SearchLine

_LINE = "codewhale.tui.transcript.searchline:SearchLine"
_SLICE = 0.012


class Finding(Pane):
    """A pane that can be searched."""

    _words: Words
    _search: Search | None = None
    _line: "SearchLine | None" = None
    _at: tuple[int, int] = (-1, -1)
    _sought = False

    def search_for(self, query: str) -> Search:
        """The search through what is shown."""
        raise NotImplementedError

    def reveal(self, index: int) -> None:
        """Show all of a block, for what is sought may be folded away."""

    @property
    def room(self) -> int:
        """Lines that are seen above the search line."""
        return self.size.height - (self._line is not None)

    def action_find(self) -> None:
        """Type what is to be found."""
        if self._line is None:
            module, _, name = _LINE.partition(":")
            make: Any = getattr(importlib.import_module(module), name)
            line: SearchLine = make(self._words, self)
            self._line = line
            self.mount(line)
            self.draw()
        self.call_after_refresh(self._line.focus)

    def close_search(self) -> bool:
        """Search no more; whether anything was searched for."""
        line, self._line = self._line, None
        had = line is not None or self._search is not None
        self._search, self._at, self.query_text = None, (-1, -1), ""
        if line is not None:
            line.remove()
        if had:
            self.draw()
        return had

    def seek(self, query: str) -> None:
        """Find these words, the nearest place at or above what is seen last."""
        self.query_text = query
        self._search = self.search_for(query) if query else None
        self._at, self._sought = (-1, -1), bool(query)
        self.wake()

    def scan(self) -> bool:
        """Look on for a slice of time; whether there is more to look through."""
        search = self._search
        if search is None:
            return False
        if not search.done:
            search.scan(_SLICE)
        if self._sought and search.found:
            self._sought = False
            self._go(search.near(self.seen[-1][0] + 1 if self.seen else 0, -1), 1)
        self._tell_line()
        return not search.done

    def action_find_next(self) -> None:
        """The next place."""
        self._step(1)

    def action_find_previous(self) -> None:
        """The place before."""
        self._step(-1)

    def _step(self, direction: int) -> None:
        search = self._search
        if search is None or not search.found:
            return
        index, line = self._at
        inside = self._places(index) if 0 <= index < len(self.heights) else []
        rest = [place for place in inside if (place - line) * direction > 0]
        if rest:
            self._show_place(index, rest[0] if direction > 0 else rest[-1])
        else:
            self._go(search.near(index, direction), direction)
        self._tell_line()

    def _go(self, index: int, direction: int) -> None:
        """Show the first place in a block, or the last one; open it where it is folded away."""
        if index < 0:
            return
        places = self._places(index)
        if not places:
            self.reveal(index)
            places = self._places(index)
        self._show_place(index, (places[0] if direction > 0 else places[-1]) if places else 0)

    def _show_place(self, index: int, line: int) -> None:
        self._at, self.cursor = (index, line), index
        self.show(index, line)

    def _places(self, index: int) -> list[int]:
        low = self.query_text.casefold()
        return [at for at, line in enumerate(self.lines_at(index)) if low in line.text.casefold()]

    def _tell_line(self) -> None:
        if self._line is None or self._search is None:
            return
        found, at = len(self._search.found), self._search.place(self._at[0])
        if not found:
            text = self._words("transcript.search_none") if self._search.done else ""
        else:
            key = "transcript.search_some" if self._search.done else "transcript.search_more"
            text = self._words(key, at=at, n=found)
        self._line.say(text)
