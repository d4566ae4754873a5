"""Answers of models that are kept: the same question about the same bytes is not paid for twice."""

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from codewhale.lib.files import private_dir

_MOST = 50_000
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
    """A SQLite file below `home`, made at the first answer that is kept; one that is damaged is begun anew."""

    def __init__(self, home: str) -> None:
        self._folder = os.path.join(home, "rlm")
        self.path = os.path.join(self._folder, "answers.sqlite3")
        self._base: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def get(self, key: str) -> KeptAnswer | None:
        with self._lock:
            base = self._open(make=False)
            row = None if base is None else base.execute("SELECT text, finish FROM answers WHERE key = ?", (key,))
            found = row.fetchone() if row is not None else None
        return None if found is None else KeptAnswer(*found)

    def put(self, key: str, answer: KeptAnswer, model: str, session: str) -> None:
        with self._lock:
            base = self._open(make=True)
            if base is not None:
                base.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)",
                    (key, answer.text, answer.finish, model, session, time.time()),
                )

    def totals(self) -> KeptTotals:
        with self._lock:
            base = self._open(make=False)
            if base is None:
                return KeptTotals()
            return KeptTotals(
                *base.execute(
                    "SELECT count(*), coalesce(sum(length(CAST(text AS BLOB))), 0), coalesce(max(at), 0) FROM answers"
                ).fetchone()
            )

    def drop(self, holds: Callable[[str], bool]) -> int:
        """Forget the answers whose text `holds` something, so that no byte of them stays; how many there were."""
        with self._lock:
            base = self._open(make=False)
            rows = [] if base is None else base.execute("SELECT key, text FROM answers").fetchall()
            keys = [(key,) for key, text in rows if holds(text)]
            if base is not None and keys:
                base.executemany("DELETE FROM answers WHERE key = ?", keys)
                base.execute("VACUUM")
                base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(keys)

    def clear(self) -> int:
        """Forget all of them, so that no byte stays in the file; how many there were."""
        count = self.totals().answers
        with self._lock:
            self._close()
            for end in ("", "-wal", "-shm"):
                if os.path.exists(self.path + end):
                    os.unlink(self.path + end)
        return count

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._base is not None:
            self._base.close()
        self._base = None

    def _open(self, *, make: bool) -> sqlite3.Connection | None:
        if self._base is not None:
            return self._base
        if not make and not os.path.exists(self.path):
            return None
        private_dir(self._folder)
        try:
            self._base = self._begin()
        except sqlite3.DatabaseError:
            os.unlink(self.path)
            self._base = self._begin()
        return self._base

    def _begin(self) -> sqlite3.Connection:
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        base = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
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
