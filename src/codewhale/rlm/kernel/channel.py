"""The channel to the host: frames of four bytes length (big-endian) and JSON, on two descriptors of their own.

From the kernel: {"ready"}, {"ask"}, {"done"}; from the host: {"run"} and {"answer"}. Answers come in any order and may
be waited for by several threads; an interrupt never tears a frame.
"""

import fcntl
import json
import os
import select
import threading

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

_BLOCK = 1 << 16
MOST_FRAME = 32 << 20  # what the host takes at most


class HostGone(BaseException):
    """The host has closed the channel."""


class RoundEnded(BaseException):
    """What ends a round from outside, or what a thread of it still asks; `kind` is timeout, cancelled or over."""

    def __init__(self, kind: str, message: "Any") -> None:
        super().__init__(message)
        self.kind = kind


class Interrupts:
    """Signals that end a round, held back while a frame is moved."""

    def __init__(self) -> None:
        self.held = False
        self.error: BaseException | None = None  # what to raise
        self.armed = False  # a round runs

    def take(self, error: "Any") -> None:
        """In a signal handler: raise now, or as soon as that tears nothing."""
        if not self.armed:
            return
        if self.held:
            self.error = error
        else:
            raise error

    def hold(self) -> None:
        self.held = True

    def let(self) -> None:
        self.held = False
        if self.error is not None:
            error, self.error = self.error, None
            raise error


class Channel:
    """Made once, before any code of a model runs: standard input and output become the null device."""

    def __init__(self, interrupts: "Any") -> None:
        self._in = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 32)
        self._out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 32)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.close(null)
        os.set_blocking(self._in, False)
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._woken, False)
        self.over = False  # the round has ended: no thread of it asks any more
        self._interrupts = interrupts
        self._buffer = bytearray()
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._slots: dict[int, dict[int, tuple[str, str]]] = {}  # ask -> {slot: (text, error)}, of asks that wait
        self._numbers = 0
        self.order: Any = None

    def send(self, frame: "Any") -> None:
        """Raises ValueError for what is larger than the host takes, and HostGone. Half a character is sent as "?"."""
        text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        data = text.encode("utf-8", "replace")
        if len(data) > MOST_FRAME:
            raise ValueError(
                f"{len(data):,} bytes are more than the {MOST_FRAME:,} of one message; pass slices or less"
            )
        data = len(data).to_bytes(4, "big") + data
        with self._writing:
            self._interrupts.hold()
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._out, view) :]
            except OSError:
                raise HostGone from None
            finally:
                self._interrupts.let()

    def next_order(self) -> "Any":
        """The next round that the host orders. Raises HostGone."""
        while self.order is None:
            self._read()
        order, self.order = self.order, None
        return order

    def ask(self, frame: "Any", count: int) -> "Any":
        """Send an ask and wait for all its slots; a list of (text, error)."""
        self._still()
        with self._writing:
            self._numbers += 1
            number = self._numbers
        slots = self._slots[number] = {}
        try:
            self.send({"ask": number, **frame})
            while len(slots) < count:
                with self._reading:
                    self._still()
                    if len(slots) < count:
                        self._read()
            return [slots[slot] for slot in range(count)]
        finally:
            self._slots.pop(number, None)

    def end(self) -> None:
        """The round is over: threads that wait for answers get none."""
        self.over = True
        os.write(self._waking, b"-")

    def ended(self) -> None:
        """Whoever waited has been woken."""
        os.read(self._woken, 1)

    def _still(self) -> None:
        if self.over:
            raise RoundEnded("over", "the round that began this thread has ended")

    def _read(self) -> None:
        """Wait for one frame and give it to whom it belongs; those of nobody are left out. The end of a round ends the
        wait too."""
        frame = self._frame()
        while frame is None:
            ready, _, _ = select.select([self._in, self._woken], [], [])
            if self._in not in ready:
                return
            self._interrupts.hold()
            try:
                data = os.read(self._in, _BLOCK)
                self._buffer += data
            except BlockingIOError:
                data = b"-"
            except OSError:
                data = b""
            finally:
                self._interrupts.let()
            if not data:
                raise HostGone
            frame = self._frame()
        if "run" in frame:
            self.order = frame
        elif (slots := self._slots.get(frame.get("answer"))) is not None:
            slots[frame["slot"]] = (frame["text"], frame["error"])

    def _frame(self) -> "Any":
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        end = 4 + int.from_bytes(buffer[:4], "big")
        if len(buffer) < end:
            return None
        self._interrupts.hold()
        try:
            data = bytes(buffer[4:end])
            del buffer[:end]
        finally:
            self._interrupts.let()
        return json.loads(data)
