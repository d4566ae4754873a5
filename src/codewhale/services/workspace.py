"""The one reader and writer of workspace files: beneath the root, atomic, all or nothing, and never over
something that changed since the session last saw it."""

import errno
import hashlib
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import BinaryIO, Protocol

from msgspec import Struct

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.staging import Slot, Staging
from codewhale.protocol.errors import NextCall, SessionError, ToolError
from codewhale.protocol.files import FileChange
from codewhale.stores.artifacts import ArtifactStore

READ_LIMIT = 32 * 1024 * 1024
KEEP_LIMIT = 64 * 1024 * 1024
PROTECTED = frozenset({".git", ".codewhale", "git~1"})
_MAX_SESSIONS, _MAX_SEEN = 64, 4096
_INVISIBLE = dict.fromkeys([0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF])
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


class FileBytes(Struct, frozen=True):
    """A regular file as read: its workspace-relative path, bytes, sha256 in hex and permission bits."""

    path: str
    data: bytes
    sha256: str
    mode: int


class FileEdit(Struct, frozen=True, omit_defaults=True):
    """What a file is to become. `data` None deletes it. `move_from` names the file it was: that one goes, its
    permission bits stay. `executable` sets or clears the execute bits, None keeps them. `base` is the sha256 the
    edit was worked out from, "" for no file, None when it does not matter."""

    path: str
    data: bytes | None
    move_from: str = ""
    executable: bool | None = None
    base: str | None = None


class Edit(Protocol):
    """Anything shaped like a FileEdit."""

    @property
    def path(self) -> str: ...
    @property
    def data(self) -> bytes | None: ...
    @property
    def move_from(self) -> str: ...
    @property
    def executable(self) -> bool | None: ...
    @property
    def base(self) -> str | None: ...


class Ledger:
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
            for bounded, limit in ((files, _MAX_SEEN), (self._seen, _MAX_SESSIONS)):
                while len(bounded) > limit:
                    bounded.popitem(last=False)

    def known(self, session: str, path: str) -> str | None:
        """The hash the session saw last, None when it never did."""
        with self._lock:
            files = self._seen.get(session)
            return None if files is None else files.get(path)


class Workspace:
    """The files beneath one root. Every error is a ToolError that names the path and a next call."""

    def __init__(self, root: str, artifacts: ArtifactStore) -> None:
        self._root = Root(root)
        self.root = self._root.path
        self.artifacts = artifacts
        self._ledger = Ledger()
        self._writing = threading.Lock()

    def relative(self, path: str) -> str:
        """The normalised path beneath the root. Raises ToolError path_escape."""
        try:
            return self._root.relative(path)
        except PathRefused as refused:
            raise self._escape(path, refused)

    def resolve(self, path: str) -> str:
        """The path with links replaced by what they point at."""
        try:
            return self._root.resolve(path)
        except (PathRefused, OSError) as error:
            raise self._explain(path, error)

    def stat(self, path: str) -> os.stat_result:
        """What the path leads to."""
        try:
            return self._root.stat(path)
        except (PathRefused, OSError) as error:
            raise self._explain(path, error)

    def exists(self, path: str) -> bool:
        """Whether the path leads to anything inside."""
        try:
            self._root.stat(path)
        except FileNotFoundError:
            return False
        except (PathRefused, OSError) as error:
            raise self._explain(path, error)
        return True

    def scandir(self, path: str, limit: int | None = None) -> list[tuple[str, bool, bool]]:
        """Entries of a folder as (name, is a folder, is a link), unsorted."""
        try:
            return self._root.scandir(path, limit)
        except (PathRefused, OSError) as error:
            raise self._explain(path, error)

    def open(self, path: str) -> BinaryIO:
        """A regular file for reading, unbuffered. Folders, pipes, sockets and devices are refused unopened."""
        try:
            _refuse_kind(self.relative(path), self._root.stat(path).st_mode)
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
            stream = os.fdopen(self._root.open(self._root.resolve(path), flags, links=False), "rb", buffering=0)
        except (PathRefused, OSError) as error:
            raise self._explain(path, error)
        try:
            _refuse_kind(self.relative(path), os.fstat(stream.fileno()).st_mode)
        except ToolError:
            stream.close()
            raise
        return stream

    def read(self, path: str, session: str = "", limit: int = READ_LIMIT) -> FileBytes:
        """A whole regular file of at most `limit` bytes; `session` is recorded as having seen it."""
        name = self.relative(path)
        with self.open(path) as stream:
            found = os.fstat(stream.fileno())
            data = b"" if found.st_size > limit else self._read_bounded(path, stream, limit)
        if found.st_size > limit or len(data) > limit:
            raise _too_large(name, found.st_size, limit)
        sha256 = hashlib.sha256(data).hexdigest()
        self._ledger.note(session, self.resolve(path), sha256)
        return FileBytes(name, data, sha256, stat.S_IMODE(found.st_mode))

    def write(self, session: str, path: str, data: bytes, stale_check: bool = True) -> FileChange:
        """Create or replace one file, folders on the way included."""
        return self.apply(session, (FileEdit(path, data),), stale_check)[0]

    def apply(self, session: str, edits: Sequence[Edit], stale_check: bool = True) -> tuple[FileChange, ...]:
        """Make every edit or none. Answers one change per file touched, in order; a file that already was as
        wanted has equal hashes and was left alone. Raises ToolError with nothing changed."""
        with self._writing:
            staging = Staging(self._root)
            try:
                changes = [self._stage(staging, session, edit, stale_check) for edit in _spread(edits)]
                staging.commit()
            except (PathRefused, OSError) as error:
                raise self._explain(staging.at, error, write=True)
            finally:
                staging.close()
        for change in changes:
            self._ledger.note(session, change.path, change.after)
        return tuple(changes)

    def check(self, session: str, edits: Sequence[Edit]) -> None:
        """Raise what `apply` would refuse, without writing."""
        for edit in _spread(edits):
            name = self.resolve(edit.path)
            self._refuse_protected(edit.path, name)
            old = self.read(name, limit=KEEP_LIMIT).sha256 if self.exists(name) else None
            self._refuse_stale(session, name, old, edit.base)

    def check_fresh(self, session: str, file: FileBytes) -> None:
        """Raise what `apply` would when the session last saw other bytes than these."""
        self._refuse_stale(session, self.resolve(file.path), file.sha256, None)

    def missing(self, path: str) -> ToolError:
        """The error for a path that does not exist, with the likeliest name beside it."""
        name = self.relative(path)
        folder = self._nearest_folder(name)
        close = self._like(folder, name)
        fix = NextCall("list_dir", {"path": folder})
        text = f"no such file: {name}"
        if close:
            text += f". Did you mean {' or '.join(close)}?"
            if stat.S_ISREG(self._root.stat(close[0]).st_mode):
                fix = NextCall("read_file", {"path": close[0]})
        return ToolError(
            "execution_failed", text, field="path", expected="an existing file", received=path, fix=fix
        )  # fmt: skip

    def _stage(self, staging: Staging, session: str, edit: Edit, stale_check: bool) -> FileChange:
        staging.at = edit.path
        name = self._root.resolve(edit.path)
        self._refuse_protected(edit.path, name)
        if edit.data is None:
            self._refuse_link(edit.path, name)
        slot = staging.slot(name, create=edit.data is not None)
        self._refuse_slot(name, slot, edit)
        before = self._before(name, slot)
        old = hashlib.sha256(before).hexdigest() if before is not None else None
        if stale_check:
            self._refuse_stale(session, name, old, edit.base)
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
                fix=NextCall("read_file", {"path": name}),
            )

    def _before(self, name: str, slot: Slot) -> bytes | None:
        if slot.found is None:
            return None
        if slot.found.st_size > KEEP_LIMIT:
            raise _too_large(name, slot.found.st_size, KEEP_LIMIT)
        fd = os.open(slot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=slot.folder)
        with os.fdopen(fd, "rb", buffering=0) as stream:
            return self._read_bounded(name, stream, KEEP_LIMIT)

    def _mode(self, slot: Slot, edit: Edit) -> int:
        found = slot.found
        if edit.move_from:
            found = self._root.stat(edit.move_from)
        mode = stat.S_IMODE(found.st_mode) if found is not None else 0o666 & ~file_mask()
        if edit.executable is None:
            return mode
        return mode | (mode & 0o444) >> 2 if edit.executable else mode & ~0o111

    def _read_bounded(self, path: str, stream: BinaryIO, limit: int) -> bytes:
        pieces, left = [], limit + 1
        try:
            while left > 0 and (piece := stream.read(min(left, 1 << 20))):
                pieces.append(piece)
                left -= len(piece)
        except OSError as error:
            raise self._explain(path, error)
        return b"".join(pieces)

    def _refuse_protected(self, path: str, resolved: str) -> None:
        names = [*self.relative(path).split("/"), *resolved.split("/")]
        folded = {name.translate(_INVISIBLE).casefold() for name in names}
        pointed = self._git_folder()
        if folded & PROTECTED or (pointed and (resolved == pointed or resolved.startswith(pointed + "/"))):
            raise ToolError(
                "permission_denied",
                f"{path} belongs to git or to the harness and is never written by a tool. If it must change, ask the "
                "person to do it",
                field="path",
                expected="a path outside .git and .codewhale",
                received=path,
                fix=NextCall("list_dir", {"path": "."}),
            )

    def _git_folder(self) -> str:
        """The git folder inside the root that a `.git` file points at, "" when there is none."""
        try:
            with self.open(".git") as stream:
                text = stream.read(4096).decode("utf-8", "surrogateescape")
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
                fix=NextCall("read_file", {"path": resolved}),
            )

    def _refuse_slot(self, name: str, slot: Slot, edit: Edit) -> None:
        if slot.found is None:
            if edit.data is None:
                raise self.missing(name)
            if "\\" in name:
                raise ToolError(
                    "invalid_input",
                    f"{edit.path} holds backslashes; folders are separated by /",
                    field="path",
                    expected=edit.path.replace("\\", "/"),
                    received=edit.path,
                    fix=NextCall("list_dir", {"path": self._nearest_folder(name.replace("\\", "/"))}),
                )
            return
        _refuse_kind(name, slot.found.st_mode)
        if not slot.found.st_mode & 0o222:
            raise ToolError(
                "permission_denied",
                f"{name} is read-only (mode {stat.S_IMODE(slot.found.st_mode):04o})",
                field="path",
                expected="a writable file",
                received=edit.path,
                fix=NextCall("read_file", {"path": name}),
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
            fix = NextCall("list_dir", {"path": self._nearest_folder(name)})
        else:
            text = f"{name} changed on disk since this session last read it (sha256 now {now}); read it again first"
            fix = NextCall("read_file", {"path": name})
        raise ToolError(
            "execution_failed",
            text,
            field="path",
            expected=f"sha256 {known}" if known else "no such file",
            received=f"sha256 {now}" if now else "no such file",
            fix=fix,
        )

    def _nearest_folder(self, name: str) -> str:
        while name not in ("", "."):
            name = os.path.dirname(name)
            try:
                if name and stat.S_ISDIR(self._root.stat(name).st_mode):
                    return name
            except (PathRefused, OSError):
                continue
        return "."

    def _like(self, folder: str, name: str) -> list[str]:
        """Up to three existing paths in `folder` whose names resemble the one wanted there."""
        import difflib

        wanted = name.removeprefix(folder + "/").split("/")[0] if folder != "." else name.split("/", maxsplit=1)[0]
        names = {entry: entry.casefold() for entry, _, is_link in self.scandir(folder, 5000) if not is_link}
        close = difflib.get_close_matches(wanted.casefold(), sorted(set(names.values())), 3, 0.7)
        ranked = sorted((close.index(low), entry) for entry, low in names.items() if low in close)
        return [entry if folder == "." else f"{folder}/{entry}" for _, entry in ranked[:3]]

    def _escape(self, path: str, refused: PathRefused) -> ToolError:
        return ToolError(
            "path_escape",
            f"{path!r} is refused: {refused.reason}. Give a path relative to the workspace {self.root}, or ask the "
            "person to do it",
            field="path",
            expected="a path inside the workspace",
            received=path,
            fix=NextCall("list_dir", {"path": "."}),
        )

    def _explain(self, path: str, error: Exception, write: bool = False) -> ToolError:
        if isinstance(error, PathRefused):
            return self._escape(path, error)
        assert isinstance(error, OSError)
        name = self.relative(path)
        if isinstance(error, FileNotFoundError) and not write:
            return self.missing(name)
        verb = "write" if write else "read"
        kind = "permission_denied" if isinstance(error, PermissionError) else "execution_failed"
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        return ToolError(
            kind,  # type: ignore[arg-type]
            f"cannot {verb} {name}: {reason}",
            field="path",
            expected=f"a path that can be {'written' if write else 'read'}",
            received=path,
            fix=NextCall("list_dir", {"path": self._nearest_folder(name)}),
        )


_REASONS = {
    errno.ELOOP: "a link on the way keeps changing or leads in a circle",
    errno.ENOTDIR: "a part of the path is no folder",
    errno.ENOSPC: "the disk is full; nothing was changed",
    errno.EBUSY: "it changed while it was being written; nothing was changed",
    errno.ENAMETOOLONG: "the name is too long",
}


class Workspaces:
    """Workspaces by root, so that all sessions of a process share one ledger and one write lock per root."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self.artifacts = artifacts
        self._known: OrderedDict[str, Workspace] = OrderedDict()
        self._lock = threading.Lock()

    def at(self, root: str) -> Workspace:
        """The workspace of an existing directory."""
        real = os.path.realpath(root)
        with self._lock:
            if real not in self._known:
                self._known[real] = Workspace(real, self.artifacts)
            self._known.move_to_end(real)
            if len(self._known) > _MAX_SESSIONS:
                self._known.popitem(last=False)
            return self._known[real]


def _spread(edits: Sequence[Edit]) -> list[Edit]:
    """The edits, each move followed by the deletion of what it moved, unless another edit writes there."""
    paths = {edit.path for edit in edits}
    spread: list[Edit] = []
    for edit in edits:
        spread.append(edit)
        if edit.move_from and edit.move_from not in paths:
            spread.append(FileEdit(edit.move_from, None))
    return spread


def _refuse_kind(name: str, mode: int) -> None:
    """Raise ToolError for anything but a regular file."""
    for test, kind in _KINDS:
        if test(mode):
            folder = name if test is stat.S_ISDIR else os.path.dirname(name) or "."
            raise ToolError(
                "execution_failed",
                f"{name} is {kind}, not a file",
                field="path",
                expected="a regular file",
                received=name,
                fix=NextCall("list_dir", {"path": folder}),
            )


def _too_large(name: str, size: int, limit: int) -> ToolError:
    return ToolError(
        "execution_failed",
        f"{name} has {size:,} bytes, more than the {limit:,} that can be handled whole. Text can be read in windows "
        "(read_file with start_line)",
        field="path",
        expected=f"at most {limit:,} bytes",
        received=f"{size:,} bytes",
        fix=NextCall("list_dir", {"path": os.path.dirname(name) or "."}),
    )


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
