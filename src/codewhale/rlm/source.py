"""The source of a session as the host reads it: by byte span, never whole, and only as long as it stays what it was."""

import hashlib
import os
from collections.abc import Iterable

from codewhale.protocol.errors import ToolError

_BLOCK = 1 << 20


class SourceFile:
    """An open file, which may be the artifact of a text. Made by a thread: the whole of it is hashed."""

    def __init__(self, path: str, kind: str) -> None:
        """Raises OSError."""
        self.path = os.path.realpath(path)
        self.kind = kind
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._state = self._stat()
            self.bytes = os.fstat(self._fd).st_size
            with open(self._fd, "rb", closefd=False) as file:
                self.head = file.read(4 * 500)
                file.seek(0)
                self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except BaseException:
            os.close(self._fd)
            raise

    def read(self, start: int, end: int) -> bytes:
        """Bytes `start` to `end`. Raises ToolError where the file has changed."""
        if self._stat() != self._state:
            raise self._changed()
        return os.pread(self._fd, max(0, end - start), max(0, start))

    def check(self) -> None:
        """Raises ToolError where another file, or none, stands at the path of this one, or where it has changed."""
        try:
            there = self._of(os.stat(self.path))
        except OSError:
            there = None
        if there != self._state:
            raise self._changed()

    def _changed(self) -> ToolError:
        return ToolError(
            "execution_failed",
            f"The source {self.path} has changed since it was opened; close this session and open it again.",
        )

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _stat(self) -> tuple[int, int, int]:
        return self._of(os.fstat(self._fd))

    @staticmethod
    def _of(state: os.stat_result) -> tuple[int, int, int]:
        return state.st_ino, state.st_size, state.st_mtime_ns


class Coverage:
    """Which bytes of a source some question has seen: disjoint spans, in order."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def add(self, spans: Iterable[tuple[int, int]]) -> None:
        merged: list[tuple[int, int]] = []
        for start, end in sorted((*self.spans, *spans)):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            elif end > start:
                merged.append((start, end))
        self.spans = merged

    def seen(self) -> int:
        return sum(end - start for start, end in self.spans)

    def gaps(self, size: int, most: int = 5) -> list[tuple[int, int]]:
        """The first bytes that nothing has seen, as spans."""
        gaps, at = [], 0
        for start, end in (*self.spans, (size, size)):
            if start > at:
                gaps.append((at, start))
            at = max(at, end)
        return gaps[:most]
