"""Which version of a source stands on the disk: every name below it, and a hash of what its files hold where that can
be had within bounds. Nothing here follows a link, or waits on what is no regular file."""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal, TypeVar

from msgspec import Struct

from codewhale.lib.beneath import PathRefused, Root

MOST_NAMES = 100_000
MOST_FILES = 20_000
MOST_BYTES = 2 << 30
SECONDS = 120.0
T = TypeVar("T")
_CHUNK = 1 << 20
_TELL_SECONDS = 0.25
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW


class SourceEntry(Struct, frozen=True, omit_defaults=True):
    """A name below a source: a file with its size and hash, a folder, a link (with where it leads; it is not followed),
    what can be no file of a source (other), or what cannot be read."""

    name: str
    kind: Literal["file", "folder", "link", "other", "unread"]
    bytes: int = 0
    sha256: str = ""
    target: str = ""


class SourceVersion(Struct, frozen=True, omit_defaults=True):
    """A version of a source. `sha256` is of its names, sizes and contents, "" where `limit` says why these were not
    read; `times` is of its names, sizes and times alone. While `stamp` is the same nothing has changed."""

    bytes: int
    files: int
    times: str
    stamp: str
    sha256: str = ""
    limit: str = ""

    @property
    def id(self) -> str:
        return self.sha256 or self.times


class StoppedError(Exception):
    """Nobody waits for the version any longer."""


class Progress(Struct, frozen=True):
    """What a look at a source may ask and tell: whether it is to stop, and how many of its bytes are hashed."""

    stopped: Callable[[], bool] = lambda: False
    tell: Callable[[int, int], None] = lambda done, total: None

    def checked(self, items: Iterable[T]) -> Iterator[T]:
        """The items, as long as somebody waits for them."""
        for item in items:
            if self.stopped():
                raise StoppedError
            yield item


NO_PROGRESS = Progress()


def read_version(
    path: str, known: SourceVersion | None = None, progress: Progress = NO_PROGRESS, seconds: float = SECONDS
) -> tuple[SourceVersion, list[SourceEntry]]:
    """The version of a folder or file, and its entries; `known` itself, where that still holds, and no entries. Raises
    OSError where it cannot be read at all, StoppedError."""
    until = time.monotonic() + seconds
    root, entries = _opened(path)
    times, stamp, limit = hashlib.sha256(), hashlib.sha256(), ""
    listed: list[SourceEntry] = []
    for entry, about in progress.checked(entries):
        if len(listed) == MOST_NAMES or time.monotonic() > until:
            limit = f"only its first {len(listed):,} names were looked at"
            break
        listed.append(entry)
        head = _line(entry, entry.bytes)
        times.update(head + b"%d\0" % (about.st_mtime_ns if about is not None and entry.kind == "file" else 0))
        stamp.update(head + b"%d %d\0" % ((about.st_ctime_ns, about.st_ino) if about is not None else (0, 0)))
    files = [entry for entry in listed if entry.kind == "file"]
    size = sum(entry.bytes for entry in files)
    version = SourceVersion(size, len(files), times.hexdigest(), stamp.hexdigest(), limit=limit)
    if known is not None and known.stamp == version.stamp:
        return known, []
    if not limit and (len(files) > MOST_FILES or size > MOST_BYTES):
        limit = f"it has more than {MOST_FILES:,} files or {MOST_BYTES >> 30} GiB: contents are not compared"
    if not limit:
        listed, limit = _hashed(root, listed, size, until, progress)
    whole = hashlib.sha256()
    for entry in listed:
        whole.update(_line(entry, entry.bytes) + entry.sha256.encode() + b"\0")
    return SourceVersion(
        size, len(files), version.times, version.stamp, "" if limit else whole.hexdigest(), limit
    ), listed


def opened_file(root: Root, name: str) -> int:
    """A descriptor of a regular file below a source. Raises OSError, PathRefused."""
    fd = root.open(name, _READ, links=False)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("it is no regular file")
    return fd


def read_chunks(fd: int) -> Iterator[bytes]:
    """What a descriptor holds, which is closed in the end."""
    try:
        while chunk := os.read(fd, _CHUNK):
            yield chunk
    finally:
        os.close(fd)


def _hashed(
    root: Root, listed: list[SourceEntry], size: int, until: float, progress: Progress
) -> tuple[list[SourceEntry], str]:
    """The entries with the hashes of files, and why they have none where they would be too much."""
    entries, done, told = list[SourceEntry](), 0, time.monotonic()
    for entry in listed:
        if entry.kind != "file":
            entries.append(entry)
            continue
        digest, length = hashlib.sha256(), 0
        try:
            for chunk in progress.checked(read_chunks(opened_file(root, entry.name))):
                digest.update(chunk)
                length += len(chunk)
                if done + length > MOST_BYTES or time.monotonic() > until:
                    return listed, "reading it took too long: contents are not compared"
            entries.append(SourceEntry(entry.name, "file", length, digest.hexdigest()))
        except (OSError, PathRefused):
            entries.append(SourceEntry(entry.name, "unread", entry.bytes))
        done += length
        if time.monotonic() > told + _TELL_SECONDS:
            told = time.monotonic()
            progress.tell(done, max(done, size))
    return entries, ""


def _opened(path: str) -> tuple[Root, Iterator[tuple[SourceEntry, os.stat_result | None]]]:
    about = os.lstat(path)
    if stat.S_ISDIR(about.st_mode):
        root = Root(path)
        os.close(root.open_dir("."))
        return root, _walk(root)
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is neither a folder nor a regular file")
    return Root(os.path.dirname(path)), iter([(_entry(os.path.basename(path), about, ""), about)])


def _walk(root: Root) -> Iterator[tuple[SourceEntry, os.stat_result | None]]:
    """Every name below a folder, those of one folder together and in order."""
    todo = ["."]
    while todo:
        folder = todo.pop()
        try:
            fd = root.open_dir(folder, links=False)
        except (OSError, PathRefused):
            yield SourceEntry(folder, "unread"), None
            continue
        try:
            with os.scandir(fd) as met:
                names = sorted((one.name for one in islice(met, MOST_NAMES + 1)), key=os.fsencode)
            within = "" if folder == "." else f"{folder}/"
            inner = []
            for name in names:
                try:
                    about = os.lstat(name, dir_fd=fd)
                    target = os.readlink(name, dir_fd=fd) if stat.S_ISLNK(about.st_mode) else ""
                except OSError:
                    yield SourceEntry(within + name, "unread"), None
                    continue
                entry = _entry(within + name, about, target)
                yield entry, about
                if entry.kind == "folder":
                    inner.append(entry.name)
        finally:
            os.close(fd)
        todo += reversed(inner)


def _entry(name: str, about: os.stat_result, target: str) -> SourceEntry:
    if stat.S_ISREG(about.st_mode):
        return SourceEntry(name, "file", about.st_size)
    if stat.S_ISLNK(about.st_mode):
        return SourceEntry(name, "link", target=target)
    return SourceEntry(name, "folder" if stat.S_ISDIR(about.st_mode) else "other")


def _line(entry: SourceEntry, size: int) -> bytes:
    return b"\0".join((os.fsencode(entry.name), entry.kind.encode(), b"%d" % size, os.fsencode(entry.target), b""))
