"""Files of a tree to one segment: reading them, and gathering what they hold. The same code in a worker process and in
the harness itself."""

import os
import stat
import time
from collections.abc import Sequence

from msgspec import Struct

from codewhale.codesearch.model import Outline
from codewhale.codesearch.segment import Gathering, Rows
from codewhale.codesearch.source import LARGEST, PEEKED, Sources

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FAILED = "failed"  # the state of a file that no worker process survived: only its path is indexed
RACY_NS = 20_000_000  # a file changed this shortly before it was read may change again within the same time stamp


class FileRow(Struct, array_like=True):
    """A file of a segment: its stamp, and its chunks from number `first` of the segment on. A `ctime_ns` of 0 is a
    stamp not to be trusted."""

    path: str
    lang: str
    state: str
    size: int
    mtime_ns: int
    ctime_ns: int
    lines: int
    sha: bytes
    first: int
    chunks: int
    outline: Outline


class Segment(Struct, array_like=True):
    """What some files come to: their rows, the columns of their chunks, and the blocks of postings (first key,
    packed). `gone` are paths that were not there any more, `failed` those that no worker process survived. With `held`
    there is no segment yet: so many files are."""

    files: list[FileRow]
    rows: Rows
    blocks: list[tuple[str, bytes]]
    gone: list[str]
    held: int = 0
    failed: list[str] = []


class Task(Struct, array_like=True):
    """Files to make a segment of. `plain`: without grammars. `hold`: no segment before so many bytes were read.
    `failed`: by their paths alone, since no worker process survived them."""

    root: str
    paths: list[str]
    plain: bool = False
    hold: int = 0
    failed: bool = False


class Holding:
    """Files that were read, on their way to a segment."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._begin()

    def _begin(self) -> None:
        self._sources.vocabulary.trim()
        self._gathering = Gathering(self._sources.vocabulary)
        self._files: list[FileRow] = []
        self._gone: list[str] = []
        self._bytes = 0

    def add(self, task: Task) -> Segment:
        """Read the files of a task. Returns the segment, or how many files are held."""
        for path in task.paths:
            self._read(task, path)
        if self._bytes < task.hold:
            return nothing(held=len(self._files) + len(self._gone))
        rows, blocks = self._gathering.packed()
        segment = Segment(self._files, rows, blocks, self._gone)
        self._begin()
        return segment

    def _read(self, task: Task, path: str) -> None:
        told = read(f"{task.root}/{path}")
        if told is None:
            self._gone.append(path)
            return
        data, size, mtime, ctime = told
        first = self._gathering.chunks
        source = self._sources.read(path, None if task.failed else data, self._gathering, plain=task.plain)
        self._bytes += len(data or b"") + 1
        chunks = self._gathering.chunks - first
        stamp = (size, mtime, ctime)
        state = FAILED if task.failed else source.state
        row = FileRow(path, source.lang, state, *stamp, source.lines, source.sha, first, chunks, source.outline)
        self._files.append(row)


def nothing(*, held: int = 0, failed: Sequence[str] = ()) -> Segment:
    """A segment of no file, that tells something else."""
    return Segment([], Rows(0, b"", b"", b"", []), [], [], held, list(failed))


def indexed(sources: Sources, task: Task) -> Segment:
    """The segment of a task's files."""
    return Holding(sources).add(task)


def read(path: str) -> tuple[bytes | None, int, int, int] | None:
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
