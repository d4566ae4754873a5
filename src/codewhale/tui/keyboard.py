"""What the terminal sends, as keys and pastes. A paste is one event whatever stands in it: no byte of it is ever taken
for a key, and bytes that are no UTF-8 do not end the reading."""

import codecs
import os
import re
import selectors
from collections.abc import Callable, Generator, Iterable
from threading import Event

from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END as END
from textual._xterm_parser import BRACKETED_PASTE_START as START
from textual._xterm_parser import XTermParser
from textual.message import Message

# What is pasted beyond this is cut off.
MOST_PASTED = 20_000_000
_READ_BYTES = 1 << 16
_POLL_SECONDS = 0.1
# Behind Escape these are keys of their own: no terminal sends them with Alt, and Ctrl+C must never be lost.
_CONTROL = r"[\x01-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f]"
_APART = re.compile(rf"(?<=\x1b)(?={_CONTROL})")
# Escape before these is how a terminal without the kitty protocol sends them with Alt. The parser waits whether more
# belongs to them, or takes them for what some Mac programs send: other keys, other letters, Enter alone.
_ALT = re.compile(r"(?<=\x1b)[a-z0-9=\r-]")
# Keys with modifiers as xterm writes them.
_MODIFIED = re.compile(r"\x1b\[27;(\d+);(\d+)~")


class Keyboard(XTermParser):
    """Textual's parser for keys; pastes are taken out before it sees them."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted: list[str] | None = None
        self._size = 0
        # The end of what was passed on or pasted: where a mark may begin that is not whole yet.
        self._before = ""

    def feed(self, data: str) -> Iterable[Message]:
        """The events of more input; "" ends it."""
        if not data:
            yield from super().feed(data)
            return
        while data:
            if self._pasted is None:
                data = yield from self._keys(data)
            else:
                data = yield from self._paste(data)

    def _keys(self, data: str) -> Generator[Message, None, str]:
        """Pass on what stands before a paste; returns what is left."""
        known = len(self._before)
        at = (self._before + data).find(START)
        if at < 0:
            before, self._before = self._before, (self._before + data)[-(len(START) - 1) :]
            yield from self._pass(before, data)
            return ""
        if at < known:
            # The parser has seen the beginning of the mark: it is given an empty paste.
            rest = START[known - at :] + END
            yield from (event for event in XTermParser.feed(self, rest) if not isinstance(event, events.Paste))
        elif at > known:
            yield from self._pass(self._before, data[: at - known])
        self._before, self._pasted, self._size = "", [], 0
        return data[at - known + len(START) :]

    def _pass(self, before: str, data: str) -> Iterable[Message]:
        """Let the parser have what is no paste. It waits behind an Escape for what may belong to it, so it is told
        where nothing does."""
        if self._timeout_time is not None and _APART.search(before[-1:] + data[:1]):
            yield from self._no_more()
        data = _with_alt(data, self._timeout_time is not None and before.endswith("\x1b"))
        first, *others = _APART.split(data)
        yield from super().feed(first)
        for piece in others:
            yield from self._no_more()
            yield from super().feed(piece)

    def _no_more(self) -> Iterable[Message]:
        self._timeout_time = 0.0
        yield from self.tick()

    def _paste(self, data: str) -> Generator[Message, None, str]:
        """Keep what is pasted; its end makes an event of it. Returns what is left."""
        assert self._pasted is not None
        data = self._before + data
        text, mark, rest = data.partition(END)
        if not mark:
            held = next((n for n in range(len(END) - 1, 0, -1) if data.endswith(END[:n])), 0)
            self._before = data[len(data) - held :]
            self._keep(data[: len(data) - held])
            return ""
        self._keep(text)
        whole = "".join(self._pasted).replace("\0", "")
        self._before, self._pasted = "", None
        yield events.Paste(whole)
        return rest

    def _keep(self, text: str) -> None:
        assert self._pasted is not None
        self._pasted.append(text[: max(0, MOST_PASTED - self._size)])
        self._size += len(text)


def _with_alt(data: str, escaped: bool) -> str:
    """The same keys with Alt and other modifiers in the words of the kitty protocol, which the parser takes as they are
    meant. `escaped` tells that an Escape before it still waits for what may belong to it."""
    before = "\x1b" if escaped else ""
    known = _ALT.sub(lambda key: f"[{ord(key[0])};3u", before + data)
    return _MODIFIED.sub("\x1b[\\2;\\1u", known)[len(before) :]


def read_keys(fd: int, ended: Event, take: Callable[[Message], None], debug: bool = False) -> None:
    """Read a terminal until `ended`, `take` every event. Raises OSError when the terminal is gone."""
    parser = Keyboard(debug)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while not ended.is_set():
            if selector.select(_POLL_SECONDS):
                data = os.read(fd, _READ_BYTES)
                if not data:
                    raise OSError("the terminal was closed")
                text = decoder.decode(data)
                for event in parser.feed(text) if text else ():
                    take(event)
            for event in parser.tick():
                take(event)
