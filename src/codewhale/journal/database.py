"""The journal's SQLite file: how it is opened, written, held against damage, and set aside."""

import contextlib
import json
import os
import random
import sqlite3
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from typing import NoReturn

import msgspec
from msgspec import Struct

from codewhale.journal.model import Data, JournalDamaged, JournalError, JournalUnavailable
from codewhale.journal.place import MOUNTS, Presence, refuse_shared
from codewhale.lib.clock import rfc3339
from codewhale.lib.files import atomic_write, private_dir
from codewhale.lib.text import scrub_surrogates

VERSION = 1
FILE = "journal.sqlite3"
_ENDS = ("", "-wal", "-shm")
_BUSY_SECONDS = 30.0
_PAUSE = (0.0005, 0.004)  # seconds between two tries to write, at random between these
# The middle of the millisecond that SQLite tells: no rounding makes it an earlier one than another clock's.
_NOW = "SELECT round((julianday('now') - 2440587.5) * 86400.0, 3) + 0.0005"
_BUSY, _LOCKED, _IO, _FULL, _CANT_OPEN = 5, 6, 10, 13, 14  # result codes of SQLite
_LEAST_ROOM = 1 << 16  # bytes
_OURS = frozenset({0, 3, 4, 7, 8, 9, 14, 18, 21, 22, 23})  # no memory, descriptor or permission: no damage of the file
_SCHEMA = """
CREATE TABLE runs (id TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL, data TEXT NOT NULL,
  crc INTEGER NOT NULL, created REAL NOT NULL, due REAL NOT NULL, began REAL, ended REAL, result TEXT NOT NULL,
  owner TEXT NOT NULL, expires REAL NOT NULL, fence INTEGER NOT NULL, attempt INTEGER NOT NULL,
  stop INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX runs_due ON runs (kind, state, due, created);
CREATE INDEX runs_new ON runs (kind, created);
CREATE TABLE attempts (run TEXT NOT NULL, node TEXT NOT NULL, number INTEGER NOT NULL, fence INTEGER NOT NULL,
  state TEXT NOT NULL, began REAL NOT NULL, ended REAL, data TEXT NOT NULL, result TEXT NOT NULL,
  PRIMARY KEY (run, node, number)) WITHOUT ROWID;
CREATE TABLE intents (run TEXT NOT NULL, key TEXT NOT NULL, attempt INTEGER NOT NULL, made REAL NOT NULL,
  settled REAL, data TEXT NOT NULL, result TEXT NOT NULL, PRIMARY KEY (run, key)) WITHOUT ROWID;
CREATE TABLE waits (run TEXT PRIMARY KEY, event TEXT NOT NULL, until REAL NOT NULL, arrived REAL,
  data TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX waits_event ON waits (event);
CREATE TABLE entries (seq INTEGER PRIMARY KEY, run TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL,
  at REAL NOT NULL, data TEXT NOT NULL, UNIQUE (run, key));
CREATE TABLE schedules (id TEXT PRIMARY KEY, kind TEXT NOT NULL, data TEXT NOT NULL, next_at REAL,
  version INTEGER NOT NULL, created REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX schedules_due ON schedules (kind, next_at);
CREATE TABLE workers (owner TEXT PRIMARY KEY, since REAL NOT NULL, expires REAL NOT NULL,
  data TEXT NOT NULL) WITHOUT ROWID;
"""


class _Closed(Struct, frozen=True):
    """How the file was when it was last closed in order."""

    size: int
    mtime: int
    doubt: str = ""


def packed(data: Data) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except UnicodeEncodeError:  # half of a character, as a terminal may give it
        return scrub_surrogates(json.dumps(data, ensure_ascii=False))


def unpacked(text: str) -> Data:
    """Raises JournalDamaged."""
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, TypeError, UnicodeError) as error:
        raise JournalDamaged(f"the journal holds a row that nobody wrote ({error})") from None


def seal(*texts: str) -> int:
    """What tells a row from one with other bytes."""
    return zlib.crc32("\0".join(texts).encode())


def _no_room(folder: str) -> bool:
    """Whether the disk has not even room for what SQLite keeps beside a file."""
    with contextlib.suppress(OSError):
        about = os.statvfs(folder)
        return about.f_bavail * about.f_frsize < _LEAST_ROOM
    return False


class Database:
    """One connection to the file below `home`, for one thread at a time. `clock` stands for the database's own, for
    tests. Raises JournalUnavailable where there can be none."""

    def __init__(self, home: str, clock: Callable[[], float] | None = None, mounts: str = MOUNTS) -> None:
        self.folder = os.path.join(os.path.abspath(home), "journal")
        self.path = os.path.join(self.folder, FILE)
        self.doubt = ""
        self._clock = clock
        self._lock = threading.RLock()
        self._base: sqlite3.Connection | None = None
        self._full = False
        self._opened = (0, 0)
        self._closed = os.path.join(self.folder, "closed.json")
        refuse_shared(os.path.abspath(home), mounts)
        try:
            private_dir(self.folder)
            self._presence = Presence(os.path.join(self.folder, "open.lock"))
        except OSError as error:
            raise JournalUnavailable(
                f"the journal in {self.folder} cannot be opened: {error.strerror}. Tasks and schedules need a home "
                "that can be written (CODEWHALE_HOME)"
            ) from error
        try:
            self._begin()
        except BaseException:
            self._disconnect()
            self._presence.release()
            raise

    # ------------------------------------------------------------------ opening and closing

    def _begin(self) -> None:
        if os.path.lexists(self.path) and not stat.S_ISREG(os.lstat(self.path).st_mode):
            raise JournalUnavailable(
                f"{self.path} is a link, a folder or a device, where the journal should be a file. Move it away: then "
                "a new one is made, and tasks are found again by their sessions"
            )
        if not (self._presence.first and self._presence.alone()):
            self._connect()
            return
        try:
            known = os.path.exists(self.path)
            closed = self._stamp_of_last_time()
            if known and os.path.exists(self._closed) and not os.path.getsize(self.path):
                raise JournalDamaged(f"the journal {self.path} was emptied")
            self.doubt = closed.doubt if closed is not None else "unclean" if known else "new"
            self._connect(check=known and closed is None)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._closed)
            with contextlib.suppress(OSError):  # made, and not closed: what is empty after a crash was emptied
                atomic_write(self._closed, msgspec.json.encode(_Closed(0, 0)))
        except JournalDamaged:
            self._set_aside()
        finally:
            self._presence.share()

    def _stamp_of_last_time(self) -> _Closed | None:
        """How it was closed, where it is still so."""
        with contextlib.suppress(OSError, msgspec.DecodeError), open(self._closed, "rb") as file:
            closed, about = msgspec.json.decode(file.read(), type=_Closed), os.stat(self.path)
            if (closed.size, closed.mtime) == (about.st_size, about.st_mtime_ns):
                return closed
        return None

    def _connect(self, check: bool = False) -> None:
        with self._faults():
            made = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            about = os.fstat(made)
            os.close(made)
            self._opened = (about.st_dev, about.st_ino)
            base = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS)
            self._base = base
            base.execute("PRAGMA trusted_schema = OFF")
            base.execute("PRAGMA cell_size_check = ON")
            self._make(base)
            base.execute("PRAGMA synchronous = NORMAL")
            self._full = False
            base.execute("PRAGMA busy_timeout = 0")
        if check:
            self.check()

    def _make(self, base: sqlite3.Connection) -> None:
        """The tables, in a file that has none."""
        version = int(base.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise JournalUnavailable(
                f"The journal {self.path} was written by a newer version of CodeWhale (its format is {version}, this "
                f"one reads {VERSION}). It was not touched. Update CodeWhale, or set CODEWHALE_HOME to another folder."
            )
        mode = str(base.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise JournalUnavailable(f"the file system of {self.folder} cannot hold a journal (SQLite says {mode})")
        if version == 0:
            with self._writing(base):
                if int(base.execute("PRAGMA user_version").fetchone()[0]) == 0:
                    for statement in filter(str.strip, _SCHEMA.split(";")):
                        base.execute(statement)
                    base.execute(f"PRAGMA user_version = {VERSION}")
                    self.doubt = self.doubt or "new"

    def _set_aside(self) -> str:
        """Move the file away, with nobody else at it, and begin a new one."""
        self._disconnect()
        name = f"damaged-{rfc3339(time.time()).replace(':', '').replace('.', '-')}-{os.urandom(2).hex()}"
        aside = os.path.join(self.folder, name)
        private_dir(aside)
        for end in _ENDS:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.path + end, os.path.join(aside, FILE + end))
        self.doubt = f"damaged: {aside}"
        self._connect()
        return aside

    def renew(self) -> str:
        """Set a damaged file aside; where it is now. Raises JournalDamaged while other processes have it open."""
        with self._lock:
            if not self._presence.alone():
                raise JournalDamaged(
                    f"The journal {self.path} is damaged. It is set aside once no other CodeWhale has it open: end "
                    "those that run (`codewhale work`, terminals) and start one again."
                )
            try:
                return self._set_aside()
            finally:
                self._presence.share()

    @property
    def gone(self) -> bool:
        """Whether another file stands where the one that is open stood, or none."""
        with contextlib.suppress(OSError):
            about = os.stat(self.path)
            return (about.st_dev, about.st_ino) != self._opened
        return True

    def close(self) -> None:
        with self._lock:
            alone = self._presence.alone()
            self._disconnect()
            with contextlib.suppress(OSError):
                if alone and not self.gone and not os.path.exists(self.path + "-wal"):
                    about = os.stat(self.path)
                    said = _Closed(about.st_size, about.st_mtime_ns, self.doubt)
                    atomic_write(self._closed, msgspec.json.encode(said))
            self._presence.release()

    def _disconnect(self) -> None:
        base, self._base = self._base, None
        if base is not None:
            with contextlib.suppress(sqlite3.Error):
                base.close()

    # ------------------------------------------------------------------ reading and writing

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._faults():
            yield self._connection()

    @contextlib.contextmanager
    def write(self, *, full: bool = False) -> Iterator[sqlite3.Connection]:
        """All that is done inside, or nothing; `full`: on disk when it is over."""
        with self._lock, self._faults():
            base = self._connection()
            if full is not self._full:
                base.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
                self._full = full
            with self._writing(base):
                yield base

    @contextlib.contextmanager
    def _writing(self, base: sqlite3.Connection) -> Iterator[None]:
        ends = time.monotonic() + _BUSY_SECONDS
        while not self._taken(base):
            if time.monotonic() > ends:
                raise JournalError(f"the journal was held by others for {_BUSY_SECONDS:g} s; try again")
            time.sleep(random.uniform(*_PAUSE))
        try:
            yield
            self._commit(base, ends)
        except BaseException:
            if base.in_transaction:
                base.execute("ROLLBACK")
            raise

    def _taken(self, base: sqlite3.Connection) -> bool:
        try:
            base.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (_BUSY, _LOCKED):
                raise
            return False
        return True

    def _commit(self, base: sqlite3.Connection, ends: float) -> None:
        while True:
            try:
                base.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != _BUSY or time.monotonic() > ends:
                    raise
                time.sleep(_PAUSE[1])
            else:
                return

    def _connection(self) -> sqlite3.Connection:
        if self._base is None:
            raise JournalError("the journal is closed")
        return self._base

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._fault(error)
        except OSError as error:
            raise JournalUnavailable(f"the journal {self.path} cannot be used: {error.strerror}") from error

    def _fault(self, error: sqlite3.Error) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (_BUSY, _LOCKED):
            raise JournalError("the journal is held by others; try again") from error
        if code == _FULL or (code in (_IO, _CANT_OPEN) and _no_room(self.folder)):
            raise JournalError("the disk is full: nothing was written. Free some space and try again") from error
        if code == _IO and os.path.exists(self.path) and os.path.getsize(self.path):
            why = f"the disk refused the journal {self.path} ({error}): nothing was written"
            raise JournalError(f"{why}. Look whether it is full, limited or faulty, and try again") from error
        if code in _OURS:
            raise JournalUnavailable(f"the journal {self.path} cannot be used now: {error}") from error
        raise JournalDamaged(f"the journal {self.path} is damaged ({error})") from error

    # ------------------------------------------------------------------ the clock, and doubts

    def now(self, base: sqlite3.Connection) -> float:
        return self._clock() if self._clock is not None else float(base.execute(_NOW).fetchone()[0])

    def check(self) -> None:
        """Raises JournalDamaged where the pages are not whole, or a run is not what was written."""
        with self.read() as base:
            said = [str(row[0]) for row in base.execute("PRAGMA quick_check(3)")]
            if said != ["ok"]:
                raise JournalDamaged(f"the journal {self.path} is damaged ({'; '.join(said)[:300]})")
            for run, kind, data, crc in base.execute("SELECT id, kind, data, crc FROM runs"):
                if seal(str(run), str(kind), str(data)) != crc:
                    raise JournalDamaged(f"the journal {self.path} is damaged (run {str(run)[:40]})")

    def trusted(self) -> None:
        self.doubt = ""
