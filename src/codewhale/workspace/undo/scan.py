"""Looking at files beneath a root: what stands at a path, through no link, and read only where it is not known yet; and
which files ignore rules hid before a call."""

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

from msgspec import Struct

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.permissions.shell.paths import secret_file
from codewhale.process.repository import find_repository
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.workspace.ignore import RULE_FILES, IgnoreRules, rules_in
from codewhale.workspace.undo.journal import Change, FileState, JournalContent, blob_id

FILE_LIMIT = 32 << 20
FRESH = 2_000_000_000  # a file touched so short before it was looked at may change again without a trace (nanoseconds)
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

FileIdentity = tuple[int, ...]


class TooMuchError(Exception):
    """The workspace is beyond a bound; the text says which."""


class TooLongError(TooMuchError):
    """Looking took too long; what was seen so far is good."""


class KnownFile(Struct, frozen=True, array_like=True):
    """A file as it was last looked at. While `identity` (inode, size, times, mode) is the same it need not be read
    again; () where that cannot be relied on. `born` is its ctime."""

    state: FileState
    identity: FileIdentity
    born: int = 0


class FileLook(Struct, frozen=True):
    """What stands at a path: nothing (`known` None), or a file with the bytes that were read of it."""

    path: str
    known: KnownFile | None
    data: bytes | None = None


class FileScanner:
    """Looks at many files in a row, for so many seconds; `stop` ends it. With `discreet` the bytes of files that look
    like those of secrets are left out, unless they are kept already."""

    def __init__(self, root: Root, seconds: float, discreet: bool = False) -> None:
        self._root = root
        self._discreet = discreet
        self._deadline = time.monotonic() + seconds
        self.stop = threading.Event()

    def all(self, paths: Iterable[str], known: dict[str, KnownFile]) -> Iterator[FileLook]:
        """What stands at each path now, in the order of their folders; those that are `known` and the same are left
        out. Raises TooLongError."""
        for folder, names in groupby(sorted(paths), key=_folder):
            try:
                fd = self._root.open_dir(folder or ".", links=False)
            except PathRefused:
                continue
            except OSError:
                yield from (FileLook(path, None) for path in names if path in known)
                continue
            before = len(folder) + 1 if folder else 0
            try:
                for path in names:
                    look = self._one(fd, path, path[before:], known.get(path))
                    if look is not None:
                        yield look
            finally:
                os.close(fd)

    def _one(self, folder: int, path: str, name: str, known: KnownFile | None) -> FileLook | None:
        if self.stop.is_set() or time.monotonic() > self._deadline:
            raise TooLongError("checking its files took too long")
        try:
            info = os.lstat(name, dir_fd=folder)
        except OSError:
            return None if known is None else FileLook(path, None)
        if known is not None and known.identity and known.identity == _identity(info):
            return None
        look = self._read(folder, path, info, known)
        return None if look.known is None and known is None else look

    def _read(self, folder: int, path: str, info: os.stat_result, known: KnownFile | None) -> FileLook:
        kept = known is not None and known.state.blob
        if self._discreet and not kept and stat.S_ISREG(info.st_mode) and secret_file(path):
            return FileLook(path, _known(info, FileState(info.st_mode, "", info.st_size)))
        return _read(folder, os.path.basename(path), path, info)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def change_of(look: FileLook, known: KnownFile | None) -> JournalContent | None:
    """The change that a look shows against what was known, None when the file is the same."""
    before = None if known is None else known.state
    after = None if look.known is None else look.known.state
    if before is not None and after is not None and before.is_coarse and not after.is_link:
        before = FileState((after.mode & ~0o100) | (before.mode & 0o100), before.blob, before.size)
    if before == after:
        return None
    return JournalContent(Change(look.path, before, after), look.data)


def _read(folder: int, name: str, path: str, info: os.stat_result) -> FileLook:
    """A regular file or a link as it is; anything else is no file."""
    if stat.S_ISLNK(info.st_mode):
        try:
            data = os.fsencode(os.readlink(name, dir_fd=folder))
        except OSError:
            return FileLook(path, None)
        return FileLook(path, _known(info, FileState(stat.S_IFLNK | 0o777, blob_id(data), len(data))), data)
    if not stat.S_ISREG(info.st_mode):
        return FileLook(path, None)
    if info.st_size > FILE_LIMIT:
        return FileLook(path, _known(info, FileState(info.st_mode, "", info.st_size)))
    try:
        fd = os.open(name, _OPEN, dir_fd=folder)
        info = os.fstat(fd)
        read = read_regular(fd, FILE_LIMIT)
    except OSError:
        read = None
    if read is None:
        return FileLook(path, _known(info, FileState(info.st_mode, "", info.st_size)))
    return FileLook(path, _known(info, FileState(info.st_mode, blob_id(read), len(read))), read)


def _known(info: os.stat_result, state: FileState) -> KnownFile:
    fresh = max(info.st_mtime_ns, info.st_ctime_ns) > time.time_ns() - FRESH
    return KnownFile(state, () if fresh else _identity(info), info.st_ctime_ns)


def _identity(info: os.stat_result) -> FileIdentity:
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_mode


_SECONDS = 10.0


def is_rule_file(path: str) -> bool:
    return os.path.basename(path) in RULE_FILES


def ignored_before(root: Root, paths: Iterable[str], former: Mapping[str, bytes]) -> set[str]:
    """Those of the paths that were ignored while the rule files in `former` held these bytes ("" for none)."""
    until = time.monotonic() + _SECONDS
    asked = tuple(paths)
    try:
        sight = _FormerRules(root, former, lambda: time.monotonic() > until)
        return {path for path in asked if sight.hides(path)}
    except TimeoutError:  # hostile rules: what may have been somebody's is left alone
        return set(asked)


class _FormerRules:
    def __init__(self, root: Root, former: Mapping[str, bytes], spent: Callable[[], bool]) -> None:
        self._root = root
        self._former = former
        above = IgnoreRules.personal(spent)
        repository = find_repository(root.path)
        if repository is not None:
            data = read_small(os.path.join(repository.common, "info", "exclude"))
            above = above.adding("", data) if data else above
        self._rules = {"": self._entering("", above)}
        self._hidden = {"": False}

    def hides(self, path: str) -> bool:
        folder = os.path.dirname(path)
        return self._hides_folder(folder) or self._rules[folder].ignores(path, False)

    def _hides_folder(self, folder: str) -> bool:
        if folder not in self._hidden:
            above = os.path.dirname(folder)
            self._hidden[folder] = self._hides_folder(above) or self._rules[above].ignores(folder, True)
            self._rules[folder] = self._entering(folder, self._rules[above])
        return self._hidden[folder]

    def _entering(self, folder: str, rules: IgnoreRules) -> IgnoreRules:
        for name in RULE_FILES:
            data = self._data(os.path.join(folder, name))
            rules = rules.adding(folder, data) if data else rules
        return rules

    def _data(self, path: str) -> bytes:
        if path in self._former:
            return self._former[path]
        try:
            return rules_in(self._root.open(path, _OPEN, links=False))
        except (PathRefused, OSError):
            return b""
