"""One writer per session: an exclusive flock on a file that also says who holds it.

The kernel drops the lock with its holder, however that died. The mark in the file serves the rest: telling a
second process who is there, taking over where a dead holder's child still keeps the lock, and standing firm on
file systems whose locks do nothing.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from codewhale.lib import process
from codewhale.lib.files import DISK
from codewhale.lib.process import ProcessMark
from codewhale.protocol.errors import SessionBusyError


class Holder(Struct, frozen=True, omit_defaults=True):
    """Who holds a session, and the fence its writes carry: one more at every opening."""

    process: ProcessMark = ProcessMark()
    fence: int = 0


class SessionLock:
    """The lock at `path`, held from construction to `release`. Raises SessionBusyError when a live process has
    it; OSError when the file cannot be used."""

    def __init__(self, path: str, session: str) -> None:
        self._path = path
        with _one_at_a_time(os.path.dirname(path), session):
            self._fd, self.fence = _acquire(path, session)
        self._inode = os.fstat(self._fd).st_ino

    def held(self) -> bool:
        """Whether the file at the path is still the one locked."""
        try:
            return self._fd >= 0 and os.stat(self._path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give the lock up; the file stays, with the fence. Does nothing the second time."""
        if self._fd < 0:
            return
        with contextlib.suppress(OSError):
            _write(self._fd, Holder(fence=self.fence))
        os.close(self._fd)
        self._fd = -1


def is_held(path: str) -> bool:
    """Whether a live process holds the lock at `path`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        alive = process.alive(_read(fd).process)
        return not _try(fd, fcntl.LOCK_SH) if alive is None else alive
    finally:
        os.close(fd)


@contextlib.contextmanager
def _one_at_a_time(folder: str, session: str) -> Iterator[None]:
    """Whoever takes a lock does it alone, so that the flock and the mark in the file always tell the same."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _ in range(200):
            if _try(fd, fcntl.LOCK_EX):
                break
            time.sleep(0.01)
        else:
            raise SessionBusyError(f"session {session} is being opened by another process; try again.")
        yield
    finally:
        os.close(fd)


def _acquire(path: str, session: str) -> tuple[int, int]:
    """The locked descriptor and its fence."""
    fd = DISK.open(path, os.O_RDWR | os.O_CREAT)
    try:
        locked = _try(fd, fcntl.LOCK_EX)
        holder = _read(fd)
        alive = process.alive(holder.process)
        if alive if locked else alive is not False or not holder.process.pid:
            raise SessionBusyError(_busy(session, holder.process))
        if not locked:  # the holder is dead and a child of it still keeps the file locked: leave it that file
            os.unlink(path)
            kept, fd = fd, DISK.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            os.close(kept)
            _try(fd, fcntl.LOCK_EX)
        _write(fd, Holder(process.mark(), holder.fence + 1))
    except BaseException:
        os.close(fd)
        raise
    return fd, holder.fence + 1


def _write(fd: int, holder: Holder) -> None:
    data = msgspec.json.encode(holder)
    os.pwrite(fd, data, 0)
    os.ftruncate(fd, len(data))


def _try(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
            return True  # no locks on this file system: the mark alone decides
        raise
    return True


def _read(fd: int) -> Holder:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0), type=Holder)
    except msgspec.DecodeError:
        return Holder()


def _busy(session: str, holder: ProcessMark) -> str:
    if holder.pid == os.getpid() and process.alive(holder):
        who = "already open in this process"
    elif holder.pid:
        who = f"open in process {holder.pid}"
        if process.alive(holder) is None:
            who += f" of another machine or container ({holder.space})"
    else:
        who = "open in another process"
    return f"session {session} is {who}. Close it there, or fork the session to continue from what it recorded."
