"""Paths beneath a root, opened without a race: whatever a name says or a link points at, nothing outside the
root is read or written. The kernel's openat2 does it in one step; elsewhere the path is walked by hand, one
directory descriptor at a time."""

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_OPENAT2 = 437
_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_ENTER = _O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_ERRORS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
_MAX_LINKS = 40
_MAX_BUSY = 128
_DRIVE = re.compile(r"[A-Za-z]:")

KernelOpen = Callable[[int, bytes, int, int, int], int]


class PathRefused(ValueError):
    """A path that leaves the root, or is spelled so that another system would leave it. `reason` is one
    clause for a person."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Root:
    """A directory and all beneath it.

    `kernel` False resolves by hand even where openat2 exists. Links are followed as long as they stay inside;
    every method raises PathRefused for a way out and OSError for what the file system says.
    """

    def __init__(self, path: str, *, kernel: bool = True) -> None:
        self.path = os.path.realpath(path)
        self._spellings = tuple({self.path, os.path.abspath(path)})
        self._kernel = _kernel_open() if kernel else None

    def relative(self, path: str) -> str:
        """The normalised POSIX path beneath the root, "." for the root itself. Takes relative paths and
        absolute ones inside; looks at the spelling alone, never at the disk."""
        if not path:
            raise PathRefused("it is empty")
        if "\0" in path:
            raise PathRefused("it contains a NUL byte")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise PathRefused("it cannot be encoded")
        if path == "~" or path.startswith("~/"):
            raise PathRefused("it names the home folder")
        _refuse_foreign(path)
        return "/".join(_normal(self.inside(path) if path.startswith("/") else path)) or "."

    def inside(self, path: str) -> str:
        """The part of an absolute path after the root, "" for the root itself. Raises PathRefused outside."""
        for root in self._spellings:
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return path[len(root) :].lstrip("/")
        raise PathRefused("it is outside the workspace")

    def open(self, path: str, flags: int, mode: int = 0o666, *, links: bool = True) -> int:
        """A descriptor, closed on exec. `links` False refuses any link on the way (OSError ELOOP or ENOTDIR)."""
        name = self.relative(path)
        flags |= os.O_CLOEXEC
        if self._kernel is not None:
            resolve = _BENEATH | _NO_MAGICLINKS | (0 if links else _NO_SYMLINKS)
            top = -1
            try:
                top = os.open(self.path, _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                return self._kernel(top, os.fsencode(name), flags, mode if flags & os.O_CREAT else 0, resolve)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EAGAIN):
                    raise OSError(error.errno, error.strerror, path)
            finally:
                if top >= 0:
                    os.close(top)
        with self._walk(name, links) as walk:
            return walk.open(flags, mode)

    def open_dir(self, path: str, create: bool = False, *, links: bool = True) -> int:
        """A descriptor of a directory that can be listed and synced. `create` makes what is missing."""
        try:
            return self.open(path, os.O_RDONLY | os.O_DIRECTORY, links=links)
        except FileNotFoundError:
            name = self.relative(path)
            if not create or name == ".":
                raise
        above = self.open_dir(os.path.dirname(name) or ".", True, links=links)
        try:
            os.mkdir(os.path.basename(name), dir_fd=above)
        except FileExistsError:
            pass
        finally:
            os.close(above)
        return self.open(name, os.O_RDONLY | os.O_DIRECTORY, links=links)

    def stat(self, path: str) -> os.stat_result:
        """What the path leads to, links followed."""
        fd = self.open(path, _O_PATH | os.O_NONBLOCK if _O_PATH == os.O_RDONLY else _O_PATH)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def scandir(self, path: str, limit: int | None = None) -> list[tuple[str, bool, bool]]:
        """Entries as (name, is a directory, is a link), unsorted, at most `limit`; a link is no directory."""
        fd = self.open_dir(path)
        found: list[tuple[str, bool, bool]] = []
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if limit is not None and len(found) >= limit:
                        break
                    found.append((entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()))
        finally:
            os.close(fd)
        return found

    def resolve(self, path: str) -> str:
        """The path with every link on the way replaced by what it points at; what does not exist yet is kept
        as spelled. A snapshot: open the answer with `links=False` to be sure it still holds."""
        with self._walk(self.relative(path), True) as walk:
            return walk.resolve()

    @contextmanager
    def _walk(self, name: str, links: bool) -> Iterator["_Walk"]:
        walk = _Walk(self, name, links)
        try:
            yield walk
        finally:
            walk.close()


class _Walk:
    """One resolution by hand: the open directories from the root down, and the names still to go."""

    def __init__(self, root: Root, name: str, links: bool) -> None:
        self._root = root
        self._links = links
        self._hops = _MAX_LINKS
        self._todo = _parts(name)
        self._trail: list[str] = []
        self._stack = [os.open(root.path, _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]

    def close(self) -> None:
        """Close every directory."""
        while self._stack:
            os.close(self._stack.pop())

    def open(self, flags: int, mode: int) -> int:
        """Open the last name in its directory, never through a link that was not followed by hand."""
        keep_link = bool(flags & os.O_NOFOLLOW)
        while True:
            while len(self._todo) > 1:
                self._enter(self._todo.pop())
            name = self._todo.pop() if self._todo else "."
            if name == "..":
                self._enter(name)
                name = "."
            try:
                fd = os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=self._stack[-1])
            except OSError as error:
                if keep_link or error.errno not in _LINK_ERRORS:
                    raise
                self._follow(name, error)
                continue
            if keep_link or not stat.S_ISLNK(os.fstat(fd).st_mode):
                return fd
            os.close(fd)
            self._follow(name, OSError(errno.ELOOP, os.strerror(errno.ELOOP), name))

    def resolve(self) -> str:
        """The names from the root to the end, links replaced."""
        while self._todo:
            name = self._todo.pop()
            if name == "..":
                self._enter(name)
                continue
            try:
                kind = os.lstat(name, dir_fd=self._stack[-1]).st_mode
            except FileNotFoundError:
                return "/".join(_normal("/".join([*self._trail, name, *reversed(self._todo)])))
            if stat.S_ISLNK(kind):
                self._follow(name, OSError(errno.ELOOP, os.strerror(errno.ELOOP), name))
            elif self._todo or stat.S_ISDIR(kind):
                self._enter(name)
            else:
                self._trail.append(name)
        return "/".join(self._trail) or "."

    def _enter(self, name: str) -> None:
        if name == "..":
            if len(self._stack) == 1:
                raise PathRefused("a link leads outside the workspace")
            os.close(self._stack.pop())
            self._trail.pop()
            return
        try:
            fd = os.open(name, _ENTER, dir_fd=self._stack[-1])
        except OSError as error:
            if error.errno not in _LINK_ERRORS:
                raise
            self._follow(name, error)
            return
        self._stack.append(fd)
        self._trail.append(name)

    def _follow(self, name: str, error: OSError) -> None:
        """Put the parts of a link's target before the names still to go; `error` is raised for what is no link."""
        try:
            target = os.readlink(name, dir_fd=self._stack[-1])
        except OSError:
            raise error
        self._hops -= 1
        if not self._links or self._hops < 0:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        if target.startswith("/"):
            try:
                target = self._root.inside(target)
            except PathRefused:
                raise PathRefused("a link leads outside the workspace")
            while len(self._stack) > 1:
                os.close(self._stack.pop())
            self._trail.clear()
        self._todo.extend(_parts(target))


def _parts(path: str) -> list[str]:
    """The names of a path, last first, empty and "." left out."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _normal(path: str) -> list[str]:
    """The names of a relative path with "." and ".." worked off. Raises PathRefused for a climb and for names
    that another system would read as a shorter one."""
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                raise PathRefused("it leads out of the workspace")
            parts.pop()
            continue
        if part[-1] in ". ":
            raise PathRefused(f"the name {part!r} ends in a dot or a space")
        parts.append(part)
    return parts


def _refuse_foreign(path: str) -> None:
    """Refuse drives, network shares and backslashes that climb."""
    if _DRIVE.match(path):
        raise PathRefused("it names a drive")
    if path.startswith(("//", "\\")):
        raise PathRefused("it names a network share")
    if "\\" in path and ".." in re.split(r"[\\/]", path):
        raise PathRefused("it leaves the workspace through backslashes")


@cache
def _kernel_open() -> KernelOpen | None:
    """openat2(directory, path, flags, mode, resolve) as a function, or None where the kernel has none."""
    if sys.platform != "linux":
        return None
    import ctypes

    class How(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    syscall.restype = ctypes.c_long

    def openat2(directory: int, path: bytes, flags: int, mode: int, resolve: int) -> int:
        how = How(flags, mode, resolve)
        code = errno.EAGAIN
        for _ in range(_MAX_BUSY):
            fd = syscall(_OPENAT2, directory, path, ctypes.byref(how), ctypes.sizeof(how))
            if fd >= 0:
                return int(fd)
            code = ctypes.get_errno()
            if code not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(code, os.strerror(code), os.fsdecode(path))

    top = os.open("/", _ENTER)
    try:
        os.close(openat2(top, b".", _ENTER, 0, _BENEATH))
    except OSError:
        return None
    finally:
        os.close(top)
    return openat2
