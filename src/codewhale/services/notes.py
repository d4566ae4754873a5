"""The notes file of a workspace, `.codewhale/notes.md`: written by the harness alone, and never through a link."""

import contextlib
import errno
import hashlib
import os
import stat

from codewhale.lib.files import DISK, write_all
from codewhale.protocol.files import FileChange

NOTES_PATH = ".codewhale/notes.md"
LIMIT = 1 << 20
_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def append_note(workspace: str, text: str) -> FileChange:
    """Add a note at the end of the workspace's notes, under a separator line; on disk when this returns.

    Raises OSError, with nothing added, when the folder or the file is a link, something else than a plain file
    with one name, or the file would pass `LIMIT` bytes.
    """
    folder, name = NOTES_PATH.split("/")
    root = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o755, dir_fd=root)
        inside = os.open(folder, _DIR, dir_fd=root)
    finally:
        os.close(root)
    try:
        fd = os.open(name, _FILE, 0o644, dir_fd=inside)
    finally:
        os.close(inside)
    try:
        return _append(fd, text)
    finally:
        os.close(fd)


def _append(fd: int, text: str) -> FileChange:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
        raise OSError(errno.EPERM, f"{NOTES_PATH} is not a plain file with one name")
    before = os.pread(fd, LIMIT + 1, 0)
    note = f"---\n\n{text.rstrip()}\n".encode("utf-8", "replace")
    gap = b"" if not before or before.endswith(b"\n\n") else b"\n" if before.endswith(b"\n") else b"\n\n"
    if len(before) + len(gap) + len(note) > LIMIT:
        raise OSError(errno.EFBIG, f"{NOTES_PATH} would pass {LIMIT} bytes")
    try:
        write_all(DISK, fd, gap + note)
        os.fsync(fd)
    except OSError:
        os.ftruncate(fd, len(before))
        raise
    after = hashlib.sha256(before + gap + note).hexdigest()
    return FileChange(NOTES_PATH, hashlib.sha256(before).hexdigest() if before else None, after)
