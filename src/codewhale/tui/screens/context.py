"""What every screen is handed (the words, the colours, a way to ask and to act), and the outcomes that the app carries
out."""

import time
from collections import deque
from collections.abc import Callable, Mapping

from msgspec import Struct

from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.protocol.requests import Ask, Do

RECENT_MOST = 8


class ScreenContext:
    """`session` is the one at hand ("" before there is one), `keys` the person's own keys by the id of their row;
    `recent` are the choices made last in the palette, the latest first; `typed` what was typed into a dialog that was
    left before its end."""

    def __init__(
        self,
        words: Words,
        palette: Palette,
        query: Ask,
        submit: Do,
        keys: Mapping[str, str],
        now: Callable[[], float] = time.time,
    ) -> None:
        self.words = words
        self.palette = palette
        self.query = query
        self.submit = submit
        self.keys = keys
        self.now = now
        self.session = ""
        self.editor, self.pager = "", ""  # the command lines of the person's own programs
        self.workspace = ""
        self.typed: dict[str, str] = {}
        self.recent: deque[str] = deque(maxlen=RECENT_MOST)


class RunLine(Struct, frozen=True):
    """Run this slash command."""

    line: str


class RunAction(Struct, frozen=True):
    """Do what this row of keys.py does."""

    action: str


class OpenScreen(Struct, frozen=True):
    """Open another screen of the table."""

    name: str
    argument: str = ""


class InsertText(Struct, frozen=True):
    """Put this at the cursor of the composer."""

    text: str


class OfferText(Struct, frozen=True):
    """Put this into the composer, to be edited and sent; what stands there is put aside."""

    text: str


class OpenPath(Struct, frozen=True):
    """Open a file of the workspace in the person's editor, at a line from 1."""

    path: str
    line: int = 1


class Resume(Struct, frozen=True):
    """Go on with another session, or with a copy of it."""

    session: str
    fork: bool = False


class Connected(Struct, frozen=True):
    """A provider was connected: open a session with it. `demo` is the scripted one."""

    provider: str
    model: str = ""
    demo: bool = False


class ShowLine(Struct, frozen=True):
    """Something was done (or not): one line for the person."""

    text: str
    ok: bool = True


Outcome = RunLine | RunAction | OpenScreen | InsertText | OfferText | OpenPath | Resume | Connected | ShowLine
