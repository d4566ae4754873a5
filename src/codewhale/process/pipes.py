"""The harness's ends of a child's streams, on the event loop and never blocking it."""

import asyncio
import contextlib
import os
from collections.abc import Callable

BLOCK = 65536
DRAIN = 1 << 20


class Reader:
    """Hands on what arrives at a file descriptor, one block at a time so that a flood starves nobody."""

    def __init__(self, fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._ready)

    @property
    def open(self) -> bool:
        """Whether more may come."""
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

    def drain(self) -> None:
        """Take what is there now, at most 1 MiB, without waiting."""
        taken = 0
        while self.open and taken < DRAIN:
            got = self._read()
            if not got:
                break
            taken += got

    def close(self) -> None:
        """Stop reading."""
        if self.open:
            fd, self._fd = self._fd, -1
            self._loop.remove_reader(fd)
            os.close(fd)


class Writer:
    """Writes to a file descriptor as fast as the other side reads."""

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
        """Drop the descriptor now; a write under way fails."""
        if self._feeding is not None:
            self._feeding.cancel()
        self._release()

    def _release(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            asyncio.get_running_loop().remove_writer(fd)
            os.close(fd)
            self._ready.set()
