"""Putting new bytes in the place of a file that an editor, which knows no lock of ours, may save at the same moment."""

import errno
import fcntl
import functools
import os
import signal
import sys
import time
from collections.abc import Callable

from codewhale.lib.files import FileOps, atomic_write

_SECONDS = 2.0  # at most, for somebody who has the file open for writing
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_EXCHANGE = 2
_AT_FDCWD = -100


def open_quiet(path: str) -> int:
    """A descriptor of the file when nobody writes into it, as far as the system can say. Raises OSError."""
    fd, deadline = os.open(path, _OPEN), time.monotonic() + _SECONDS
    while _written_to(fd) and time.monotonic() < deadline:
        time.sleep(0.002)
    return fd


def put(path: str, data: bytes, old: bytes | None) -> bool:
    """Make `path`, which held `old` (None: nothing), hold `data` with mode 0600, durably. False where somebody saved
    it meanwhile, by another file in its place or into it: what was saved stands then. Raises OSError."""
    swap = _Swap(old)
    try:
        atomic_write(path, data, 0o600, ops=swap)
        swap.check(path)
    except _Saved:
        return False
    if swap.aside:
        os.unlink(swap.aside)
    return True


class _Saved(Exception):
    """Somebody else saved the file."""


class _Swap(FileOps):
    """Renames so that what stood at the target is kept aside, and put back where it is not what was expected."""

    def __init__(self, old: bytes | None) -> None:
        self._old = old
        self._own = 0
        self.aside = ""

    def rename(self, source: str, target: str) -> None:
        if self._old is None:
            try:
                os.link(source, target)
            except FileExistsError:
                raise _Saved from None
            os.unlink(source)
            return
        if not _holds(target, self._old):
            raise _Saved
        self._own, exchange = os.stat(source).st_ino, _exchange()
        if exchange is None or not exchange(source, target):
            os.replace(source, target)
            return
        self.aside = source
        self.check(target)

    def check(self, target: str) -> None:
        """Raises _Saved where the old file was written to until now, and stands at the target again then."""
        exchange = _exchange()
        if not self.aside or exchange is None or (self._old is not None and _holds(self.aside, self._old)):
            return
        exchange(self.aside, target)
        if os.stat(self.aside).st_ino != self._own:  # saved by a rename since; the later one stands
            os.replace(self.aside, target)
        else:
            os.unlink(self.aside)
        raise _Saved


def _holds(path: str, data: bytes) -> bool:
    """Whether the file has these bytes, and nobody writes into it."""
    try:
        fd = os.open(path, _OPEN)
    except OSError:
        return False
    with open(fd, "rb") as file:
        return not _written_to(fd) and file.read(len(data) + 1) == data


def _written_to(fd: int) -> bool:
    """Whether a process has it open for writing: then Linux gives nobody a lease to read it."""
    if sys.platform != "linux":
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)  # what comes where it is opened just now; its default is nothing
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


@functools.cache
def _exchange() -> Callable[[str, str], bool] | None:
    """Let two files change places in one step, or say that they cannot; None where the system has no such call."""
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2" if sys.platform == "linux" else "", None)
    if function is None:
        return None

    def exchange(one: str, other: str) -> bool:
        names = os.fsencode(one), os.fsencode(other)
        return bool(function(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0)

    return exchange
