"""Lines from the person: with history and completion where the terminal has readline, bytes split at line ends else."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from codewhale.lib.text import scrub_surrogates

MOST_BYTES = 1 << 20
_REMEMBERED = 500


class Lines:
    """Standard input. One line is read at a time, in a thread that the end of the program need not wait for."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self.is_terminal = os.isatty(fd) and os.isatty(1)
        self._held = bytearray()
        self._before: Any = None
        if self.is_terminal:
            import termios

            self._before = termios.tcgetattr(fd)

    async def line(self) -> str | None:
        """The next line without its end; None at the end of input. What is longer than 1 MiB is cut there."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str | None] = loop.create_future()

        def tell(line: str | None) -> None:
            if not future.done():
                future.set_result(line)

        def read() -> None:
            line = self._ask() if self.is_terminal and self._fd == 0 else self._split()
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(tell, line)

        threading.Thread(target=read, daemon=True, name="codewhale-reader").start()
        return await future

    def close(self) -> None:
        """Give the terminal back as it was found."""
        if self._before is not None:
            import termios

            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def remember(self, lines: Sequence[str]) -> None:
        """Offer these with the arrow keys, the last one first."""
        if self.is_terminal and (readline := _readline()) is not None:
            for line in lines[-_REMEMBERED:]:
                if "\n" not in line:
                    readline.add_history(line)

    def complete(self, offer: Callable[[str], Sequence[str]]) -> None:
        """Let Tab complete the line before the cursor; `offer` gives all lines that it may become."""
        if not self.is_terminal or (readline := _readline()) is None:
            return

        def completer(text: str, state: int) -> str | None:
            found = offer(text)
            return found[state] if state < len(found) else None

        readline.set_completer_delims("")
        readline.set_completer(completer)
        readline.parse_and_bind("tab: complete")
        # Nothing but the line itself may reach the terminal.
        readline.parse_and_bind("set enable-bracketed-paste off")

    def _ask(self) -> str | None:
        _readline()
        try:
            return scrub_surrogates(input())[:MOST_BYTES]
        except (EOFError, OSError, ValueError):
            return None

    def _split(self) -> str | None:
        while b"\n" not in self._held and len(self._held) < MOST_BYTES:
            try:
                chunk = os.read(self._fd, 1 << 16)
            except OSError:
                chunk = b""
            if not chunk:
                break
            self._held += chunk
        if not self._held:
            return None
        line, _, rest = bytes(self._held[:MOST_BYTES]).partition(b"\n")
        self._held = bytearray(rest) + self._held[MOST_BYTES:]
        return line.removesuffix(b"\r").decode("utf-8", "replace")


def _readline() -> Any:
    """The readline module; None where there is none, or the terminal cannot move its cursor."""
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        return None
    try:
        import readline
    except ImportError:
        return None
    return readline if sys.stdin is not None else None
