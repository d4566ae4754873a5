"""Finding words in very many texts: one by one from the last, a slice of time at once, so that keys are never kept
waiting."""

import bisect
import time
from collections.abc import Callable

_AT_ONCE = 64


class Search:
    """The texts in which `query` stands (letter case apart), in `found`, by index. `text_of` gives a text."""

    def __init__(self, count: int, text_of: Callable[[int], str], query: str) -> None:
        self.query = query
        self.found: list[int] = []
        self._text_of = text_of
        self._low = query.casefold()
        self._next = count - 1 if query else -1

    @property
    def done(self) -> bool:
        """Whether every text was looked at."""
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
