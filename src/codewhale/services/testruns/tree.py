"""One hash for the contents of a workspace, so that a test run can be bound to what it tested.

Ignored files do not count, so building changes nothing; the repository itself is only read.
"""

import asyncio
import hashlib
import os
import stat
import threading
import time

from msgspec import Struct

from codewhale.system.walk import Walker

MOST_FILES = 50_000
MOST_BYTES = 512 << 20
SECONDS = 15.0
BLOCK = 1 << 20
CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})


class TreeHash(Struct, frozen=True):
    """`sha256` over every file's path, kind and contents, "" when the tree could not be read within its bounds;
    `files` counts them."""

    sha256: str
    files: int


async def tree_hash(root: str) -> TreeHash:
    """Hash the files beneath `root` that are not ignored: contents, executable bits and link targets. At most 50,000
    files, 512 MiB and 15 seconds; beyond that there is no hash rather than one that overlooks something."""
    deadline = time.monotonic() + SECONDS
    listing = await Walker(root, limit=MOST_FILES, seconds=SECONDS).files(skip=CACHES)
    if listing.truncated:
        return TreeHash("", len(listing.files))
    stop = threading.Event()
    names = sorted({*listing.files, *listing.links})
    try:
        digest = await asyncio.to_thread(_digest, os.path.realpath(root), names, deadline, stop)
    finally:
        stop.set()
    return TreeHash(digest, len(names))


def _digest(root: str, names: list[str], deadline: float, stop: threading.Event) -> str:
    whole = hashlib.sha256()
    room = MOST_BYTES
    for name in names:
        path = os.path.join(root, name)
        try:
            room -= _add(whole, name, path)
        except OSError:
            continue
        if room < 0 or stop.is_set() or time.monotonic() > deadline:
            return ""
    return whole.hexdigest()


def _add(whole: "hashlib._Hash", name: str, path: str) -> int:
    """Add one file; its size. What is gone or is no file counts as not there (OSError)."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        kind, contents, size = "link", hashlib.sha256(os.fsencode(os.readlink(path))).digest(), 0
    elif stat.S_ISREG(mode):
        kind = "program" if mode & 0o100 else "file"
        contents, size = _contents(path)
    else:
        raise OSError("not a file")
    whole.update(f"{kind} {name}\0".encode("utf-8", "surrogateescape") + contents)
    return size


def _contents(path: str) -> tuple[bytes, int]:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb", buffering=0) as file:
        digest = hashlib.sha256()
        size = 0
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
            if size > MOST_BYTES:
                break
        return digest.digest(), size
