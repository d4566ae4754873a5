"""Room kept for the worst day: a file whose only use is to be deleted when the disk is full."""

import contextlib
import errno
import os

from codewhale.lib.files import DISK, write_all

SIZE = 1 << 20


class Reserve:
    """A file of `SIZE` bytes at `path`, so that the records which close a turn still fit on a full disk."""

    def __init__(self, path: str) -> None:
        self._path = path

    def fill(self) -> None:
        """Set the room aside where it is not; a disk too full for that is left alone."""
        if os.path.exists(self._path):
            return
        try:
            fd = DISK.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except OSError:
            return
        try:
            _allocate(fd)
        except OSError:
            self.release()
        finally:
            os.close(fd)

    def release(self) -> bool:
        """Give the room back; whether there was any."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)
            return True
        return False


def _allocate(fd: int) -> None:
    try:
        os.posix_fallocate(fd, 0, SIZE)
    except (AttributeError, OSError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise
        write_all(DISK, fd, bytes(SIZE))  # a system or file system that cannot allocate ahead
