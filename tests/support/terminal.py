"""The program on a terminal of its own: a pseudo-terminal whose other end is an emulator. What is on the screen can be
waited for, keys can be typed, and every byte that reached the terminal is kept."""

import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyte
from wcwidth import wcwidth

from support.patience import HANG
from support.program import Forked, terminal_program

SECONDS = HANG
# The program asks whether frames may be marked; marked they are, as most terminals allow.
ASKED, FRAMES = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
FRAME_END = b"\x1b[?2026l"
# A command that begins so is the program, forked from a process that has loaded it already.
WARM = ["python, forked", "-m", "codewhale"]
LOCALE = "C.UTF-8"


class Terminal:
    """A command on a pseudo-terminal of `size` (columns, rows). `pace` are bytes a second that the terminal takes, 0
    as many as come; without `emulate` bytes are kept alone and nothing is drawn. Ends with everything it started when
    the block is left."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        cwd: str | Path = "/",
        size: tuple[int, int] = (120, 40),
        pace: int = 0,
        emulate: bool = True,
    ) -> None:
        self.size = size
        self.pace = pace
        self._emulate = emulate
        self.raw = bytearray()
        self.times: list[tuple[float, int]] = []  # when so many bytes had come
        self.screen = pyte.Screen(*size)
        self._lines: list[str] = []  # as they stand there, but for those that are dirty
        self._stream = pyte.ByteStream(self.screen)
        self._changed = threading.Condition()
        self.master, slave = os.openpty()
        self._resize(*size)
        self.started = time.monotonic()
        self.child: subprocess.Popen[bytes] | Forked
        if list(command[:3]) == WARM and environ.get("LC_ALL") == LOCALE:
            self.child = terminal_program(command[3:], environ, str(cwd), slave)
        else:
            words = [sys.executable, *command[1:]] if list(command[:3]) == WARM else list(command)
            self.child = subprocess.Popen(
                words, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=dict(environ),
                start_new_session=True, preexec_fn=_own_terminal,
            )  # fmt: skip
        os.close(slave)
        self._open = True
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *gone: object) -> None:
        self.hang_up()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait(HANG)

    # ------------------------------------------------------------------ looking

    @property
    def text(self) -> str:
        """What stands on the screen, a line each, blanks at their ends left out."""
        with self._changed:
            self._lines = [self._lines[y] if y < len(self._lines) else "" for y in range(self.screen.lines)]
            for y in self.screen.dirty:
                if y < self.screen.lines:
                    self._lines[y] = self._line(y)
            self.screen.dirty.clear()
            return "\n".join(self._lines)

    def _line(self, y: int) -> str:
        """A line of the screen, drawn anew; half of a wide character is nothing."""
        cells = [self.screen.buffer[y][x].data for x in range(self.screen.columns)]
        if not all(map(str.isascii, cells)):
            for x, char in enumerate(cells):
                if char and wcwidth(char[0]) == 2 and x + 1 < len(cells):
                    cells[x + 1] = ""
        return "".join(cells).rstrip()

    def until(self, condition: Callable[[str], Any], seconds: float = SECONDS) -> str:
        """Wait until the condition holds of the screen's text; that text. Raises AssertionError with the screen."""
        deadline = time.monotonic() + seconds
        while True:
            text = self.text
            if condition(text):
                return text
            left = deadline - time.monotonic()
            assert left > 0 and self.child.poll() is None, f"exit {self.child.poll()}; the screen is:\n{text}"
            with self._changed:
                self._changed.wait(min(left, 0.25))

    def sees(self, *words: str, seconds: float = SECONDS) -> str:
        """Wait until all words stand on the screen."""
        return self.until(lambda text: all(word in text for word in words), seconds)

    def until_raw(self, wanted: bytes, since: int = 0, seconds: float = SECONDS) -> float:
        """Wait until bytes have come behind position `since`; the time at which they had. Raises AssertionError."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while (at := self.raw.find(wanted, since)) < 0:
                left = deadline - time.monotonic()
                assert left > 0 and self.child.poll() is None, f"{wanted!r} never came; exit {self.child.poll()}"
                self._changed.wait(min(left, 0.25))
            return next(when for when, size in self.times if size >= at + len(wanted))

    def until_quiet(self, quiet: float = 0.3, seconds: float = SECONDS) -> None:
        """Wait until the program is at rest: for so long nothing has come, and nothing of it was at work or waiting
        for its turn on a busy machine."""
        deadline = time.monotonic() + seconds
        active = self.started
        while time.monotonic() < deadline:
            active = active if _asleep(self.child.pid) else time.monotonic()
            with self._changed:
                active = max(active, self.times[-1][0] if self.times else active)
                if time.monotonic() - active > quiet:
                    return
                self._changed.wait(quiet / 3)
        raise AssertionError(f"it never came to rest:\n{self.text}")

    # ------------------------------------------------------------------ doing

    def type(self, keys: str | bytes) -> None:
        """Send keys."""
        os.write(self.master, keys.encode() if isinstance(keys, str) else keys)

    def paste(self, text: str) -> None:
        """Send text as a bracketed paste."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Another size."""
        with self._changed:
            self.screen.resize(rows, columns)
        self._resize(columns, rows)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGWINCH)

    def hang_up(self) -> None:
        """Close the terminal, as when its window is closed."""
        if self._open:
            self._open = False
            self._thread.join(5)
            os.close(self.master)

    def wait(self, seconds: float = SECONDS) -> int:
        """The exit code, when all that it printed has come. Raises subprocess.TimeoutExpired."""
        code = self.child.wait(seconds)
        self._thread.join(10)  # a terminal that something else still holds open never ends
        return code

    # ------------------------------------------------------------------ inside

    def _resize(self, columns: int, rows: int) -> None:
        self.size = (columns, rows)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        most = 65_536 if not self.pace else max(1, self.pace // 50)
        while self._open:
            ready, _, _ = select.select([self.master], [], [], 0.05)
            if not ready:
                continue
            try:
                data = os.read(self.master, most)
            except OSError as error:
                if error.errno == errno.EIO:
                    return
                raise
            if not data:
                return
            with self._changed:
                self.raw += data
                self.times.append((time.monotonic(), len(self.raw)))
                if self._emulate:
                    with contextlib.suppress(Exception):  # the emulator knows fewer sequences than are sent
                        self._stream.feed(data)
                self._changed.notify_all()
            if ASKED in data:
                os.write(self.master, FRAMES)
            if self.pace:
                time.sleep(len(data) / self.pace)


def _asleep(pid: int) -> bool:
    """Whether no thread of a program, and of what it started, has anything to do; True where there is no /proc."""
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):  # it has ended
            state = (thread / "stat").read_text().rpartition(") ")[2][0]
            children = (thread / "children").read_text().split()
            if state in "RD" or not all(_asleep(int(child)) for child in children):
                return False
    return True


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def environment(home: Path, **more: str) -> dict[str, str]:
    """A person's environment at an ordinary terminal."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": path,
        "CODEWHALE_HOME": str(home),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": LOCALE,
        "LC_ALL": LOCALE,
        **more,
    }
