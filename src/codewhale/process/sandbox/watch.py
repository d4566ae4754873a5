"""Watching a workspace for what a command leaves there that would make plain git run things: new repositories and
worktrees, folders that git takes for one, and changes of those that nothing can be laid over."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from codewhale.lib.beneath import Root
from codewhale.lib.text import one_line
from codewhale.process.sandbox.gitfiles import SET_ASIDE, arms_of, existing_arms, harmless, read_file
from codewhale.process.sandbox.profiles import Confinement, Site, beneath
from codewhale.protocol.protected import is_git_directory

MOST_FOLDERS = 200_000
_MOST_KEPT = 16 << 20
_RACY = 50_000_000  # nanoseconds: a folder that changed just before it was looked at is looked at again
_SHOWN = 12
_OVER = f"There are more than {MOST_FOLDERS} folders; the others were not checked for files that git obeys."


class _Folder(Struct, frozen=True):
    """One folder as it was listed: its stamp then, the folders in it to go on with, and the places in it."""

    stamp: tuple[int, int, int]
    folders: tuple[str, ...]
    places: tuple[str, ...]


class GitWatch:
    """The git directories of one workspace. All commands that run there at the same time share one; its methods are
    called by one thread at a time each."""

    def __init__(self, root: str, home: str = "") -> None:
        self.root = root
        self.home = home  # where it lies in there, no command changes what begins with a dot
        self.over = self._warned = False
        self._folders: dict[str, _Folder] = {}
        self._known: set[tuple[object, ...]] = set()
        self._contents: dict[str, bytes] = {}
        self._closed: dict[str, tuple[int, int, int]] = {}
        self._running = 0
        self._lock = threading.Lock()

    def enter(self) -> tuple[str, ...]:
        """A command begins: how it is now is how it may be, unless another one runs already; what is there and must
        stay as it is."""
        with self._lock:
            places = self._places()
            if self._running == 0:
                self._begin(places)
            self._running += 1
            return tuple(path for place in places for path in existing_arms(place))

    def leave(self) -> None:
        """It has ended, and was repaired."""
        with self._lock:
            self._running -= 1

    def restore(self, held: Sequence[str]) -> list[str]:
        """Put back or set aside what is new and steers git, but for places that the command could not change; a line
        for people about each. Never raises OSError."""
        with self._lock:
            arms = [arm for place in self._places() for arm in arms_of(place, self.root)]
            fresh = [arm for arm in arms if not self._known.intersection(arm.marks)]
            fresh = [arm for arm in fresh if not any(beneath(arm.path, place) for place in held)]
            lines = []
            for path in dict.fromkeys(arm.path for arm in fresh):
                names = ", ".join(dict.fromkeys(arm.what for arm in fresh if arm.path == path))
                lines.append(f"{os.path.relpath(path, self.root)} ({names}): {self._out_of_the_way(path)}")
            over = [_OVER] if self.over and not self._warned else []
            self._warned = self.over
            return _lines(lines) + over

    def _begin(self, places: Sequence[str]) -> None:
        arms = [arm for place in places for arm in arms_of(place, self.root)]
        self._known = {mark for arm in arms for mark in arm.marks}
        self._contents = {}
        left = _MOST_KEPT
        paths = [path for place in places for path in existing_arms(place) if os.path.isfile(path)]
        for path in dict.fromkeys((*paths, *(arm.path for arm in arms))):
            data = read_file(path)
            if data is not None and len(data) <= left:
                left -= len(data)
                self._contents[path] = data

    def _places(self) -> list[str]:
        """Every git directory, and every `.git` that is a file or a link; folders that did not change are not listed
        again."""
        places: list[str] = []
        seen: dict[str, _Folder] = {}
        todo = [self.root]
        while todo and len(seen) < MOST_FOLDERS:
            folder = todo.pop()
            kept = self._listed(folder)
            if kept is not None:
                seen[folder] = kept
                places += kept.places
                todo += kept.folders
        self.over = bool(todo)
        self._folders = seen
        return places

    def _listed(self, folder: str) -> _Folder | None:
        try:
            now = os.lstat(folder)
            stamp = (now.st_ctime_ns, now.st_mtime_ns, now.st_ino)
            kept = self._folders.get(folder)
            if kept is not None and kept.stamp == stamp:
                return kept
            racy = time.time_ns() - now.st_ctime_ns < _RACY
            try:
                rows = _rows(folder)
            except PermissionError:
                rows = self._opened(folder, stamp)
        except OSError:
            return None
        names = {name for name, _, _ in rows}
        folders = [path for name, path, inner in rows if inner]
        if folder == self.home:
            folders = [path for path in folders if os.path.basename(path)[0] != "." or path.endswith("/.git")]
        places = [path for name, path, _ in rows if name == ".git"]
        of_git = is_git_directory(names) or ("config" in names and "/.git/modules/" in folder)
        if of_git or os.path.basename(folder) == ".git":
            folders = [path for path in folders if os.path.basename(path) != "objects"]
            places += [folder] if folder == self.root or os.path.basename(folder) != ".git" else []
        return _Folder((0, 0, 0) if racy else stamp, tuple(folders), tuple(places))

    def _opened(self, folder: str, stamp: tuple[int, int, int]) -> list[tuple[str, str, bool]]:
        """What stands in a folder that is closed to its owner: it is opened again if that is new."""
        if self._running == 0 or self._closed.get(folder) == stamp:
            self._closed[folder] = stamp
            return []
        fd = os.open(folder, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.chmod(f"/proc/self/fd/{fd}", os.fstat(fd).st_mode & 0o7777 | 0o700)
        finally:
            os.close(fd)
        return _rows(folder)

    def _out_of_the_way(self, path: str) -> str:
        """What was done about it, for people."""
        folder, name = os.path.split(os.path.relpath(path, self.root))
        try:
            fd = Root(self.root).open_dir(folder or ".", links=False)
        except (OSError, ValueError):
            return "it no longer exists"
        try:
            os.fchmod(fd, os.fstat(fd).st_mode & 0o7777 | 0o700)  # a command may have closed it
            before = self._contents.get(path)
            if before is not None:
                _replace(name, before, fd)
                return "restored"
            data = read_file(path)
            aside = _free(name, fd)
            os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=fd)
            if name == "config" and data is not None and harmless(data):
                _replace(name, harmless(data), fd)
            return f"moved to {aside}"
        except OSError as error:
            return f"could not be moved ({error.strerror})"
        finally:
            os.close(fd)


def _rows(folder: str) -> list[tuple[str, str, bool]]:
    with os.scandir(folder) as entries:
        return [(entry.name, entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]


def _replace(name: str, data: bytes, folder: int) -> None:
    """Atomically, and never through a link."""
    draft = f"{name}.{os.getpid()}.draft"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=folder)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
    os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def _free(name: str, folder: int) -> str:
    taken = set(os.listdir(folder))
    names = (f"{name}{number or ''}{SET_ASIDE}" for number in range(len(taken) + 1))
    return next(one for one in names if one not in taken)


def _lines(lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return ["These files would change what git runs or reads; they were moved or restored:", *lines[:_SHOWN], *more]


Ended = asyncio.Future[Any]
# Files that are laid over each; what is beyond is put back afterwards.
_MOST_ARMS = 256
# Seconds between two looks, and at least so many times the cost of one.
_PAUSE, _SHARE = 1.0, 20


class CommandWatch:
    """What is watched for one command. `arms` are there already and must stay as they are; `held` it cannot change."""

    def __init__(self, roots: Sequence[str], home: str) -> None:
        self._wards = [_ward(root, home) for root in roots]
        self.held: tuple[str, ...] = ()
        self._left = self._last = False
        paths = dict.fromkeys(path for ward in self._wards for path in ward.enter())
        self.arms = tuple(paths)[:_MOST_ARMS]

    async def follow(self, gone: Ended, done: Ended, tell: Callable[[str], None]) -> None:
        """Look now and then while anything of it runs, and a last time after that."""
        cost = 0.0
        while not gone.done():
            await asyncio.wait((gone,), timeout=max(_PAUSE, _SHARE * cost))
            if not gone.done():
                began = time.monotonic()
                await self.look(gone, tell)
                cost = time.monotonic() - began
        await asyncio.wait((done,))
        if not self._last:
            await self.look(gone, tell)
        self.leave()

    async def look(self, gone: Ended, tell: Callable[[str], None]) -> None:
        """Put back or set aside what is there now, and tell."""
        self._last = gone.done()
        for ward in self._wards:
            for line in await asyncio.to_thread(ward.restore, self.held):
                tell(f"codewhale: {one_line(line, 400)}\n")

    def leave(self) -> None:
        """The command is gone. A second time does nothing."""
        if not self._left:
            self._left = True
            for ward in self._wards:
                ward.leave()


def watched(site: Site, wanted: Confinement) -> CommandWatch:
    """A share for a command that may write there; it looks through all of it."""
    outside = (place.path for place in site.git if not beneath(place.path, site.workspace))
    return CommandWatch(list(dict.fromkeys((site.workspace, *outside, *wanted.folders))), site.home)


@lru_cache(maxsize=256)
def _ward(root: str, home: str) -> GitWatch:
    return GitWatch(root, home)
