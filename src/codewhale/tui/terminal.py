"""The terminal as the interface drives it. What it sends becomes keys and pastes; writing never blocks whoever draws,
frames are left out while it is slow, and one that is gone ends the session quietly."""

import asyncio
import codecs
import contextlib
import os
import re
import select
import selectors
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from threading import Event
from typing import Any, Protocol

from rich.cells import cell_len
from textual import events
from textual._xterm_parser import BRACKETED_PASTE_END as END
from textual._xterm_parser import BRACKETED_PASTE_START as START
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

# What is pasted beyond this is cut off.
MOST_PASTED = 20_000_000
_READ_BYTES = 1 << 16
_POLL_SECONDS = 0.1
# A process that sends itself the signal has stopped by then.
_STOPPING_SECONDS = 0.05
# Behind Escape these are keys of their own: no terminal sends them with Alt, and Ctrl+C must never be lost.
_CONTROL_KEYS = r"[\x01-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f]"
_APART = re.compile(rf"(?<=\x1b)(?={_CONTROL_KEYS})")
# Escape before these is how a terminal without the kitty protocol sends them with Alt. The parser waits whether more
# belongs to them, or takes them for what some Mac programs send: other keys, other letters, Enter alone.
_ALT = re.compile(r"(?<=\x1b)[a-z0-9=\r-]")
# What a terminal says of itself (a colour, its name, its size): no keys, though a Ctrl+G may end it.
_STRING = r"(?:\]\d|P[>!01]|_G)[^\x07\x1b]{0,4096}"
_REPORT = re.compile(
    rf"\x1b(?:{_STRING}(?:\x07|\x1b\\)|\[[?>=][\d;:]*[ -#%-/]?[@-~]|\[\d+(?:;\d+)*n|\[(?:[12]|[3-9];\d+;\d+)t)"
)
# The end of a read that may go on in the next one, and how long that is waited for where no keyboard writes such.
_BEGUN = re.compile(rf"\x1b(?:(?P<string>{_STRING}\x1b?)|\[[0-?]*[ -/]*|[\]P_O])?\Z")
_STRING_SECONDS = 1.0
# Keys with modifiers as xterm writes them.
_MODIFIED = re.compile(r"\x1b\[27;(\d+);(\d+)~")
# A terminal that has this many characters still to take is not sent another frame.
BEHIND = 1 << 16
# At the end it is given so long to take what is left.
DRAIN_SECONDS = 2.0
_MOUSE_MODES = (1000, 1003, 1015, 1006)
# Characters of which terminals disagree how many columns they take: whatever can combine, and all emoji.
_UNSURE = re.compile("[\u0300-\u1fff\u200b-\u200f\ufe00-\ufe0f\U0001f000-\U0001faff\U000e0020-\U000e01ef]")
_PLACED = re.compile(r"(\x1b\[\d+;\d+H)([^\x1b]*(?:\x1b(?!\[\d+;\d+H)[^\x1b]*)*)")
_CONTROL = re.compile(r"\x1b\[[0-?]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x1f]")


class Keyboard(XTermParser):
    """Textual's parser for keys. It is given no paste, nothing that a terminal says of itself, and no half of what a
    terminal sends while the other half may still come."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted: list[str] | None = None
        self._size = 0
        self._held = ""
        self._since = 0.0

    def feed(self, data: str) -> Iterable[Message]:
        """The events of more input; "" ends it."""
        if not data:
            yield from self._pass(self._held)
            yield from super().feed("")
            return
        if not self._held:
            self._since = time.monotonic()
        data, self._held = self._held + data, ""
        while data:
            if self._pasted is None:
                data = yield from self._keys(data)
            else:
                data = yield from self._paste(data)

    def tick(self) -> Iterable[Message]:
        """The events of what nothing more belongs to."""
        begun = _BEGUN.match(self._held)
        if begun is None:
            yield from super().tick()
        elif self._pasted is None:
            seconds = _STRING_SECONDS if begun["string"] else ESCAPE_DELAY
            if time.monotonic() >= self._since + seconds:
                held, self._held = self._held, ""
                yield from self._pass(held)

    def _keys(self, data: str) -> Generator[Message, None, str]:
        """Pass on what stands before a paste; returns what is left."""
        data, mark, rest = data.partition(START)
        data = data if mark else self._hold(data)
        *pieces, last = _APART.split(_with_alt(_REPORT.sub("", data)))
        for piece in pieces:
            yield from self._pass(piece)
        if mark:
            yield from self._pass(last)
            self._pasted, self._size = [], 0
        elif last:
            yield from super().feed(last)
        return rest

    def _pass(self, data: str) -> Iterable[Message]:
        """Let the parser have that to which nothing more belongs: it would wait behind an Escape."""
        if data:
            yield from super().feed(data)
        if self._timeout_time is not None:
            self._timeout_time = 0.0
            yield from super().tick()

    def _hold(self, data: str) -> str:
        """Keep back what may go on in the next read; the rest."""
        begun = _BEGUN.search(data)
        if begun is None:
            return data
        self._held = begun[0]
        return data[: begun.start()]

    def _paste(self, data: str) -> Generator[Message, None, str]:
        """Keep what is pasted; its end makes an event of it. Returns what is left."""
        assert self._pasted is not None
        text, mark, rest = data.partition(END)
        if not mark:
            self._keep(self._hold(text))
            return ""
        self._keep(text)
        whole = "".join(self._pasted).replace("\0", "")
        self._pasted = None
        yield events.Paste(whole)
        return rest

    def _keep(self, text: str) -> None:
        assert self._pasted is not None
        self._pasted.append(text[: max(0, MOST_PASTED - self._size)])
        self._size += len(text)


def _with_alt(data: str) -> str:
    """The same keys with Alt and other modifiers in the words of the kitty protocol, which the parser takes as they are
    meant."""
    return _MODIFIED.sub("\x1b[\\2;\\1u", _ALT.sub(lambda key: f"[{ord(key[0])};3u", data))


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
            else:  # nothing more has come: only then is what was held all there is, however late it is looked at
                for event in parser.tick():
                    take(event)


class Sink(Protocol):
    """What is written to. Both raise OSError once it is gone."""

    def write(self, text: str, /) -> int: ...

    def flush(self) -> None: ...


class Writer(threading.Thread):
    """Writes to a file in the order in which it was told, in a thread of its own. `drained` and `lost` are called from
    there: when what held frames back is out, and once when the file cannot be written any more."""

    def __init__(self, file: Sink, drained: Callable[[], None], lost: Callable[[], None]) -> None:
        super().__init__(daemon=True, name="terminal-output")
        self._file = file
        self._drained = drained
        self._lost = lost
        self._waiting: deque[str] = deque()
        self._size = 0
        self._skipped = False
        self._gone = False
        self._ended = False
        self._change = threading.Condition()

    @property
    def behind(self) -> bool:
        """Whether another frame had better wait; then `drained` will be called."""
        with self._change:
            self._skipped = self._skipped or self._size > BEHIND
            return self._size > BEHIND

    def write(self, text: str) -> None:
        with self._change:
            if not self._gone and text:
                self._waiting.append(text)
                self._size += len(text)
                self._change.notify()

    def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Write what is left, for at most so many seconds."""
        with self._change:
            self._ended = True
            self._change.notify()
        self.join(seconds)

    def run(self) -> None:
        while (text := self._next()) is not None:
            try:
                self._file.write(text)
                self._file.flush()
            except (OSError, ValueError):
                self._give_up()
                return
            self._count(len(text))

    def _next(self) -> str | None:
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._ended)
            return self._waiting.popleft() if self._waiting else None

    def _count(self, written: int) -> None:
        with self._change:
            self._size -= written
            caught_up = self._skipped and not self._size
            if caught_up:
                self._skipped = False
        if caught_up:
            self._drained()

    def _give_up(self) -> None:
        with self._change:
            self._gone = True
            self._waiting.clear()
            self._size = 0
        self._lost()


class StandardOut:
    """Standard output as a file of text: whole writes, whatever its descriptor does."""

    def __init__(self, fd: int = 1, encoding: str = "utf-8") -> None:
        self._fd = fd
        self._encoding = encoding

    def fileno(self) -> int:
        return self._fd

    def flush(self) -> None:
        """Nothing is held back."""

    def write(self, text: str) -> int:
        """Write all of it; waits while the terminal takes nothing. Raises OSError."""
        data = memoryview(text.encode(self._encoding, "replace"))
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                select.select([], [self._fd], [])
        return len(text)


def cleared(frame: str) -> str:
    """A frame that leaves nothing of the one before: a row whose width a terminal may see otherwise is erased (as many
    columns as it should take) before it is written, for where it comes out shorter something old would stay."""
    return _PLACED.sub(_erased, frame) if _UNSURE.search(frame) else frame


def _erased(row: re.Match[str]) -> str:
    if not _UNSURE.search(row[2]):
        return row[0]
    return f"{row[1]}\x1b[{max(1, cell_len(_CONTROL.sub('', row[2])))}X{row[2]}"


class Terminal(LinuxDriver):
    """Textual's driver on standard output, with a writer that never blocks. The app it serves has `drained()` and
    `hung_up()`."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._writer: Writer | None = None

    @property
    def behind(self) -> bool:
        """Whether the terminal is too slow for another frame at the moment."""
        return self._writer is not None and self._writer.behind

    def write(self, data: str) -> None:
        if self._writer is not None:
            self._writer.write(cleared(data))

    def start_application_mode(self) -> None:
        out = StandardOut(encoding=getattr(sys.__stdout__, "encoding", None) or "utf-8")
        self._writer = Writer(out, self._from_thread("drained"), self._from_thread("hung_up"))
        self._writer.start()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        # Textual's own handler can be stopped by the next signal between reading a size and telling it, and so tell an
        # old one last; one that the loop calls cannot.
        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, self._resized)

    def _resized(self) -> None:
        if not self._in_band_window_resize:
            size = Size(*self._get_terminal_size())
            self._app.post_message(events.Resize(size, size))

        if not self._reads:  # continued in the background: it was stopped again
            self.close()

    @property
    def _reads(self) -> bool:
        return self._key_thread is not None and self._key_thread.is_alive()

    def suspend(self, note: str = "") -> None:
        """Give the terminal back and stop, with all that a shell has started as one job, until it is continued. Where
        no shell could continue it, the system does not stop it."""
        self.suspend_application_mode()
        self._must_signal_resume = True
        StandardOut().write(f"{note}\n" if note else "")
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(0, signal.SIGTSTP)
        time.sleep(_STOPPING_SECONDS)
        signal.signal(signal.SIGTSTP, self._sigtstp_application)
        self._sigcont_application()

    def _sigtstp_application(self, *_: object) -> None:
        if self._auto_restart:
            self.suspend()
        else:  # an editor has the terminal, and was told as well
            os.kill(os.getpid(), signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        if self._auto_restart and not self._reads:
            self.resume_application_mode()

    def close(self) -> None:
        super().close()
        if self._writer is not None:
            self._writer.stop()
            self._writer = None

    def catch_mouse(self, on: bool) -> None:
        """Have the terminal report the mouse, or leave it to select text."""
        self._mouse = on
        end = "h" if on else "l"
        self.write("".join(f"\x1b[?{mode}{end}" for mode in _MOUSE_MODES))

    def run_input_thread(self) -> None:
        """Read keys and pastes until the driver ends. Raises OSError when the terminal is gone."""
        read_keys(self.fileno, self.exit_event, self.process_message, self._debug)

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except OSError:
            self._from_thread("hung_up")()

    def _from_thread(self, name: str) -> Callable[[], None]:
        """A call of the app's method of this name from another thread; nothing where its loop is gone."""

        def call() -> None:
            loop = self._app._loop
            if loop is not None:
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(getattr(self._app, name))

        return call
