"""All sessions of a home: making, opening, finding, listing, forking and removing them.

Each is a directory `sessions/<id>` with its log, its lock and the cache of its listing.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from msgspec.structs import replace

from codewhale.lib import failpoints, ids
from codewhale.lib.clock import Clock, rfc3339
from codewhale.lib.files import DISK, FULL, FileOps, private_dir, write_all
from codewhale.lib.patterns import lazy
from codewhale.protocol.errors import SessionError, StorageFullError
from codewhale.protocol.events import Envelope, SessionOpened
from codewhale.protocol.views import SessionSummary
from codewhale.session import listing, lock, records
from codewhale.session.forgetting import holder
from codewhale.session.log import LOCK_FILE, LOG_FILE, SessionLog, read_log
from codewhale.session.reserve import Reserve
from codewhale.session.sweep import sweep

# What waits is sent once, and children belong to one session.
_NOT_FORKED = frozenset(("session_opened", "queue_kept", "child_opened", "child_closed", "child_released"))
_ID = lazy(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class AmbiguousSessionError(SessionError):
    """A prefix that several sessions share; `matches` are their ids, newest first."""

    def __init__(self, prefix: str, matches: tuple[str, ...]) -> None:
        super().__init__(f"{prefix!r} matches {len(matches)} session ids: {', '.join(matches)}")
        self.matches = matches


class SessionStore:
    """The sessions under `home`. Raises SessionError when the directory belongs to another user."""

    def __init__(self, home: str, clock: Clock, *, ops: FileOps = DISK) -> None:
        self._root = os.path.join(os.path.abspath(home), "sessions")
        self._home = os.path.abspath(home)
        self._clock = clock
        self._ops = ops
        self._reserve = Reserve(os.path.join(self._root, ".reserve"))
        if os.path.isdir(home):
            self._own()

    # -------------------------------------------------------------- one session

    def create(self, opened: SessionOpened) -> SessionLog:
        """A new session, held, with `opened` as its first event; durable after the log's next barrier."""
        folder = self._new_folder()
        try:
            log = SessionLog(folder, self._clock, create=True, ops=self._ops, reserve=self._reserve)
            try:
                log.append([opened])
            except BaseException:
                with contextlib.suppress(SessionError):
                    log.close()
                raise
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        failpoints.hit("session.created")
        return log

    def open(self, session: str) -> SessionLog:
        """Hold a session; damage found is on the log. Raises SessionBusyError naming the holder, SessionError."""
        folder = self._existing(session)
        self._prepare()
        return SessionLog(folder, self._clock, ops=self._ops, reserve=self._reserve)

    def read(self, session: str) -> Iterator[Envelope]:
        """A session's events without holding it. Raises SessionError."""
        return read_log(os.path.join(self._existing(session), LOG_FILE))

    def fork(self, parent: str, opened: SessionOpened, until: int = 0) -> SessionLog:
        """A new session, held, that begins with everything `parent` has recorded up to record `until` (0: up to now).

        Its first event is `opened` with the parent's id, last seq and the sha256 of the parent's log up to
        there; the parent's records follow with new seqs and their own times, so that the child needs no parent.
        On disk when this returns.
        """
        source = os.path.join(self._existing(parent), LOG_FILE)
        folder = self._new_folder()
        try:
            self._copy(source, folder, replace(opened, parent=parent, parent_seq=until))
            return SessionLog(folder, self._clock, ops=self._ops, reserve=self._reserve)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                self._refused(f"fork session {parent}", error)
            raise

    def _copy(self, source: str, folder: str, opened: SessionOpened) -> None:
        child = os.path.basename(folder)
        with open(source, "rb") as file:
            index = records.scan(file)
            count = index.position(opened.parent_seq + 1) if opened.parent_seq else len(index.seqs)
            end = index.starts[count] if count < len(index.seqs) else index.end
            file.seek(0)
            digest = hashlib.sha256(file.read(end)).hexdigest()
            opened = replace(opened, parent_seq=opened.parent_seq or index.last, parent_sha256=digest)
            first, _ = records.event_json(opened)
            copied = [records.frame(1, child, rfc3339(self._clock.now()), first)]
            for line in records.lines(file, index, 0, count):
                record = records.decode_record(line)
                if record.type not in _NOT_FORKED:
                    copied.append(records.frame(len(copied) + 1, child, record.at, bytes(record.event)))
        target = os.path.join(folder, LOG_FILE)
        fd = self._ops.open(target + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(self._ops, fd, b"".join(copied))
            self._ops.fsync(fd)
        finally:
            self._ops.close(fd)
        failpoints.hit("fork.before_rename")
        self._ops.rename(target + ".new", target)
        failpoints.hit("fork.after_rename")
        self._ops.sync_dir(folder)
        self._ops.sync_dir(self._root)

    def remove(self, sessions: Iterable[str]) -> None:
        """Delete sessions, all or none. Raises SessionBusyError when one is open, SessionError when one is not
        there."""
        folders = {session: self._existing(session) for session in sessions}
        try:
            with contextlib.ExitStack() as held:
                for session, folder in folders.items():
                    holder = lock.SessionLock(os.path.join(folder, LOCK_FILE), session)
                    held.callback(holder.release)
                for session, folder in folders.items():
                    gone = os.path.join(self._root, f".removed-{session}-{os.urandom(4).hex()}")
                    self._ops.rename(folder, gone)
                    shutil.rmtree(gone, ignore_errors=True)
        except OSError as error:
            self._refused("remove sessions", error)

    # -------------------------------------------------------------- many

    def resolve(self, name: str, workspace: str = "") -> str:
        """The id that `name` stands for: an id, the unique beginning of one, or "latest" (a person's, of
        `workspace` when given). Raises SessionError when there is none, AmbiguousSessionError for several."""
        if name == "latest":
            rows = self.summaries(workspace)
            rows = [row for row in rows if row.turns] or rows  # nothing was said in what a kill left empty
            if not rows:
                raise SessionError("there is no session" + (f" of {workspace}" if workspace else "") + " to resume")
            return rows[0].id
        present = self._ids()
        if name in present:
            return name
        matches = tuple(sorted((one for one in present if name and one.startswith(name)), reverse=True))
        if len(matches) > 1:
            raise AmbiguousSessionError(name, matches)
        if not matches:
            raise SessionError(f"there is no session {name!r}; `codewhale sessions list --all` shows all")
        return matches[0]

    def summaries(self, workspace: str = "", *, owned: bool = False) -> list[SessionSummary]:
        """A row for each session, newest first; those of one workspace (and those too damaged to tell) when given;
        those that work for another one, or for a task, where `owned` ones are asked for."""
        found = (row for row in map(self._summary, self._ids()) if row is not None)
        rows = [row for row in found if owned or (not row.owner and row.kind in ("", "mcp"))]
        if workspace:
            names = {"", workspace, os.path.realpath(workspace)}
            rows = [row for row in rows if row.workspace in names]
        return sorted(rows, key=lambda row: (row.updated, row.id), reverse=True)

    def holding(self, texts: Iterable[str]) -> tuple[str, ...]:
        """The sessions in whose logs one of these texts stands, newest first; one that cannot be read is among them."""
        holds = holder(texts)
        return tuple(session for session in sorted(self._ids(), reverse=True) if self._holds(session, holds))

    def _holds(self, session: str, holds: Callable[[str], bool]) -> bool:
        try:
            with open(os.path.join(self._root, session, LOG_FILE), encoding="utf-8", errors="replace") as log:
                return any(map(holds, log))
        except OSError:
            return True

    def summary(self, session: str) -> SessionSummary:
        """The row of a session. Raises SessionError where there is none."""
        self._existing(session)
        row = self._summary(session)
        if row is None:
            raise SessionError(f"session {session} cannot be read")
        return row

    def _summary(self, session: str) -> SessionSummary | None:
        folder = os.path.join(self._root, session)
        try:
            fold, damaged = listing.summarise(folder, ops=self._ops)
        except records.NewerFormatError:
            fold, damaged = listing.Fold(title="(written by a newer version)"), True
        except OSError:
            return None
        if not fold.created and not damaged:
            return None
        held = lock.is_held(os.path.join(folder, LOCK_FILE))
        return listing.summary(session, fold, "open" if held else "damaged" if damaged else "idle")

    def _ids(self) -> list[str]:
        """Sessions that have a log: a process that died while making one leaves a directory without."""
        with contextlib.suppress(FileNotFoundError):
            names = [name for name in os.listdir(self._root) if _ID().fullmatch(name)]
            return [name for name in names if os.path.exists(os.path.join(self._root, name, LOG_FILE))]
        return []

    # -------------------------------------------------------------- directories

    def _existing(self, session: str) -> str:
        folder = os.path.join(self._root, session)
        if not _ID().fullmatch(session) or not os.path.exists(os.path.join(folder, LOG_FILE)):
            raise SessionError(f"there is no session {session!r} in {self._root}")
        return folder

    def _new_folder(self) -> str:
        self._prepare()
        while True:
            folder = os.path.join(self._root, ids.session_id())
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                continue
            except OSError as error:
                self._refused("make a session", error)
            return private_dir(folder)

    def _prepare(self) -> None:
        self._own()
        self._reserve.fill()
        sweep(self._home)

    def _own(self) -> None:
        try:
            private_dir(self._home)
            private_dir(self._root)
        except OSError as error:
            if error.errno in FULL:
                self._refused("use the session directory", error)
            raise SessionError(
                f"cannot store sessions in {self._root}: {error.strerror or error}; set CODEWHALE_HOME to a folder of "
                "your own"
            ) from error

    def _refused(self, what: str, error: OSError) -> NoReturn:
        if error.errno not in FULL:
            raise SessionError(f"cannot {what}: {error}") from error
        self._reserve.release()
        raise StorageFullError(
            f"the disk is full: cannot {what} in {self._root} ({error}). Free some space there and try again."
        ) from error
