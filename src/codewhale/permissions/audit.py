"""The audit log of a home: each decision about a call, each answer, each name that is on its way out, one JSON object
a line. It is kept for people; nothing reads it back, and it never stands in the way of work."""

import contextlib
import os

import msgspec

from codewhale.lib.clock import Clock, rfc3339
from codewhale.lib.files import DISK, write_all

AUDIT_FILE = "audit.log"
# A log that has grown to this size becomes the former one, of which there is one.
LIMIT = 1 << 20


class AuditLog:
    """`audit.log` of a home and, when that is full, `audit.log.1`. The file stays open between lines."""

    def __init__(self, home: str, clock: Clock) -> None:
        self._path = os.path.join(home, AUDIT_FILE)
        self._clock = clock
        self._fd = -1
        self._inode = 0

    def add(self, event: str, **fields: str) -> None:
        """Add a line, in one write. What cannot be written is not."""
        row = {"at": rfc3339(self._clock.now()), "event": event, **fields}
        with contextlib.suppress(OSError, UnicodeError):
            line = msgspec.json.encode(row) + b"\n"
            size = self._opened()
            write_all(DISK, self._fd, line)
            if size + len(line) >= LIMIT:
                DISK.rename(self._path, self._path + ".1")

    def close(self) -> None:
        """Let the file go; the next line opens it again."""
        if self._fd >= 0:
            DISK.close(self._fd)
            self._fd = -1

    def _opened(self) -> int:
        """The size of the file that the descriptor writes to: the one of that name, whoever has renamed it since."""
        try:
            status = os.lstat(self._path)
        except FileNotFoundError:
            status = None
        if self._fd < 0 or status is None or status.st_ino != self._inode:
            self.close()
            self._fd = DISK.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            status = os.fstat(self._fd)
            self._inode = status.st_ino
        return status.st_size
