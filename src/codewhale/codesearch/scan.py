"""What of a tree is not as it was when it was indexed: every known file and folder is looked at, each time. A folder's
time tells that something came or went; then, or after a git event, the walker lists the tree again."""

import asyncio
import os
import stat
import time
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from codewhale.codesearch.indexing import RACY_NS
from codewhale.codesearch.model import Stamp
from codewhale.process.repository import find_repository
from codewhale.workspace.ignore import is_unread, unread_folders
from codewhale.workspace.walk import Walker

MOST_FILES = 200_000
_SECONDS = 120.0
_FEW_FOUND = 5  # fewer files in a tree make one ask how many were left out
_MANY_LEFT_OUT = 10
_COUNTED = 1_000  # files that were left out are counted so far
_COUNTING_SECONDS = 2.0
_MOST_EMPTY = 5_000  # folders without a listed file that are watched


class FolderTimes(Struct, array_like=True):
    """The times (nanoseconds) of every folder, by its path beneath the root, and of the files of git that say what
    belongs to the tree. -1 is a time not to be trusted."""

    folders: dict[str, int]
    marks: dict[str, int]

    @classmethod
    def unpacked(cls, data: object) -> "FolderTimes | None":
        """What `packed` gave; None for anything else."""
        try:
            return msgspec.msgpack.decode(data, type=cls) if isinstance(data, bytes) else None
        except msgspec.DecodeError:
            return None

    def packed(self) -> bytes:
        """For the store."""
        return msgspec.msgpack.encode(self)


class TreeListing(Struct):
    """The files of a tree that belong into its index, and the folders as they were just before."""

    files: list[str]
    watched: FolderTimes
    left_out: dict[str, int]
    truncated: bool


def changes(root: str, stamps: Mapping[str, Stamp], watched: FolderTimes | None) -> tuple[list[str], bool]:
    """The files that are gone or do not look as they did, and whether a file may have come or gone, or git may see the
    tree otherwise. One thread is fastest: two wait for each other's lock at every call. Raises OSError when the root
    cannot be opened."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        changed = [path for path, stamp in stamps.items() if not _is_as_was(fd, path, stamp)]
        moved = watched is None or _folder_times(fd, watched.folders) != watched.folders
    finally:
        os.close(fd)
    return changed, moved or (watched is not None and _times(watched.marks) != watched.marks)


def _is_as_was(fd: int, path: str, stamp: Stamp) -> bool:
    try:
        at = os.lstat(path, dir_fd=fd)
    except OSError:
        return False
    return (at.st_ctime_ns, at.st_mtime_ns, at.st_size) == (stamp.ctime_ns, stamp.mtime_ns, stamp.size)


async def list_tree(root: str) -> TreeListing:
    """List the tree."""
    settled = time.time_ns() - RACY_NS
    marks = await asyncio.to_thread(lambda: _times(_mark_files(root)))
    walker = Walker(root, limit=MOST_FILES, seconds=_SECONDS)
    listing = await walker.files(skip=unread_folders())
    files = [path for path in listing.files if not is_unread(path)]
    folders = await asyncio.to_thread(_folders, root, listing.files)
    times = await asyncio.to_thread(_times_beneath, root, folders)
    left_out = {"by name": len(listing.files) - len(files), "links": len(listing.links), "names": listing.unnamed}
    if len(files) < _FEW_FOUND:
        left_out["ignored"] = await _ignored(root, len(listing.files))
    watched = FolderTimes(_trusted(times, settled), _trusted(marks, settled))
    return TreeListing(files, watched, {reason: n for reason, n in left_out.items() if n}, listing.truncated)


def too_few(files: int, left_out: object) -> str:
    """What is to be said of an index of so few files where others were left out, "" where all is well; `left_out` is
    what a store remembers of it."""
    try:
        told = msgspec.json.decode(left_out if isinstance(left_out, bytes) else b"{}", type=dict[str, int])
    except msgspec.DecodeError:
        return ""
    count = told.get("ignored", 0)
    if files >= _FEW_FOUND or count < _MANY_LEFT_OUT:
        return ""
    has, others = ("file is" if files == 1 else "files are"), f"{count} or more" if count >= _COUNTED else str(count)
    return f"only {files} {has} in the index and {others} are ignored: an ignore rule may leave out too much"


async def _ignored(root: str, found: int) -> int:
    """How many files ignore rules leave out, dependencies aside; at most about _COUNTED."""
    walker = Walker(root, limit=_COUNTED, seconds=_COUNTING_SECONDS)
    return len((await walker.files(include_ignored=True, skip=unread_folders())).files) - found


def _trusted(times: dict[str, int], settled: int) -> dict[str, int]:
    """Times after `settled` may stand for more than one change: they count as none."""
    return {path: at if at < settled else -1 for path, at in times.items()}


def _folders(root: str, files: Iterable[str]) -> list[str]:
    """The folders of files, and those beneath them that hold none: a first file may come there."""
    known = {""}
    for path in files:
        folder = path.rpartition("/")[0]
        while folder not in known:
            known.add(folder)
            folder = folder.rpartition("/")[0]
    skipped, found = unread_folders(), sorted(known)
    empty = [inner for folder in found for inner in _inner(root, folder) if inner not in known]
    while empty and len(found) - len(known) < _MOST_EMPTY:
        folder = empty.pop()
        found.append(folder)
        if folder.rpartition("/")[2] not in skipped:
            inner = _inner(root, folder, only=True)
            empty += inner
    return found


def _inner(root: str, folder: str, *, only: bool = False) -> list[str]:
    """The folders in a folder; none, with `only`, when it holds anything else."""
    found: list[str] = []
    try:
        with os.scandir(os.path.join(root, folder)) as scan:
            for entry in scan:
                if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                    found.append(f"{folder}/{entry.name}" if folder else entry.name)
                elif only:
                    return []
    except OSError:
        return []
    return found


def _times_beneath(root: str, folders: Iterable[str]) -> dict[str, int]:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _folder_times(fd, folders)
    finally:
        os.close(fd)


def _folder_times(fd: int, folders: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for folder in folders:
        try:
            at = os.lstat(folder or ".", dir_fd=fd)
        except OSError:
            found[folder] = 0
            continue
        found[folder] = at.st_mtime_ns if stat.S_ISDIR(at.st_mode) else 0
    return found


def _mark_files(root: str) -> list[str]:
    repository = find_repository(root)
    personal = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    shared = [os.path.join(personal, "git", "ignore")]
    if repository is None:
        return [os.path.join(root, ".git"), *shared]
    own = [os.path.join(repository.gitdir, name) for name in ("HEAD", "index", "logs/HEAD")]
    return own + shared + [os.path.join(repository.common, name) for name in ("info/exclude", "config")]


def _times(files: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in files:
        try:
            found[file] = os.stat(file).st_mtime_ns
        except OSError:
            found[file] = 0
    return found
