"""What every screen is handed: the words, the colours, and a way to ask and to act. One for each app."""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.protocol.ops import Op, Query

RECENT_MOST = 8


class Desk:
    """`session` is the one at hand ("" before there is one), `keys` the person's own keys by the id of their row;
    `recent` are the choices made last in the palette, the latest first."""

    def __init__(
        self,
        words: Words,
        palette: Palette,
        query: Callable[[Query], Awaitable[Any]],
        submit: Callable[[Op], Awaitable[Any]],
        keys: Mapping[str, str],
    ) -> None:
        self.words = words
        self.palette = palette
        self.query = query
        self.submit = submit
        self.keys = keys
        self.session = ""
        self.workspace = ""
        self.recent: deque[str] = deque(maxlen=RECENT_MOST)
