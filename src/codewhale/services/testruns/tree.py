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

from codewhale.workspace.ignore import CACHES
from codewhale.workspace.walk import Walker

MOST_FILES = 50_000
MOST_BYTES = 512 << 20
SECONDS = 15.0
BLOCK = 1 << 20


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
            state = os.lstat(path)
            room -= state.st_size
            if room < 0 or stop.is_set() or time.monotonic() > deadline:
                return ""
            entry = _entry(path, state.st_mode)
        except OSError:
            continue
        whole.update(os.fsencode(f"{entry[0]} {name}\0") + entry[1])
    return whole.hexdigest()


def _entry(path: str, mode: int) -> tuple[str, bytes]:
    """(kind, hash of the contents). What is gone or is no file counts as not there (OSError)."""
    if stat.S_ISLNK(mode):
        return "link", hashlib.sha256(os.fsencode(os.readlink(path))).digest()
    if not stat.S_ISREG(mode):
        raise OSError("not a file")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    digest = hashlib.sha256()
    with os.fdopen(fd, "rb", buffering=0) as file:
        left = MOST_BYTES
        while left > 0 and (block := file.read(BLOCK)):
            digest.update(block)
            left -= len(block)
    return "program" if mode & 0o100 else "file", digest.digest()
