"""All that a job prints, kept up to a bound on the disk under no name: it is gone with the process, however that ends.

What is beyond the bound is counted, never kept.
"""

import contextlib
import os
from collections.abc import Iterator

MOST = 64 << 20
MOST_IN_ALL = 1 << 30
IN_MEMORY = 32_768
BLOCK = 1 << 20


class LogFolder:
    """The folder that logs are kept in, and how much of `room` bytes all of them together have left."""

    def __init__(self, folder: str, room: int = MOST_IN_ALL) -> None:
        self.folder = folder
        self.room = room


class JobLog:
    """The first `most` bytes of what a job printed on both streams, in the order of their arrival. Small ones stay in
    memory; one that grows is a file. A disk that takes no more ends the keeping, not the job."""

    def __init__(self, shelf: LogFolder, most: int = MOST) -> None:
        self.total = 0
        self.kept = 0
        self._shelf = shelf
        self._most = most
        self._begun = bytearray()
        self._fd = -1
        self._full = False

    @property
    def whole(self) -> bool:
        return self.kept == self.total

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        if self._full:
            return
        room = min(self._most - self.kept, self._shelf.room)
        self._full = len(data) >= room
        self._keep(data[:room])

    def _keep(self, data: bytes) -> None:
        try:
            if self._fd >= 0:
                self._write(data)
            else:
                self._begun += data
                self.kept += len(data)
                self._shelf.room -= len(data)
                if len(self._begun) > IN_MEMORY:
                    self._move_out()
        except OSError:
            self._full = True

    def _move_out(self) -> None:
        self._fd = _nameless(self._shelf.folder)
        begun = bytes(self._begun)
        self._begun.clear()
        self._shelf.room += self.kept
        self.kept = 0
        self._write(begun)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            done = os.write(self._fd, rest)
            rest = rest[done:]
            self.kept += done
            self._shelf.room -= done

    def blocks(self, start: int = 0, stop: int = MOST, size: int = BLOCK) -> Iterator[bytes]:
        """What is kept between two offsets, in blocks of at most `size` bytes. May run in a thread beside `feed`."""
        stop = min(stop, self.kept)
        if self._fd < 0:
            yield bytes(self._begun[start:stop])
            return
        fd = os.dup(self._fd)
        try:
            while block := os.pread(fd, max(0, min(size, stop - start)), start):
                yield block
                start += len(block)
        finally:
            os.close(fd)

    def close(self) -> None:
        self._shelf.room += self.kept
        self.kept, self._full = 0, True
        self._begun.clear()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _nameless(folder: str) -> int:
    """A file of 0600 in `folder` that no name leads to."""
    flags = os.O_RDWR | os.O_CLOEXEC
    with contextlib.suppress(AttributeError, OSError):
        return os.open(folder, flags | os.O_TMPFILE, 0o600)
    path = os.path.join(folder, f".job.{os.urandom(8).hex()}.tmp")
    fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    return fd
