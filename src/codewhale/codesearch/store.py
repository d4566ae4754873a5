"""The index of one worktree at rest: an SQLite database (WAL) that takes whole segments and gives what stands in it.

A segment is written in one transaction and never changed; a file that changes goes into a later one. So a process
killed at any point leaves an index that is true of some files and knows nothing of the rest.
"""

import contextlib
import hashlib
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from codewhale.codesearch.chunks import LINES, LONG, SMALL, WINDOW
from codewhale.codesearch.indexing import Segment
from codewhale.codesearch.model import Commit, Touch
from codewhale.codesearch.stamps import Stamp, Stamps
from codewhale.codesearch.symbols import LARGE, WHOLE
from codewhale.codesearch.terms import TERMS_VERSION
from codewhale.lib.files import private_dir

FORMAT = 5
CODE, HISTORY = "code", "history"
_BUSY_SECONDS = 20.0
_PAGE = 8192
_CHECKPOINT = 4000  # pages of the log before it is copied back
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, lang TEXT NOT NULL, state TEXT NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, lines INTEGER NOT NULL, sha BLOB NOT NULL,
    segment INTEGER NOT NULL, first INTEGER NOT NULL, chunks INTEGER NOT NULL,
    symbols INTEGER NOT NULL
);
CREATE INDEX files_by_segment ON files (segment, chunks, size);
CREATE TABLE outlines (file INTEGER PRIMARY KEY, symbols BLOB NOT NULL, imports BLOB NOT NULL);
CREATE TABLE segments (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, chunks INTEGER NOT NULL, columns BLOB NOT NULL,
    first_block INTEGER NOT NULL, first_keys TEXT NOT NULL
);
CREATE TABLE blocks (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE commits (number INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE touches (path TEXT PRIMARY KEY, count INTEGER NOT NULL, last_ns INTEGER NOT NULL) WITHOUT ROWID;
"""
_FILE_COLUMNS = "path, lang, state, size, mtime_ns, ctime_ns, lines, sha, segment, first, chunks, symbols"


class DamagedError(Exception):
    """The database cannot be read, or holds what was never written to it."""


def _fingerprint(root: str) -> str:
    """What an index must have been made for and with: another one's answers are not taken."""
    made = (FORMAT, TERMS_VERSION, SMALL, LONG, LINES, WINDOW, WHOLE, LARGE, _languages(), os.path.realpath(root))
    return hashlib.sha256(repr(made).encode()).hexdigest()


@cache
def _languages() -> int:
    """What tells one table of languages from another."""
    return zlib.crc32(resources.files("codewhale.codesearch").joinpath("languages.json").read_bytes())


def database_path(state: str, root: str) -> str:
    """Where the index of the worktree at `root` stands: one for each real path."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:24]
    return os.path.join(state, "index", name + ".db")


class Store:
    """One connection, for one thread at a time. Made by `open_store`."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection

    def close(self) -> None:
        """Let go of the database."""
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    def meta(self, key: str) -> Any:
        """A remembered value, None when there is none."""
        for (value,) in self.rows("SELECT value FROM meta WHERE key = ?", (key,)):
            return value
        return None

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a reading statement. Raises DamagedError."""
        with _guarded():
            return self._db.execute(sql, values).fetchall()

    def generation(self) -> int:
        """Rises with every change of the content, whichever process made it."""
        return int(self.meta("generation") or 0)

    def begin_reading(self) -> None:
        """From here on see one state, whatever others write; until the connection is closed."""
        with _guarded():
            self._db.execute("BEGIN")

    def stamps(self) -> Stamps:
        """Every file that is in, with its stamp; neighbours together, so that looking at all of them is fast."""
        return Stamps(sorted(self.rows("SELECT path, size, mtime_ns, ctime_ns FROM files")))

    def shas(self, paths: Iterable[str]) -> dict[str, bytes]:
        """What the contents of files were known by."""
        found = (self.rows("SELECT path, sha FROM files WHERE path = ?", (path,)) for path in paths)
        return {path: sha for rows in found for path, sha in rows}

    @contextlib.contextmanager
    def writing(self, content: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction, all or nothing; `content`: it changes what searches find."""
        with _guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if content:
                    _count_up(self._db)
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def remember(self, **values: Any) -> None:
        """Keep values in `meta`."""
        with self.writing(content=False) as db:
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def put(self, segment: Segment) -> None:
        """Take a segment in: its files replace what was known of them, `gone` ones are forgotten."""
        with self.writing() as db:
            _forget(db, [row.path for row in segment.files] + segment.gone)
            number = _add_segment(db, CODE, segment.rows.chunks, msgspec.msgpack.encode(segment.rows), segment.blocks)
            first = db.execute("SELECT coalesce(max(id), 0) + 1 FROM files").fetchone()[0]
            db.executemany(
                f"INSERT INTO files (id, {_FILE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (first + at, row.path, row.lang, row.state, row.size, row.mtime_ns, row.ctime_ns, row.lines,
                     row.sha, number, row.first, row.chunks, len(row.outline.symbols))
                    for at, row in enumerate(segment.files)
                ),
            )  # fmt: skip
            db.executemany(
                "INSERT INTO outlines VALUES (?, ?, ?)",
                (
                    (
                        first + at,
                        msgspec.msgpack.encode(row.outline.symbols),
                        msgspec.msgpack.encode(row.outline.imports),
                    )
                    for at, row in enumerate(segment.files)
                    if row.outline.symbols or row.outline.imports
                ),
            )
            _drop_empty(db)

    def forget(self, paths: Sequence[str]) -> None:
        """Forget files that are not there any more, or not to be searched."""
        if paths:
            with self.writing() as db:
                _forget(db, paths)
                _drop_empty(db)

    def restamp(self, stamps: Iterable[tuple[str, Stamp]]) -> None:
        """Files whose content is what it was have other stamps now."""
        with self.writing(content=False) as db:
            db.executemany(
                "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ? WHERE path = ?",
                [(stamp.size, stamp.mtime_ns, stamp.ctime_ns, path) for path, stamp in stamps],
            )

    def put_history(self, commits: Sequence[Commit], columns: bytes, blocks: Iterable[tuple[str, bytes]]) -> None:
        """Replace the commits that are known; `columns` and `blocks` are the segment of their subjects."""
        with self.writing() as db:
            for (number,) in db.execute("SELECT id FROM segments WHERE kind = ?", (HISTORY,)).fetchall():
                _drop_segment(db, number)
            db.execute("DELETE FROM commits")
            packed = ((number, msgspec.msgpack.encode(commit)) for number, commit in enumerate(commits))
            db.executemany("INSERT INTO commits VALUES (?, ?)", packed)
            if commits:
                _add_segment(db, HISTORY, len(commits), columns, blocks)

    def touch(self, paths: Iterable[str], now_ns: int | None = None) -> None:
        """Note that a session looked at or changed files. Readers are not out of date by it."""
        at = time.time_ns() if now_ns is None else now_ns
        with self.writing(content=False) as db:
            db.executemany(
                "INSERT INTO touches VALUES (?, 1, ?) ON CONFLICT (path) "
                "DO UPDATE SET count = count + 1, last_ns = max(last_ns, excluded.last_ns)",
                [(path, at) for path in paths],
            )

    def touches(self) -> list[Touch]:
        """What sessions touched, by path."""
        return [Touch(*row) for row in self.rows("SELECT path, count, last_ns FROM touches ORDER BY path")]

    def checkpoint(self) -> None:
        """Copy the log back into the database, as far as nobody reads the older state: nobody is waited for."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA busy_timeout = 0")
            try:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                self._db.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}")

    def is_sound(self) -> bool:
        """Whether the database passes its own check: a reading of all of it."""
        try:
            return self.rows("PRAGMA quick_check(1)") == [("ok",)]
        except DamagedError:
            return False


def open_store(path: str, root: str) -> Store:
    """Open the index at `path` for the worktree `root`, new when there is none, when it cannot be read (then it is set
    aside as PATH.damaged), or when it was made for another place or by other rules."""
    private_dir(os.path.dirname(path))
    wanted = _fingerprint(root)
    for _ in range(3):
        try:
            store, found = _opened(path)
            if found == wanted:
                return store
            store.close()
            if found is not None:
                discard(path)
                continue
            _create(path, wanted, root)
        except DamagedError:
            set_aside(path)
    raise DamagedError(f"{path} cannot be made")


def open_existing(path: str, root: str) -> Store | None:
    """The index at `path` when there is one for `root`. Raises DamagedError."""
    if not os.path.exists(path):
        return None
    store, found = _opened(path)
    if found == _fingerprint(root):
        return store
    store.close()
    return None


def set_aside(path: str) -> None:
    """Keep a damaged database for whoever wants to look; its log goes with it."""
    for ending in ("-wal", "-shm"):
        with contextlib.suppress(OSError):
            os.unlink(path + ending)
    with contextlib.suppress(OSError):
        os.replace(path, path + ".damaged")


def discard(path: str) -> None:
    """Remove an index."""
    for ending in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            os.unlink(path + ending)


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """SQLite's complaints about the file as DamagedError; that somebody else writes, or the disk is full, is none."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_READONLY")):
            raise OSError(f"the code index: {error}") from error
        raise DamagedError(str(error)) from error
    except sqlite3.DatabaseError as error:
        raise DamagedError(str(error)) from error


def _opened(path: str) -> tuple[Store, str | None]:
    """The database at `path`, and what it was made for and by, None when it is new."""
    with _guarded():
        db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    store = Store(path, db)
    try:
        with _guarded():
            db.execute(f"PRAGMA page_size = {_PAGE}")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
            db.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID")
        found = store.meta("fingerprint")
    except BaseException:
        store.close()
        raise
    with contextlib.suppress(OSError):
        os.chmod(path, 0o600)
    return store, found


def _create(path: str, wanted: str, root: str) -> None:
    """Make the tables, unless another process has just done so."""
    store, _ = _opened(path)
    try:
        with _guarded():
            store._db.execute("BEGIN IMMEDIATE")
            if store.meta("fingerprint") is None:
                for statement in filter(
                    str.strip, _SCHEMA.replace("TABLE meta", "TABLE IF NOT EXISTS meta").split(";")
                ):
                    store._db.execute(statement)
                store._db.executemany("INSERT INTO meta VALUES (?, ?)", [("fingerprint", wanted), ("root", root)])
            store._db.execute("COMMIT")
    finally:
        store.close()


def _count_up(db: sqlite3.Connection) -> None:
    db.execute(
        "INSERT INTO meta VALUES ('generation', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1",
    )


def _forget(db: sqlite3.Connection, paths: Sequence[str]) -> None:
    keys = [(path,) for path in paths]
    db.executemany("DELETE FROM outlines WHERE file = (SELECT id FROM files WHERE path = ?)", keys)
    db.executemany("DELETE FROM files WHERE path = ?", keys)


def _add_segment(
    db: sqlite3.Connection, kind: str, chunks: int, columns: bytes, blocks: Iterable[tuple[str, bytes]]
) -> int:
    number = int(db.execute("SELECT coalesce(max(id), 0) + 1 FROM segments").fetchone()[0])
    first = int(db.execute("SELECT coalesce(max(id), 0) + 1 FROM blocks").fetchone()[0])
    keys: list[str] = []
    for at, (key, data) in enumerate(blocks):
        keys.append(key)
        db.execute("INSERT INTO blocks VALUES (?, ?, ?)", (first + at, zlib.crc32(data), data))
    values = (number, kind, chunks, columns, first, "\n".join(keys))
    db.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?)", values)
    return number


def _drop_segment(db: sqlite3.Connection, number: int) -> None:
    first, keys = db.execute("SELECT first_block, first_keys FROM segments WHERE id = ?", (number,)).fetchone()
    db.execute("DELETE FROM blocks WHERE id >= ? AND id < ?", (first, first + len(keys.split("\n"))))
    db.execute("DELETE FROM segments WHERE id = ?", (number,))


def _drop_empty(db: sqlite3.Connection) -> None:
    """Drop the segments of which no file is left."""
    left = db.execute(
        "SELECT id FROM segments WHERE kind = ? AND NOT EXISTS (SELECT 1 FROM files WHERE segment = segments.id)",
        (CODE,),
    ).fetchall()
    for (number,) in left:
        _drop_segment(db, number)
