"""Files of our own state: whole-file replacement that survives a crash, private directories, and the few file
operations these need as one object, so that a test can record, refuse or replay them."""

import contextlib
import errno
import fcntl
import os
import stat

from codewhale.lib import failpoints

FULL = (errno.ENOSPC, errno.EDQUOT)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | os.O_CLOEXEC


class FileOps:
    """What durable writing asks of the operating system. The methods are the os functions of their names."""

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """A file descriptor, closed on exec; a file it creates has exactly `mode`, whatever the umask."""
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        if flags & os.O_CREAT and stat.S_IMODE(os.fstat(fd).st_mode) != mode:
            os.fchmod(fd, mode)
        return fd

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """How many bytes were taken."""
        failpoints.hit("disk.write")
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        """Return once the file's bytes and size are on disk."""
        full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
        if full is not None:
            fcntl.fcntl(fd, full)
        else:
            os.fdatasync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file to `size` bytes."""
        os.ftruncate(fd, size)

    def rename(self, source: str, target: str) -> None:
        """Put `source` in the place of `target` in one step."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        os.close(fd)

    def sync_dir(self, path: str) -> None:
        """Return once the directory's names are on disk."""
        fd = os.open(path, _DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


DISK = FileOps()


def write_all(ops: FileOps, fd: int, data: bytes) -> None:
    """Write every byte, however short the single writes are."""
    done = ops.write(fd, data)
    while done < len(data):
        done += ops.write(fd, memoryview(data)[done:])


def atomic_write(path: str, data: bytes, mode: int = 0o600, *, ops: FileOps = DISK, point: str = "") -> None:
    """Make `path` hold `data` in one step: after a crash it holds either what it held or all of `data`.

    On return the bytes and the name are on disk. `point` prefixes the failpoints around the rename. Raises
    OSError and leaves no temporary file.
    """
    folder, name = os.path.split(os.path.abspath(path))
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.tmp")
    fd = ops.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        try:
            write_all(ops, fd, data)
            ops.fsync(fd)
        finally:
            ops.close(fd)
        if point:
            failpoints.hit(point + ".before_rename")
        ops.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            ops.unlink(temporary)
        raise
    if point:
        failpoints.hit(point + ".after_rename")
    ops.sync_dir(folder)


def private_dir(path: str) -> str:
    """Make `path` a directory only its owner can enter (0700), with its parents, and return it. One at the top of the
    file system stays as it is, for others may need it.

    Raises PermissionError when it belongs to another user or others write there, OSError when it cannot be made.
    """
    if not os.path.isdir(path):
        parent = os.path.dirname(os.path.abspath(path))
        os.makedirs(parent, mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(f"{path} is not a directory")
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to user {found.st_uid}, not to {os.geteuid()}: not used")
    mode = stat.S_IMODE(found.st_mode)
    top = os.path.dirname(os.path.realpath(path)) == "/"
    if mode & 0o022 and (top or mode & stat.S_ISVTX):
        raise PermissionError(f"{path} is a folder that others write to: use one of your own in it")
    if mode != 0o700 and not top:
        os.chmod(path, 0o700)
    return path
