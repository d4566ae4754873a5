"""The one walker: which files of a workspace exist for a tool that looks around.

In a git repository git says what is ignored; elsewhere the ignore files of the tree do. `.git` is never entered,
symlinks are told but not followed, nested repositories are asked for themselves, and from the top of a machine the
kernel's own folders are left out.
"""

import asyncio
import contextlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct

from codewhale.process.repository import find_repository
from codewhale.protocol.errors import ToolError
from codewhale.workspace.git import git
from codewhale.workspace.ignore import IgnoreRules

MOST_FILES = 200_000
SECONDS = 20.0
_LIST_LIMIT = 64 << 20
_MOST_REPOSITORIES = 200
_DEEPEST = 100
# What no disk holds: a walk from the top of a machine, as in many containers, leaves it out.
_KERNEL = frozenset({"/proc", "/sys", "/dev"})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

R = TypeVar("R")


class DirEntry(Struct, frozen=True):
    """One name in a folder. Neither `is_dir`, `is_link` nor `is_file`: a FIFO, socket or device."""

    name: str
    is_dir: bool
    is_link: bool
    is_file: bool


class FileListing(Struct, frozen=True):
    """What a walk found: paths from the walker's root, POSIX, sorted. `files` are regular files, `links` symlinks;
    `unnamed` counts entries left out because their name is not UTF-8. `truncated` tells that a bound was met."""

    files: tuple[str, ...]
    links: tuple[str, ...] = ()
    unnamed: int = 0
    truncated: bool = False


class Walker:
    """Walks beneath `root`, an absolute folder. `limit` bounds the files of one walk, `seconds` its time."""

    def __init__(self, root: str, *, limit: int = MOST_FILES, seconds: float = SECONDS) -> None:
        self.root = os.path.realpath(root)
        self._limit = limit
        self._seconds = seconds

    async def files(
        self, path: str = ".", *, include_ignored: bool = False, skip: frozenset[str] = frozenset()
    ) -> FileListing:
        """Every file beneath `path` (a folder or one file), without those git ignores unless `include_ignored`.

        Folders named in `skip` are not entered. An ignored `path` is walked all the same: it was asked for. Raises
        FileNotFoundError, NotADirectoryError (neither file nor folder) and ValueError when `path` leads outside.
        """
        start = self._inside(path)
        mode = os.lstat(os.path.join(self.root, start)).st_mode
        if stat.S_ISREG(mode):
            return FileListing((start,))
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(f"{path} is neither a file nor a folder")
        gathering = _Walk(self.root, include_ignored, skip, self._limit, self._seconds)
        try:
            return await gathering.run(start)
        finally:
            gathering.stop()

    async def entries(self, path: str = ".", *, include_ignored: bool = False) -> tuple[DirEntry, ...]:
        """The entries of one folder, by name, without those git ignores unless `include_ignored`.

        Raises like `files`; NotADirectoryError for anything but a folder, TimeoutError where it takes too long.
        """
        start = self._inside(path)
        patience = _TimeLimit(self._seconds)
        try:
            entries = await asyncio.to_thread(_scan, self.root, start, patience)
            hidden = set() if include_ignored else await self._ignored(start, entries, patience)
        finally:
            patience.stop()
        return tuple(entry for entry in entries if entry.name not in hidden)

    def _inside(self, path: str) -> str:
        """`path` with every symlink resolved, from the root; "" for the root itself."""
        if "\0" in path:
            raise ValueError("NUL in a path")
        real = os.path.realpath(os.path.join(self.root, path), strict=True)
        if real == self.root:
            return ""
        if os.path.commonpath((real, self.root)) != self.root:
            raise ValueError(f"{path} leads outside {self.root}")
        return os.path.relpath(real, self.root)

    async def _ignored(self, start: str, entries: tuple[DirEntry, ...], patience: "_TimeLimit") -> set[str]:
        folder = os.path.join(self.root, start)
        names: set[str] | None = None
        if entries and find_repository(folder) is not None:
            with contextlib.suppress(ToolError):  # no git, or a repository it does not accept: the tree's own rules
                names = None if await _is_ignored(folder) else await _ignored_by_git(folder, entries)
        if names is None:
            names = await asyncio.to_thread(_ignored_by_rules, self.root, start, entries, patience)
        return names | {".git"}


class _TimeLimit:
    """How long something may take. Whoever waits for a thread ends it by `stop`."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._stop = threading.Event()

    def stop(self) -> None:
        self._stop.set()

    @property
    def left(self) -> float:
        """Seconds that are left, never less than a tenth."""
        return max(0.1, self._deadline - time.monotonic())

    def spent(self) -> bool:
        return self._stop.is_set() or time.monotonic() > self._deadline


class _Walk:
    """One walk: what is found so far and the bounds that end it. Its threads stop soon after `stop()`."""

    def __init__(self, root: str, include_ignored: bool, skip: frozenset[str], limit: int, seconds: float) -> None:
        self._root = root
        self._include_ignored = include_ignored
        self._skip = skip | {".git"}
        self._limit = limit
        self._patience = _TimeLimit(seconds)
        self._files: set[str] = set()
        self._links: set[str] = set()
        self._unnamed = 0
        self._truncated = False
        self._nested: list[str] = []

    def stop(self) -> None:
        self._patience.stop()

    async def run(self, start: str) -> FileListing:
        await self._gather(start)
        asked = 0
        while self._nested and not self._spent():
            asked += 1
            if asked > _MOST_REPOSITORIES:
                self._truncated = True
                break
            await self._gather(self._nested.pop())
        return FileListing(tuple(sorted(self._files)), tuple(sorted(self._links)), self._unnamed, self._truncated)

    async def _gather(self, start: str) -> None:
        folder = os.path.join(self._root, start)
        if not self._include_ignored and find_repository(folder) is not None:
            try:
                data = await self._listed(folder)
            except ToolError:
                data = None
            if data is not None:
                await asyncio.to_thread(self._sort_out, start, data)
                return
        await asyncio.to_thread(self._walk_tree, start)

    async def _listed(self, folder: str) -> bytes | None:
        """What git lists beneath `folder`; None where it cannot say, or the folder itself is ignored."""
        args = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        done = await git(args, folder, seconds=self._patience.left, output_limit=_LIST_LIMIT)
        if done.timed_out or done.stdout_gap >= 0:
            self._truncated = True
            kept = done.stdout if done.stdout_gap < 0 else done.stdout[: done.stdout_gap]
            return kept[: kept.rfind(b"\0") + 1]
        if done.exit_code != 0 or (not done.stdout and await _is_ignored(folder)):
            return None
        return done.stdout

    def _sort_out(self, start: str, data: bytes) -> None:
        """Sort what git listed into files, links and nested repositories; what is gone or special is dropped."""
        prefix = start + "/" if start else ""
        open_folders = {"": True}
        for index, raw in enumerate(data.split(b"\0")):
            if index % 256 == 0 and self._spent():
                return
            name = _name(raw.rstrip(b"/"))
            if name is None:
                self._unnamed += 1
            elif name and self._is_open(prefix, name.rpartition("/")[0], open_folders):
                self._sort(prefix + name)
        self._spent()

    def _is_open(self, prefix: str, folder: str, known: dict[str, bool]) -> bool:
        """Whether every folder on the way is one (not a symlink) and not to be skipped."""
        verdict = known.get(folder)
        if verdict is None:
            above, _, name = folder.rpartition("/")
            verdict = (
                name not in self._skip and self._is_open(prefix, above, known) and self._is_folder(prefix + folder)
            )
            known[folder] = verdict
        return verdict

    def _is_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(f"{self._root}/{path}").st_mode)
        except OSError:
            return False

    def _sort(self, path: str) -> None:
        try:
            mode = os.lstat(f"{self._root}/{path}").st_mode
        except OSError:
            return
        if stat.S_ISREG(mode):
            self._files.add(path)
        elif stat.S_ISLNK(mode):
            self._links.add(path)
        elif stat.S_ISDIR(mode) and path.rpartition("/")[2] not in self._skip:
            self._nested.append(path)

    def _walk_tree(self, start: str) -> None:
        try:
            fd = _open_folder(self._root, start)
        except OSError:
            return
        try:
            above = IgnoreRules() if self._include_ignored else _rules_above(self._root, start, self._patience)
            self._descend(fd, start, above, 0)
        except TimeoutError:
            self._truncated = True
        finally:
            os.close(fd)

    def _descend(self, fd: int, folder: str, above: IgnoreRules, depth: int) -> None:
        try:
            entries = list(self._scanned(fd))
        except OSError:  # it may be opened and not read, as some of /proc
            return
        rules = above if self._include_ignored else above.entering(folder, fd, {entry.name for entry in entries})
        for entry in entries:
            path = os.path.join(folder, entry.name)
            if self._spent():
                return
            if entry.name in self._skip or rules.ignores(path, entry.is_dir):
                continue
            if not depth and os.path.join(self._root, path) in _KERNEL:
                continue
            if entry.is_link:
                self._links.add(path)
            elif entry.is_file:
                self._files.add(path)
            elif entry.is_dir:
                self._enter(fd, entry.name, path, rules, depth)

    def _enter(self, above: int, name: str, path: str, rules: IgnoreRules, depth: int) -> None:
        if depth >= _DEEPEST:
            self._truncated = True
            return
        try:
            fd = os.open(name, _FOLDER, dir_fd=above)
        except OSError:
            return
        try:
            if not self._include_ignored and _is_repository(fd):
                self._nested.append(path)
            else:
                self._descend(fd, path, rules, depth + 1)
        finally:
            os.close(fd)

    def _scanned(self, fd: int) -> Iterator[DirEntry]:
        for raw, entry in _scan_open(fd):
            if entry is None:
                self._unnamed += 1
            elif raw:
                yield entry

    def _spent(self) -> bool:
        """Whether the walk has to end; a bound that was met is remembered."""
        if len(self._files) + len(self._links) >= self._limit or self._patience.spent():
            self._truncated = True
        return self._truncated


async def _is_ignored(folder: str) -> bool:
    """Whether the repository `folder` is in ignores the folder itself."""
    repository = find_repository(folder)
    if repository is None or os.path.realpath(folder) == repository.root:
        return False
    done = await git(("check-ignore", "-q", "--", os.path.realpath(folder)), folder)
    return done.exit_code == 0


async def _ignored_by_git(folder: str, entries: tuple[DirEntry, ...]) -> set[str] | None:
    """The names git ignores, None where it cannot say."""
    names = "".join(f"./{entry.name}\0" for entry in entries).encode()
    done = await git(("check-ignore", "-z", "--stdin"), folder, stdin=names, output_limit=_LIST_LIMIT)
    if done.exit_code not in (0, 1):
        return None
    ignored = {name.removeprefix("./") for name in done.stdout.decode("utf-8", "replace").split("\0") if name}
    folders = [entry.name for entry in entries if entry.is_dir and entry.name in ignored]
    if folders:  # an ignored folder that holds committed files is not hidden
        held = await git(("ls-files", "-z", "--", *folders), folder, output_limit=_LIST_LIMIT)
        ignored -= {path.partition("/")[0] for path in held.stdout.decode("utf-8", "replace").split("\0")}
    return ignored


def _ignored_by_rules(root: str, start: str, entries: tuple[DirEntry, ...], patience: _TimeLimit) -> set[str]:
    fd = _open_folder(root, start)
    try:
        rules = _rules_above(root, start, patience).entering(start, fd, {entry.name for entry in entries})
    finally:
        os.close(fd)
    return {entry.name for entry in entries if rules.ignores(os.path.join(start, entry.name), entry.is_dir)}


def _rules_above(root: str, start: str, patience: _TimeLimit) -> IgnoreRules:
    """The rules of the folders above `start` ("" is the root), none where they ignore `start` itself: then it was
    asked for in spite of them."""
    rules, folder = IgnoreRules.personal(patience.spent), ""
    for step in start.split("/") if start else ():
        fd = _open_folder(root, folder)
        try:
            rules = rules.entering(folder, fd, set(os.listdir(fd)))
        finally:
            os.close(fd)
        folder = os.path.join(folder, step)
        if rules.ignores(folder, True):
            return IgnoreRules()
    return rules


def _scan(root: str, start: str, patience: _TimeLimit) -> tuple[DirEntry, ...]:
    fd = _open_folder(root, start)
    try:
        entries = []
        for count, (_, entry) in enumerate(_scan_open(fd)):
            if count % 1024 == 1023 and patience.spent():
                raise TimeoutError("it has too many entries")
            entries += [] if entry is None else [entry]
    finally:
        os.close(fd)
    return tuple(sorted(entries, key=lambda entry: entry.name))


def _scan_open(fd: int) -> Iterator[tuple[str, DirEntry | None]]:
    """(raw name, entry or None when the name is not UTF-8) of the folder open as `fd`."""
    with os.scandir(fd) as scan:
        for item in scan:
            name = _name(os.fsencode(item.name))
            link = item.is_symlink()
            is_dir, is_file = item.is_dir(follow_symlinks=False), item.is_file(follow_symlinks=False)
            yield item.name, None if name is None else DirEntry(name, is_dir, link, is_file)


def _is_repository(fd: int) -> bool:
    try:
        os.stat(".git", dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _open_folder(root: str, path: str) -> int:
    """Folder `path` beneath `root`, opened step by step so that no symlink put in the way is followed."""
    fd = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    for part in path.split("/") if path else ():
        try:
            deeper = os.open(part, _FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = deeper
    return fd


def _name(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


COPIED_FILES = 50_000
COPIED_BYTES = 1 << 30


class WorkspaceTooLargeError(Exception):
    """The workspace is beyond the bounds; the text says which."""


async def copy_workspace(root: str, target: str) -> int:
    """Copy `root`, an absolute folder, into the existing folder `target`; how many files that were. Links are copied
    as links; a repository's hooks are left out. Raises TooLargeError, OSError."""
    listing = await Walker(root, limit=COPIED_FILES).files()
    if listing.truncated:
        raise WorkspaceTooLargeError(f"{root} has more than {COPIED_FILES} files")
    return await asyncio.to_thread(_copy, root, target, (*listing.files, *listing.links))


def _copy(root: str, target: str, names: tuple[str, ...]) -> int:
    repository = os.path.join(root, ".git")
    inside = tuple(_inside(repository)) if os.path.isdir(repository) else ()
    left = COPIED_BYTES
    count = 0
    for name in (*names, *(os.path.join(".git", one) for one in inside)):
        source, copy = os.path.join(root, name), os.path.join(target, name)
        try:
            left -= os.lstat(source).st_size
        except FileNotFoundError:
            continue
        if left < 0:
            raise WorkspaceTooLargeError(f"{root} has more than {COPIED_BYTES >> 20} MiB")
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy2(source, copy, follow_symlinks=False)
        count += 1
    for folder in ("refs", "objects"):
        if inside:
            os.makedirs(os.path.join(target, ".git", folder), exist_ok=True)
    return count


def _inside(repository: str) -> list[str]:
    paths = []
    for folder, names, files in os.walk(repository):
        inner = os.path.relpath(folder, repository)
        if inner == ".":
            names[:] = [name for name in names if name != "hooks"]
        paths += [os.path.normpath(os.path.join(inner, name)) for name in files if not name.endswith(".lock")]
    return paths
