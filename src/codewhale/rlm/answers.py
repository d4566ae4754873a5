"""Answers of models that are kept: the same question about the same bytes is not paid for twice."""

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec
from msgspec import Struct

from codewhale.lib.files import private_dir
from codewhale.protocol.errors import CodeWhaleError

_MOST = 50_000
_REST = 30.0  # seconds without the file after it was busy or refused, so that not every question waits for it
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, text TEXT NOT NULL, finish TEXT NOT NULL, model TEXT NOT NULL,
  session TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_at ON answers (at);
"""


class KeptAnswer(Struct, frozen=True):
    text: str
    finish: str


class KeptTotals(Struct, frozen=True):
    """How many answers are kept, how many bytes their texts have, and when the last was asked for (seconds since 1970,
    0 for none)."""

    answers: int = 0
    bytes: int = 0
    last: float = 0.0


def answer_key(model: str, parameters: dict[str, object], prompt: str, part: bytes) -> str:
    said = msgspec.json.encode([model, parameters, prompt, hashlib.sha256(part).hexdigest()], order="sorted")
    return hashlib.sha256(said).hexdigest()


class AnswerStore:
    """A SQLite file below `home`, made at the first answer that is kept; one that is damaged is begun anew.

    Asking goes on without one that is busy (for `wait` seconds) or cannot be read or written; what is to be forgotten
    there is said to stay."""

    def __init__(self, home: str, *, wait: float = 5.0) -> None:
        self._folder = os.path.join(home, "rlm")
        self.path = os.path.join(self._folder, "answers.sqlite3")
        self._wait = wait
        self._rests = 0.0  # until this moment nothing is looked up or kept
        self._base: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def get(self, key: str) -> KeptAnswer | None:
        found = None
        with self._lock, self._tolerated():
            base = self._open(make=False) if self._works() else None
            row = None if base is None else base.execute("SELECT text, finish FROM answers WHERE key = ?", (key,))
            found = row.fetchone() if row is not None else None
        return None if found is None else KeptAnswer(*found)

    def put(self, key: str, answer: KeptAnswer, model: str, session: str) -> None:
        with self._lock, self._tolerated():
            base = self._open(make=True) if self._works() else None
            if base is not None:
                base.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                    (key, answer.text, answer.finish, model, session, time.time()),
                )

    def totals(self) -> KeptTotals:
        """Raises CodeWhaleError where the file cannot be read."""
        with self._lock, self._reported():
            base = self._open(make=False)
            return KeptTotals() if base is None else self._totals(base)

    def drop(self, holds: Callable[[str], bool]) -> int:
        """Forget the answers whose text `holds` something, so that no byte of them stays; how many there were. Raises
        CodeWhaleError where they stay."""
        with self._lock, self._reported():
            base = self._open(make=False)
            rows = [] if base is None else base.execute("SELECT key, text FROM answers")
            keys = [(key,) for key, text in rows if holds(text)]
            if base is not None and keys:
                base.executemany("DELETE FROM answers WHERE key = ?", keys)
                self._shrink(base)
        return len(keys)

    def clear(self) -> int:
        """Forget all of them, for whoever has the file open too, so that no byte stays; how many there were. Raises
        CodeWhaleError where they stay."""
        with self._lock, self._reported():
            base = self._open(make=False)
            if base is None:
                return 0
            count = self._totals(base).answers
            base.execute("DELETE FROM answers")
            self._shrink(base)
        return count

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._base is not None:
            self._base.close()
        self._base = None

    def _totals(self, base: sqlite3.Connection) -> KeptTotals:
        rows = base.execute(
            "SELECT count(*), coalesce(sum(length(CAST(text AS BLOB))), 0), coalesce(max(at), 0) FROM answers"
        )
        return KeptTotals(*rows.fetchone())

    def _shrink(self, base: sqlite3.Connection) -> None:
        base.execute("VACUUM")
        (busy, _, _) = base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("another program is reading it")

    def _works(self) -> bool:
        return time.monotonic() >= self._rests

    @contextmanager
    def _tolerated(self) -> Iterator[None]:
        """What the file refuses costs nobody an answer."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if _damaged(error):
                self._remove()
            else:
                self._rests = time.monotonic() + _REST

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """What the file refuses is an error that says so."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            text = f"The kept answers in {self.path} cannot be used now ({error}); try again, or remove that file."
            raise CodeWhaleError(text) from error

    def _remove(self) -> None:
        self._close()
        for end in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(self.path + end)

    def _open(self, *, make: bool) -> sqlite3.Connection | None:
        if self._base is not None:
            return self._base
        if not make and not os.path.exists(self.path):
            return None
        private_dir(self._folder)
        try:
            self._base = self._begin()
        except sqlite3.DatabaseError as error:
            if not _damaged(error):
                raise
            self._remove()
            self._base = self._begin()
        return self._base

    def _begin(self) -> sqlite3.Connection:
        if not os.path.exists(self.path):  # closing a file that is open elsewhere in this process ends its locks
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        base = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=self._wait)
        try:
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = NORMAL")
            base.executescript(_SCHEMA)
            base.execute(
                "DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY at DESC LIMIT -1 OFFSET ?)",
                (_MOST,),
            )
        except BaseException:
            base.close()
            raise
        return base


def _damaged(error: Exception) -> bool:
    """Whether what a file holds is wrong; one that is busy or full, or refuses, raises a kind below this one."""
    return type(error) is sqlite3.DatabaseError
