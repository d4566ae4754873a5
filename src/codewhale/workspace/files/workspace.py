"""What is read from and written to a workspace, as data."""

import copy
import hashlib
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from stat import S_ISREG
from typing import BinaryIO

from msgspec import Struct

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.staging import Slot, Staging
from codewhale.permissions.folders import granted
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import Look, SessionError, ToolError
from codewhale.protocol.files import FileChange
from codewhale.protocol.tools import CallContext
from codewhale.workspace.files.beside import WiderRoot
from codewhale.workspace.files.errors import PathErrors, Redact, refuse_kind, refuse_marks, too_large


class FileBytes(Struct, frozen=True):
    """A regular file as read: its workspace-relative path, bytes, sha256 in hex and permission bits."""

    path: str
    data: bytes
    sha256: str
    mode: int


class OpenFile(Struct):
    """A regular file open for reading, unbuffered: its workspace-relative path as named and with links resolved, its
    size and permission bits, and the bytes of its beginning that were read already."""

    name: str
    resolved: str
    stream: BinaryIO
    size: int
    mode: int
    head: bytes = b""

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


class FileEdit(Struct, frozen=True, omit_defaults=True):
    """What a file is to become. `data` None deletes it. `move_from` names the file it was: that one goes, its
    permission bits stay. `executable` sets or clears the execute bits, None keeps them. `base` is the sha256 the
    edit was worked out from, "" for no file, None when it does not matter."""

    path: str
    data: bytes | None
    move_from: str = ""
    executable: bool | None = None
    base: str | None = None


def with_deletions(edits: Sequence[FileEdit]) -> list[FileEdit]:
    """The edits, each move followed by the deletion of what it moved, unless another edit writes there."""
    paths = {edit.path for edit in edits}
    whole: list[FileEdit] = []
    for edit in edits:
        whole.append(edit)
        if edit.move_from and edit.move_from not in paths:
            whole.append(FileEdit(edit.move_from, None))
    return whole


MAX_SESSIONS, MAX_FILES = 64, 4096


class ReadLedger:
    """The hash of each file as each session last read or wrote it. Bounded: the longest unused goes first."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, OrderedDict[str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, session: str, path: str, sha256: str | None) -> None:
        """The session now knows this content; None forgets the file."""
        if not session:
            return
        with self._lock:
            files = self._seen.setdefault(session, OrderedDict())
            self._seen.move_to_end(session)
            files.pop(path, None)
            if sha256 is not None:
                files[path] = sha256
            for bounded, limit in ((files, MAX_FILES), (self._seen, MAX_SESSIONS)):
                while len(bounded) > limit:
                    bounded.popitem(last=False)

    def known(self, session: str, path: str) -> str | None:
        with self._lock:
            files = self._seen.get(session)
            return None if files is None else files.get(path)


READ_LIMIT = 32 * 1024 * 1024
KEEP_LIMIT = 64 * 1024 * 1024
PROTECTED = frozenset({".git", ".codewhale", "git~1"})
_MAX_ROOTS = 64
_INVISIBLE = dict.fromkeys([0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF])


class Workspace:
    """The files beneath one root. Every error is a ToolError that names the path and a next call."""

    def __init__(self, root: str, artifacts: ArtifactStore, redact: Redact | None = None) -> None:
        self._root = Root(root)
        self._redact = redact
        self.root = self._root.path
        self.artifacts = artifacts
        self._errors = PathErrors(self._root)
        self._ledger = ReadLedger()
        self._writing = threading.Lock()

    def beside(self, places: tuple[str, ...]) -> "Workspace":
        """The same files, with what lies in these places under absolute paths."""
        wider = copy.copy(self)
        wider._root = WiderRoot(self.root, places)
        wider._errors = PathErrors(wider._root)
        return wider

    def relative(self, path: str, write: bool = True) -> str:
        """The normalised path beneath the root, of a file to be written unless `write` is False. Raises ToolError
        path_escape."""
        try:
            return self._root.relative(path)
        except PathRefused as refused:
            raise self._errors.escape(path, refused, write)

    def resolve(self, path: str) -> str:
        with self._explained(path):
            return self._root.resolve(path)

    def folder(self, path: str) -> tuple[str, os.stat_result]:
        """The path of what should be a folder, links replaced, and what it leads to."""
        with self._explained(path, stat.S_ISDIR):
            return self._root.resolve(path), self._root.stat(path)

    def stat(self, path: str) -> os.stat_result:
        with self._explained(path):
            return self._root.stat(path)

    def exists(self, path: str) -> bool:
        with self._explained(path), suppress(FileNotFoundError):
            self._root.stat(path)
            return True
        return False

    def scandir(self, path: str, limit: int | None = None) -> list[tuple[str, bool, bool]]:
        """Entries of a folder as (name, is a folder, is a link), unsorted."""
        with self._explained(path):
            return self._root.scandir(path, limit)

    def open(self, path: str) -> OpenFile:
        """A regular file for reading, to be closed. Folders, pipes, sockets and devices are refused unopened."""
        name = self.relative(path, write=False)
        with self._explained(path):
            refuse_kind(name, self._root.stat(path).st_mode)
            resolved = self._root.resolve(path)
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
            stream = os.fdopen(self._root.open(resolved, flags, links=False), "rb", buffering=0)
        info = os.fstat(stream.fileno())
        try:
            refuse_kind(name, info.st_mode)
        except ToolError:
            stream.close()
            raise
        return OpenFile(name, resolved, stream, info.st_size, stat.S_IMODE(info.st_mode))

    def begin(self, file: OpenFile, size: int) -> bytes:
        """The first bytes of a file that was just opened, at most `size`; `take` begins with them."""
        with self._explained(file.name):
            file.head = file.stream.read(size)
        return file.head

    def read(self, path: str, session: str = "", limit: int = READ_LIMIT) -> FileBytes:
        """A whole regular file of at most `limit` bytes; `session` is recorded as having seen it."""
        with self.open(path) as file:
            return self.take(file, session, limit)

    def load(self, path: str) -> bytes | None:
        """The bytes of a file, None where there is none."""
        return self.read(path).data if self.exists(path) else None

    def take(self, file: OpenFile, session: str = "", limit: int = READ_LIMIT) -> FileBytes:
        """What `read` answers, of a file that is open and of which nothing but the head was read."""
        data = b"" if file.size > limit else file.head + self._read_bounded(file.name, file.stream, limit)
        if file.size > limit or len(data) > limit:
            raise too_large(file.name, file.size, limit)
        sha256 = hashlib.sha256(data).hexdigest()
        self._ledger.note(session, file.resolved, sha256)
        return FileBytes(file.name, data, sha256, file.mode)

    def write(self, session: str, path: str, data: bytes, stale_check: bool = True) -> FileChange:
        self.check_name(path)
        return self.apply(session, (FileEdit(path, data),), stale_check)[0]

    def apply(self, session: str, edits: Sequence[FileEdit], stale_check: bool = True) -> tuple[FileChange, ...]:
        """Make every edit or none. Answers one change per file touched, in order; a file that already was as
        wanted has equal hashes and was left alone. Raises ToolError with nothing changed."""
        with self._writing:
            staging = Staging(self._root)
            try:
                changes = [self._stage(staging, session, edit, stale_check) for edit in with_deletions(edits)]
                staging.commit()
            except (PathRefused, OSError) as error:
                raise self._errors.explain(staging.at, error, write=True)
            finally:
                staging.close()
        for change in changes:
            self._ledger.note(session, change.path, change.after)
        return tuple(changes)

    def forget(self, session: str, paths: Iterable[str]) -> None:
        for path in paths:
            self._ledger.note(session, path, None)

    def check(self, session: str, edits: Sequence[FileEdit]) -> None:
        """Raise what `apply` would refuse, without writing."""
        for edit in with_deletions(edits):
            name = self.resolve(edit.path)
            self._refuse_protected(edit.path, name)
            old = self.read(name, limit=KEEP_LIMIT).sha256 if self.exists(name) else None
            self._refuse_stale(session, name, old, edit.base)

    def check_name(self, path: str) -> None:
        """Raise for a new file that is named as nobody names one: dressed, or with the folders of a diff."""
        if (dressed := self._errors.dressed(path, True)) is not None:
            raise dressed

    def missing(self, path: str) -> ToolError:
        """The error for a path that does not exist, with the likeliest name beside it."""
        return self._errors.missing(path)

    def check_fresh(self, session: str, file: FileBytes) -> None:
        """Raise what `apply` would when the session last saw other bytes than these."""
        self._refuse_stale(session, self.resolve(file.path), file.sha256, None)

    def _stage(self, staging: Staging, session: str, edit: FileEdit, stale_check: bool) -> FileChange:
        staging.at = edit.path
        name = self._root.resolve(edit.path)
        self._refuse_protected(edit.path, name)
        if edit.data is None:
            self._refuse_link(edit.path, name)
        elif (dressed := self._errors.dressed(edit.path, False)) is not None:
            raise dressed
        slot = staging.slot(name, create=edit.data is not None)
        self._refuse_slot(name, slot, edit)
        before = self._before(name, slot)
        old = hashlib.sha256(before).hexdigest() if before is not None else None
        if stale_check:
            self._refuse_stale(session, name, old, edit.base)
        if before is not None and edit.data is not None and self._redact is not None:
            refuse_marks(name, before, edit.data, self._redact)
        artifact = None if before is None else self._keep(name, before)
        if edit.data is None:
            staging.delete(slot, before)
            return FileChange(name, old, None, artifact)
        if before != edit.data or edit.executable is not None:
            staging.replace(slot, before, edit.data, self._mode(slot, edit))
        return FileChange(name, old, hashlib.sha256(edit.data).hexdigest(), artifact)

    def _keep(self, name: str, before: bytes) -> str:
        try:
            return self.artifacts.put(before)
        except SessionError as error:
            raise ToolError(
                "execution_failed",
                f"{name} was not changed, since its former content cannot be kept: {error}",
                field="path",
                expected="room on the disk",
                received=f"{len(before):,} bytes to keep",
            )

    def _before(self, name: str, slot: Slot) -> bytes | None:
        if slot.found is None:
            return None
        if slot.found.st_size > KEEP_LIMIT:
            raise too_large(name, slot.found.st_size, KEEP_LIMIT)
        fd = os.open(slot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=slot.folder)
        with os.fdopen(fd, "rb", buffering=0) as stream:
            return self._read_bounded(name, stream, KEEP_LIMIT)

    def _mode(self, slot: Slot, edit: FileEdit) -> int:
        info = slot.found
        if edit.move_from:
            info = self._root.stat(edit.move_from)
        mode = stat.S_IMODE(info.st_mode) if info is not None else 0o666 & ~file_mask()
        if edit.executable is None:
            return mode
        return mode | (mode & 0o444) >> 2 if edit.executable else mode & ~0o111

    def _read_bounded(self, path: str, stream: BinaryIO, limit: int) -> bytes:
        pieces, left = [], limit + 1
        with self._explained(path):
            while left > 0 and (piece := stream.read(min(left, 1 << 20))):
                pieces.append(piece)
                left -= len(piece)
        return b"".join(pieces)

    @contextmanager
    def _explained(self, path: str, wanted: Callable[[int], bool] = S_ISREG) -> Iterator[None]:
        """Raise what the file system says of a path as a ToolError."""
        try:
            yield
        except (PathRefused, OSError) as error:
            raise self._errors.explain(path, error, wanted=wanted)

    def _refuse_protected(self, path: str, resolved: str) -> None:
        names = [*self.relative(path).split("/"), *resolved.split("/")]
        folded = {name.translate(_INVISIBLE).casefold() for name in names}
        pointed = self._git_folder()
        if folded & PROTECTED or (pointed and (resolved == pointed or resolved.startswith(pointed + "/"))):
            raise ToolError(
                "permission_denied",
                f"{path} belongs to git or to CodeWhale and is never written by a tool. If it must change, say so "
                "in your answer",
                field="path",
                expected="a path outside .git and .codewhale",
                received=path,
            )

    def _git_folder(self) -> str:
        """The git folder inside the root that a `.git` file points at, "" when there is none."""
        try:
            with self.open(".git") as file:
                text = file.stream.read(4096).decode("utf-8", "surrogateescape")
            return self._root.resolve(text.removeprefix("gitdir:").strip()) if text.startswith("gitdir:") else ""
        except (ToolError, PathRefused, OSError):
            return ""

    def _refuse_link(self, path: str, resolved: str) -> None:
        folder, leaf = os.path.split(self.relative(path))
        if os.path.join(self._root.resolve(folder or "."), leaf) not in (resolved, f"./{resolved}"):
            raise ToolError(
                "execution_failed",
                f"{path} is a link to {resolved}; a link is not deleted or moved as a file",
                field="path",
                expected="a regular file",
                received=path,
                fix=Look("read_file", {"path": resolved}),
            )

    def _refuse_slot(self, name: str, slot: Slot, edit: FileEdit) -> None:
        if slot.found is None:
            if edit.data is None:
                raise self._errors.missing(name)
            return
        refuse_kind(name, slot.found.st_mode)
        if not slot.found.st_mode & 0o222:
            raise ToolError(
                "permission_denied",
                f"{name} is read-only (mode {stat.S_IMODE(slot.found.st_mode):04o})",
                field="path",
                expected="a writable file",
                received=edit.path,
            )

    def _refuse_stale(self, session: str, name: str, now: str | None, base: str | None) -> None:
        known = self._ledger.known(session, name)
        if known in (None, now):
            known = base
        if known is None or known == (now or ""):
            return
        if now is None:
            self._ledger.note(session, name, None)
            text = f"{name} was deleted since this session last read it; write it again only if that is wanted"
            fix = None
        else:
            text = f"{name} changed on disk since this session last read it (sha256 now {now}); read it again first"
            fix = Look("read_file", {"path": name})
        raise ToolError(
            "execution_failed",
            text,
            field="path",
            expected=f"sha256 {known}" if known else "no such file",
            received=f"sha256 {now}" if now else "no such file",
            fix=fix,
        )


class Workspaces:
    """Workspaces by root, so that all sessions of a process share one ledger and one write lock per root."""

    def __init__(self, artifacts: ArtifactStore, redact: Callable[[str], Redact] | None = None) -> None:
        """`redact(root)` is what hides secrets from the model: what it put in their place is never written over
        them."""
        self.artifacts = artifacts
        self._redact = redact
        self._known: OrderedDict[str, Workspace] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, call: CallContext) -> Workspace:
        """The workspace of a call, with the places outside that it may use."""
        places = granted(call.allowances)
        return self.at(call.workspace).beside(places) if places else self.at(call.workspace)

    def at(self, root: str) -> Workspace:
        real = os.path.realpath(root)
        with self._lock:
            if real not in self._known:
                redact = None if self._redact is None else self._redact(real)
                self._known[real] = Workspace(real, self.artifacts, redact)
            self._known.move_to_end(real)
            if len(self._known) > _MAX_ROOTS:
                self._known.popitem(last=False)
            return self._known[real]


@lru_cache(maxsize=1)
def file_mask() -> int:
    """The permission bits new files go without."""
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"Umask:"):
                    return int(line.split()[1], 8)
    except OSError:
        pass
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
