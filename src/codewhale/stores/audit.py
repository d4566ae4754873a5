"""The audit log of a home: what was done by a name that is on its way out, one JSON object a line. It is kept for
people; nothing reads it back, and it never stands in the way of work."""

import contextlib
import os

import msgspec

from codewhale.lib.clock import Clock, rfc3339
from codewhale.lib.files import DISK, write_all

AUDIT_FILE = "audit.log"
# A log that has grown to this size becomes the former one, of which there is one.
LIMIT = 1 << 20


class AuditLog:
    """`audit.log` of a home and, when that is full, `audit.log.1`."""

    def __init__(self, home: str, clock: Clock) -> None:
        self._path = os.path.join(home, AUDIT_FILE)
        self._clock = clock

    def add(self, event: str, **fields: str) -> None:
        """Add a line, in one write. What cannot be written is not."""
        row = {"at": rfc3339(self._clock.now()), "event": event, **fields}
        with contextlib.suppress(OSError, UnicodeError):
            fd = DISK.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                write_all(DISK, fd, msgspec.json.encode(row) + b"\n")
                full = os.fstat(fd).st_size >= LIMIT
            finally:
                DISK.close(fd)
            if full:
                DISK.rename(self._path, self._path + ".1")
