"""The harness's ends of a child's streams, never blocking the event loop; keeping a bounded part of what comes, and
saying what was left out."""

import asyncio
import codecs
import contextlib
import os
from collections.abc import Callable

BLOCK = 65536
DRAIN = 1 << 20


class PipeReader:
    """Hands on what arrives at a file descriptor, one block at a time so that a flood starves nobody."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None], stream: str = "") -> None:
        self.stream = stream
        self._fd = fd
        self._held = False
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._ready)

    @property
    def open(self) -> bool:
        return self._fd >= 0

    def _ready(self) -> None:
        self._read()
        if not self.open:
            self._on_end()

    def _read(self) -> int:
        try:
            data = os.read(self._fd, BLOCK)
        except BlockingIOError:
            return 0
        except OSError:  # a pseudo-terminal whose other side is closed answers EIO
            data = b""
        if data:
            self._on_data(data)
        else:
            self.close()
        return len(data)

    def hold(self, held: bool) -> None:
        """Stop reading, or go on."""
        if self.open and held != self._held:
            self._held = held
            if held:
                self._loop.remove_reader(self._fd)
            else:
                self._loop.add_reader(self._fd, self._ready)

    def drain(self) -> None:
        """Take what is there now, at most 1 MiB, without waiting."""
        taken = 0
        while self.open and taken < DRAIN:
            got = self._read()
            if not got:
                break
            taken += got

    def close(self) -> None:
        if self.open:
            fd, self._fd = self._fd, -1
            self._loop.remove_reader(fd)
            os.close(fd)


class PipeWriter:
    def __init__(self, fd: int, end: bytes | None = None) -> None:
        """`end` is what stands for the end of input where closing cannot (a terminal's ^D); with it the descriptor is
        a duplicate of the reading one."""
        self._fd = fd
        self._end = end
        self._lock = asyncio.Lock()
        self._ready = asyncio.Event()
        self._feeding: asyncio.Task[None] | None = None
        os.set_blocking(fd, False)

    def feed(self, data: bytes, then_close: bool) -> None:
        """Write in the background; errors mean that nobody reads, and are nobody's business."""
        self._feeding = asyncio.ensure_future(self._feed(data, then_close))

    async def _feed(self, data: bytes, then_close: bool) -> None:
        with contextlib.suppress(OSError):
            await self.write(data)
            if then_close:
                await self.finish()

    async def write(self, data: bytes) -> None:
        """Write all of it. Raises BrokenPipeError when the other side or this one is closed."""
        async with self._lock:
            view = memoryview(data)
            while view:
                if self._fd < 0:
                    raise BrokenPipeError("standard input is closed")
                try:
                    view = view[os.write(self._fd, view) :]
                except BlockingIOError:
                    await self._writable()

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        fd = self._fd
        self._ready.clear()
        loop.add_writer(fd, self._ready.set)
        try:
            await self._ready.wait()
        finally:
            if self._fd == fd:
                loop.remove_writer(fd)

    async def finish(self) -> None:
        """Tell the other side that nothing more comes."""
        if self._end is not None and self._fd >= 0:
            with contextlib.suppress(OSError):
                await self.write(self._end)
            return
        async with self._lock:
            self._release()

    def close(self) -> None:
        if self._feeding is not None:
            self._feeding.cancel()
        self._release()

    def _release(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            asyncio.get_running_loop().remove_writer(fd)
            os.close(fd)
            self._ready.set()


MARKERS = (
    b"error", b"Error", b"ERROR", b"FAIL", b"failed", b"panicked", b"Traceback", b"Exception", b"fatal", b"assert",
    b"test result:", b"exit code", b"exit status", b"Segmentation fault", b" passed",
)  # fmt: skip
LINE = 500


class HeadTail:
    """`head` bytes from the start and `tail` bytes from the end. Memory stays below twice that."""

    def __init__(self, head: int, tail: int) -> None:
        self.total = 0
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the stream. Returns those that now are left out."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        excess = len(self._tail) - self._tail_limit
        if excess <= self._tail_limit:
            return b""
        left_out = bytes(self._tail[:excess])
        del self._tail[:excess]
        return left_out

    def kept(self) -> tuple[bytes, int]:
        """(kept bytes, offset in them at which the middle was left out, -1 when nothing was)."""
        tail = bytes(self._tail[max(0, len(self._tail) - self._tail_limit) :])
        gap = len(self._head) if len(self._head) + len(tail) < self.total else -1
        return bytes(self._head) + tail, gap

    def pending(self) -> bytes:
        """Bytes that `kept` would leave out and `feed` has not returned yet."""
        return bytes(self._tail[: max(0, len(self._tail) - self._tail_limit)])


class OutputDigest:
    """Head, tail, and from what lies between up to `lines` lines that tell how things went."""

    def __init__(self, head: int, tail: int, lines: int) -> None:
        self._bytes = HeadTail(head, tail)
        self._lines = lines
        self._found: list[str] = []
        self._partial = b""

    @property
    def total(self) -> int:
        return self._bytes.total

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        left_out = self._bytes.feed(data)
        if left_out and len(self._found) < self._lines:
            whole, _, self._partial = (self._partial + left_out).rpartition(b"\n")
            self._found += notable_lines(whole, self._lines - len(self._found))
            self._partial = self._partial[-LINE:]

    def text(self) -> tuple[str, int]:
        """(what was kept with a line that says what was not, bytes left out)."""
        kept, gap = self._bytes.kept()
        if gap < 0:
            return kept.decode("utf-8", "replace"), 0
        omitted = self.total - len(kept)
        lines = self._found + notable_lines(self._partial + self._bytes.pending(), self._lines - len(self._found))
        chosen = "".join(f"{line}\n" for line in lines)
        note = f"[... {omitted} bytes left out{'; the important lines:' if lines else ''} ...]\n{chosen}"
        head, tail = _ends(kept, gap)
        return f"{head}\n{note}{'[...]' if lines else ''}\n{tail}", omitted


def notable_lines(data: bytes, most: int) -> list[str]:
    """The first `most` lines that hold a marker of success or failure, each cut to 500 bytes."""
    if most <= 0 or not any(marker in data for marker in MARKERS):
        return []
    lines = (line for line in data.split(b"\n") if any(marker in line for marker in MARKERS))
    return [line[:LINE].decode("utf-8", "replace") for line, _ in zip(lines, range(most), strict=False)]


def shown(kept: bytes, gap: int, total: int) -> str:
    """Kept bytes as text, with a line that says how much was left out where."""
    if gap < 0:
        return kept.decode("utf-8", "replace")
    head, tail = _ends(kept, gap)
    return f"{head}\n[... {total - len(kept)} bytes left out ...]\n{tail}"


def whole_characters(data: bytes) -> int:
    """How many leading bytes end on a UTF-8 character boundary: a character begun but not finished is left."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-4:])
    return len(data) - len(decoder.getstate()[0])


def _ends(kept: bytes, gap: int) -> tuple[str, str]:
    head, tail = kept[:gap], kept[gap:]
    start = 0
    while start < min(4, len(tail)) and 0x80 <= tail[start] < 0xC0:
        start += 1
    return head[: whole_characters(head)].decode("utf-8", "replace"), tail[start:].decode("utf-8", "replace")


class EarlyOutput:
    """What a command that a sandbox holds prints at first is kept back while it may be the sandbox's own complaint that
    it could not begin. `hear(stream, data)` is what hears the rest."""

    COMPLAINT = b"bwrap: Can't "
    MOST = 4096

    def __init__(self, hear: Callable[[str, bytes], None], watch: bool) -> None:
        self._hear = hear
        self._held: tuple[str, bytes] | None = ("", b"") if watch else None

    @property
    def complained(self) -> bool:
        return self._held is not None and self._held[1].startswith(self.COMPLAINT)

    def feed(self, stream: str, data: bytes) -> None:
        """Take what came on a stream."""
        if self._held is None:
            return self._hear(stream, data)
        before, text = self._held[0] or stream, self._held[1] + data
        if before == stream and len(text) <= self.MOST and text.startswith(self.COMPLAINT[: len(text)]):
            self._held = (stream, text)
            return None
        self.end()
        return self._hear(stream, data)

    def end(self) -> None:
        """Let go of what was kept back: it is the command's, or the last word."""
        held, self._held = self._held, None
        if held is not None and held[1]:
            self._hear(*held)
