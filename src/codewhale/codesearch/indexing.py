"""Reading files of a tree for the index. The same code in a worker process and in the harness itself."""

import os
import stat
import time

from msgspec import Struct

from codewhale.codesearch.model import IndexedFile
from codewhale.codesearch.source import LARGEST, PEEKED, SourceReader
from codewhale.codesearch.terms import ChunkWords

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FAILED = "failed"  # the state of a file that no worker process survived: only its path is indexed
RACY_NS = 20_000_000  # a file changed this shortly before it was read may change again within the same time stamp


class Batch(Struct, array_like=True):
    """What some files hold. `gone` are paths that were not there any more, `failed` those that no worker process
    survived."""

    files: list[IndexedFile]
    gone: list[str]
    failed: list[str] = []


class ReadTask(Struct, array_like=True):
    """Files to read. `plain`: without grammars. `failed`: by their paths alone, since no worker process survived
    them. `known`: the words of some as they were before."""

    root: str
    paths: list[str]
    plain: bool = False
    failed: bool = False
    known: dict[str, list[ChunkWords]] = {}


def read_files(sources: SourceReader, task: ReadTask) -> Batch:
    """Read the files of a task."""
    batch = Batch([], [])
    for path in task.paths:
        read = read_file(f"{task.root}/{path}")
        if read is None:
            batch.gone.append(path)
            continue
        data, size, mtime, ctime = read
        known = task.known.get(path, ())
        source = sources.read(path, None if task.failed else data, plain=task.plain, known=known)
        source.state = FAILED if task.failed else source.state
        batch.files.append(IndexedFile(path, size, mtime, ctime, source))
    return batch


def read_file(path: str) -> tuple[bytes | None, int, int, int] | None:
    """(content, size, mtime_ns, ctime_ns) of a regular file; at most one byte more than is indexed of it, the first
    bytes alone of a binary one. None when it is not there, content None when it cannot be read."""
    now = time.time_ns()
    try:
        fd = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return _unreadable(path)
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            return None
        data = os.read(fd, PEEKED)
        if b"\0" not in data:
            data = _all(fd, data, min(before.st_size, LARGEST) + 1)
        after = os.fstat(fd)
    except OSError:
        return _unreadable(path)
    finally:
        os.close(fd)
    steady = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    old = max(before.st_mtime_ns, before.st_ctime_ns) < now - RACY_NS
    return data, before.st_size, before.st_mtime_ns, before.st_ctime_ns if steady and old else 0


def _unreadable(path: str) -> tuple[None, int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (None, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if stat.S_ISREG(found.st_mode) else None


def _all(fd: int, data: bytes, most: int) -> bytes:
    while len(data) < most and (more := os.read(fd, most - len(data))):
        data += more
    return data
