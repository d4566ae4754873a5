"""The session log: append-only records in one file, the only truth about a session.

An append is one write call and leaves nothing half-written behind. `barrier` makes everything appended
so far survive a power cut; callers that meet share one fsync, done in a thread.
"""

import asyncio
import errno
import os
import threading
from collections.abc import Iterator, Sequence

from codewhale.lib import failpoints
from codewhale.lib.clock import Clock, rfc3339
from codewhale.lib.files import DISK, FULL, FileOps, write_all
from codewhale.protocol.errors import SessionError, StorageFullError
from codewhale.protocol.events import Envelope, Event, is_durable
from codewhale.session import records
from codewhale.session.lock import SessionLock
from codewhale.session.records import Index, LogDamage, Record
from codewhale.session.reserve import Reserve

LOG_FILE = "log.jsonl"
LOCK_FILE = "lock"


class SessionLog:
    """One session's log, held by this process from construction to `close`.

    Opening repairs a torn end: its bytes move to the sidecar `log.jsonl.corrupt`; damaged records in the middle are
    skipped and stay where they are. Raises SessionBusyError when another live process holds the session,
    SessionError when the log is newer than this version or cannot be read, StorageFullError.
    """

    def __init__(
        self, folder: str, clock: Clock, *, create: bool = False, ops: FileOps = DISK, reserve: Reserve | None = None
    ) -> None:
        self.session = os.path.basename(folder)
        self.path = os.path.join(folder, LOG_FILE)
        self._clock = clock
        self._ops = ops
        self._reserve = reserve
        self._fd = -1
        self._mutex = threading.Lock()  # the descriptor: a thread may be syncing it while it is closed
        self._syncing: asyncio.Future[None] | None = None
        self._again = False
        self._torn = False
        self._failure: OSError | None = None
        self._unsynced_dirs = [folder, os.path.dirname(folder)] if create else []
        try:
            self._lock = SessionLock(os.path.join(folder, LOCK_FILE), self.session)
        except OSError as error:
            raise self._refused("open", error) from error
        try:
            self._index = Index() if create else _scan(self.path)
            self.damage: LogDamage = self._index.damage
            self._fd = ops.open(self.path, os.O_WRONLY | os.O_APPEND | (os.O_CREAT | os.O_EXCL if create else 0))
            self._end = self._index.end
            self._repair()
        except BaseException as error:
            self._abandon()
            if isinstance(error, OSError):
                raise self._refused("open", error) from error
            raise
        self._synced = 0

    @property
    def seq(self) -> int:
        """The seq of the last record, 0 when there is none."""
        return self._index.last

    @property
    def fence(self) -> int:
        """Counts the openings of this session: a writer with a lower one has been succeeded."""
        return self._lock.fence

    # -------------------------------------------------------------- writing

    def append(
        self, events: Sequence[Event], expected_seq: int | None = None, fence: int | None = None
    ) -> list[Envelope]:
        """Write durable events, all or none, and return them in their places. They survive this process at once
        and a power cut after the next `barrier`.

        Raises SessionError when `expected_seq` is not the last seq, `fence` not this opening's, or the write
        fails; StorageFullError when the disk is full, after freeing the reserve for the records that close the
        turn.
        """
        self._check(expected_seq, fence)
        at = rfc3339(self._clock.now())
        envelopes = []
        lines = []
        for seq, event in enumerate(events, self.seq + 1):
            if not is_durable(event):
                raise ValueError(f"{type(event).__name__} is not for the log")
            data, kept = records.event_json(event)
            lines.append(records.frame(seq, self.session, at, data))
            envelopes.append(Envelope(seq, self.session, at, kept))
        try:
            self._write(lines)
        except BaseException as error:
            self._rewind()
            if isinstance(error, OSError):
                raise self._refused("record", error) from error
            raise
        for envelope, line in zip(envelopes, lines, strict=True):
            self._index.add(envelope.seq, self._end, self._end + len(line) - 1)
            self._end += len(line)
        return envelopes

    def _check(self, expected_seq: int | None, fence: int | None) -> None:
        if self._fd < 0:
            raise SessionError(f"session {self.session} is closed")
        if self._failure is not None:
            raise self._refused("record", self._failure)
        if expected_seq is not None and expected_seq != self.seq:
            raise SessionError(f"session {self.session} is at seq {self.seq}, not {expected_seq}: read it again")
        if fence is not None and fence != self.fence:
            raise SessionError(f"session {self.session} was opened again since (fence {self.fence}, not {fence})")
        if self._torn:
            try:
                self._cut()
            except OSError as error:
                raise self._refused("record", error) from error

    def _write(self, lines: list[bytes]) -> None:
        for _ in lines:
            failpoints.hit("log.append.before")
        data = b"".join(lines)
        if failpoints.armed("log.append.mid"):
            write_all(self._ops, self._fd, data[: len(data) // 2])
            failpoints.hit("log.append.mid")
            data = data[len(data) // 2 :]
        write_all(self._ops, self._fd, data)
        failpoints.hit("log.append.after")

    def _rewind(self) -> None:
        """Cut back to the last good end; where even that fails, the next append does it first."""
        self._torn = True
        try:
            self._cut()
        except OSError:
            return

    def _cut(self) -> None:
        self._ops.truncate(self._fd, self._end)
        self._torn = False

    def _refused(self, what: str, error: OSError) -> SessionError:
        if error.errno not in FULL:
            return SessionError(f"cannot {what} session {self.session}: {error}. What was recorded before is kept.")
        if self._reserve is not None:
            self._reserve.release()
        return StorageFullError(
            f"the disk is full: cannot {what} session {self.session} in {os.path.dirname(self.path)} ({error}). "
            f"What was recorded before is kept. Free some space there, then resume session {self.session}."
        )

    # -------------------------------------------------------------- durability

    async def barrier(self) -> None:
        """Return once everything appended before the call is on disk. Raises SessionError when the disk failed;
        the log then takes no more records until it is opened again."""
        target = self._end
        while True:
            if self._failure is not None:
                raise self._refused("record", self._failure)
            if self._synced >= target:
                return
            await asyncio.shield(self._sync())

    def sync_soon(self) -> None:
        """Begin what `barrier` waits for; a failure shows at the next barrier."""
        if self._synced >= self._end or self._failure is not None:
            return
        if self._syncing is not None and not self._syncing.done():
            self._again = True
        else:
            self._sync()

    def _sync(self) -> "asyncio.Future[None]":
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.get_running_loop().run_in_executor(None, self._sync_now)
            self._syncing.add_done_callback(self._synced_once)
        return self._syncing

    def _synced_once(self, _: object) -> None:
        if self._again:
            self._again = False
            self.sync_soon()

    def _sync_now(self) -> None:
        with self._mutex:
            if self._fd < 0 or self._failure is not None:
                return
            end = self._end
            try:
                failpoints.hit("log.sync.before")
                if not self._lock.held():
                    raise OSError(errno.ESTALE, "another process has opened the session")
                self._ops.fsync(self._fd)
                for folder in self._unsynced_dirs:
                    self._ops.sync_dir(folder)
                self._unsynced_dirs = []
                failpoints.hit("log.sync.after")
            except OSError as error:
                self._failure = error
                return
            self._synced = end

    def close(self) -> None:
        """Sync and give the session up. Does nothing the second time. Raises SessionError when the disk failed."""
        if self._fd < 0:
            return
        if self._synced < self._end:
            self._sync_now()
        with self._mutex:
            self._abandon()
        if self._failure is not None:
            raise self._refused("record", self._failure)

    def _abandon(self) -> None:
        if self._fd >= 0:
            self._ops.close(self._fd)
            self._fd = -1
        self._lock.release()

    # -------------------------------------------------------------- reading

    def read(self, from_seq: int = 1) -> Iterator[Envelope]:
        """The recorded events from `from_seq` on, in order, as they stood at the call."""
        return (records.decode(line) for line in _lines(self.path, self._index, from_seq))

    def read_raw(self, from_seq: int = 1) -> Iterator[Record]:
        """The same with events left as bytes, for those who want few of them."""
        return (records.decode_record(line) for line in _lines(self.path, self._index, from_seq))

    def _repair(self) -> None:
        if self.damage.cut_bytes:
            failpoints.hit("log.repair.before")
            _set_aside(self.path, self._index, self._ops)
            self._ops.truncate(self._fd, self._end)
            failpoints.hit("log.repair.after")
        if self._index.unended:
            write_all(self._ops, self._fd, b"\n")
            self._end += 1


def read_log(path: str, from_seq: int = 1) -> Iterator[Envelope]:
    """The events of a log nobody need hold; damaged records are left out and the file is left as it is. Raises
    SessionError."""
    return (records.decode(line) for line in _lines(path, _scan(path), from_seq))


def _scan(path: str) -> Index:
    try:
        with open(path, "rb") as file:
            index = records.scan(file)
    except OSError as error:
        raise SessionError(f"cannot read {path}: {error}") from error
    if not index.seqs:
        raise SessionError(f"{path} contains no readable record; it was not changed")
    return index


def _lines(path: str, index: Index, from_seq: int) -> Iterator[bytes]:
    return _slice(path, index, index.position(from_seq), len(index.seqs))


def _slice(path: str, index: Index, first: int, stop: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from records.lines(file, index, first, stop)


def _set_aside(path: str, index: Index, ops: FileOps) -> None:
    """Keep the torn bytes beside the log before they are cut from it."""
    with open(path, "rb") as file:
        file.seek(index.end)
        torn = file.read(index.size - index.end)
    fd = ops.open(path + ".corrupt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        write_all(ops, fd, torn)
        ops.fsync(fd)
    finally:
        ops.close(fd)
