"""The index of one worktree at rest: an SQLite database (WAL) with files, their chunks and symbols, and full-text
search over the chunks' words (FTS5). Files are written in transactions, each of them whole: so a process killed at any
point leaves an index that is true of some files and knows nothing of the rest."""

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import chain, count
from typing import Any

import msgspec

from codewhale.codesearch.chunks import LINES, LONG, SMALL, WINDOW
from codewhale.codesearch.indexing import Batch
from codewhale.codesearch.model import KINDS, Commit, Stamp, Touch, folded
from codewhale.codesearch.symbols import LARGE, WHOLE
from codewhale.codesearch.terms import COUNT_BITS, TERMS_VERSION, ChunkWords, by_count, unpacked_words
from codewhale.lib.files import private_dir

FORMAT = 7
_BUSY_SECONDS = 20.0
_PASSING = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_INTERRUPT", "SQLITE_READONLY")  # no damage
_PAGE, _CHECKPOINT = 8192, 4000  # bytes; pages of the log before it is copied back
# A row of `words` holds the terms that are equally often in a chunk, and its number says where and how often (`place`):
# so all that ranking needs of a term is the numbers of the rows that match it, which FTS5 gives at once. FTS5 keeps no
# copy of the terms and has to be told them when they are taken out: `file_words` has them, packed.
_CHUNK_BITS = 16
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, lang TEXT NOT NULL, state TEXT NOT NULL, size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, lines INTEGER NOT NULL, sha BLOB NOT NULL,
    chunks INTEGER NOT NULL, symbols INTEGER NOT NULL
);
CREATE TABLE chunks (
    file INTEGER NOT NULL, number INTEGER NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    kind INTEGER NOT NULL, symbol TEXT NOT NULL, body_length INTEGER NOT NULL, symbol_length INTEGER NOT NULL,
    PRIMARY KEY (file, number)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (
    body, comment, symbol, call, content = '', tokenize = 'ascii', detail = column, columnsize = 0
);
CREATE TABLE file_words (file INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE symbols (
    file INTEGER NOT NULL, number INTEGER NOT NULL, chunk INTEGER NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL,
    kind TEXT NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL, scope TEXT NOT NULL,
    PRIMARY KEY (file, number)
) WITHOUT ROWID;
CREATE INDEX symbols_by_name ON symbols (folded, file, chunk);
CREATE TABLE imports (file INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE commits (number INTEGER PRIMARY KEY, length INTEGER NOT NULL, data BLOB NOT NULL);
CREATE VIRTUAL TABLE subjects USING fts5 (words, tokenize = 'ascii', detail = none, columnsize = 0);
CREATE TABLE touches (path TEXT PRIMARY KEY, count INTEGER NOT NULL, last_ns INTEGER NOT NULL) WITHOUT ROWID;
"""
_CONTENT = (("files", 11), ("chunks", 8), ("symbols", 9), ("imports", 2), ("file_words", 2))
_FIND = "INSERT INTO words (rowid, body, comment, symbol, call) VALUES (?, ?, ?, ?, ?)"
_UNFIND = "INSERT INTO words (words, rowid, body, comment, symbol, call) VALUES ('delete', ?, ?, ?, ?, ?)"
_HELD = "SELECT id, data FROM files JOIN file_words ON file = id WHERE path = ?"
_BY_FILE = (("files", "id"), ("chunks", "file"), ("symbols", "file"), ("imports", "file"), ("file_words", "file"))


class IndexDamagedError(Exception):
    """The database cannot be read, or holds what was never written to it."""


def _fingerprint(root: str) -> str:
    """What an index must have been made for and with: another one's answers are not taken."""
    made = (FORMAT, TERMS_VERSION, SMALL, LONG, LINES, WINDOW, WHOLE, LARGE, _languages(), os.path.realpath(root))
    return hashlib.sha256(repr(made).encode()).hexdigest()


@cache
def _languages() -> int:
    """A fingerprint of the table of languages."""
    return zlib.crc32(resources.files("codewhale.codesearch").joinpath("languages.json").read_bytes())


def database_path(state: str, root: str) -> str:
    """Where the index of the worktree at `root` is: one for each real path."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:24]
    return os.path.join(state, "index", name + ".db")


class Store:
    """One connection, for one thread at a time; any may close it. Made by `open_store`."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection
        self._using = threading.RLock()  # SQLite brings the process down where a connection is closed in use

    def close(self) -> None:
        """Let go of the database; what a thread is still doing in it fails."""
        while not self._using.acquire(timeout=0.002):
            with contextlib.suppress(sqlite3.Error):
                self._db.interrupt()
        with contextlib.suppress(sqlite3.Error):
            self._db.close()
        self._using.release()

    def meta(self, key: str) -> Any:
        """A remembered value, None when there is none."""
        return next((value for (value,) in self.rows("SELECT value FROM meta WHERE key = ?", (key,))), None)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a reading statement. Raises IndexDamagedError."""
        with self._using, _guarded():
            return self._db.execute(sql, values).fetchall()

    def generation(self) -> int:
        """Rises with every change of the content, whichever process made it."""
        return int(self.meta("generation") or 0)

    def begin_reading(self) -> None:
        """From here on see one state, whatever others write; until the connection is closed."""
        with self._using, _guarded():
            self._db.execute("BEGIN")

    def numbers(self, sql: str, values: Sequence[Any] = ()) -> Iterator[int]:
        """All values of a reading statement, row by row. Raises IndexDamagedError."""
        with self._using, _guarded():
            yield from chain.from_iterable(self._db.execute(sql, values))

    def stamps(self) -> dict[str, Stamp]:
        """Every file that is in, with its stamp."""
        rows = self.rows("SELECT path, size, mtime_ns, ctime_ns FROM files ORDER BY path")
        return {path: Stamp(*stamp) for path, *stamp in rows}

    def shas(self, paths: Iterable[str]) -> dict[str, bytes]:
        """What the contents of files were known by."""
        return dict(row for path in paths for row in self.rows("SELECT path, sha FROM files WHERE path = ?", (path,)))

    def words(self, paths: Iterable[str]) -> dict[str, list[ChunkWords]]:
        """The words of those of the files that are in."""
        return {path: _unpacked(data) for path in paths for _, data in self.rows(_HELD, (path,))}

    @contextlib.contextmanager
    def writing(self, content: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction, all or nothing; `content`: it changes what searches find."""
        with self._using, _guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if content:
                    _changed(self._db)
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

    def put(self, batch: Batch) -> None:
        """Take files in: they replace what was known of them, `gone` ones are forgotten."""
        with self.writing() as db:
            free = count(db.execute("SELECT coalesce(max(id), 0) + 1 FROM files").fetchone()[0])
            ids, old = _taken_out(db, [file.path for file in batch.files] + batch.gone)
            *rows, words = _rows(batch, [ids.get(file.path) or next(free) for file in batch.files])
            for (table, columns), values in zip(_CONTENT, rows, strict=True):
                db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})", values)
            _change_words(db, old, words)

    def forget(self, paths: Sequence[str]) -> None:
        """Forget files that are not there any more, or not to be searched."""
        if paths:
            with self.writing() as db:
                for path in paths:  # one by one: the words of all that is gone could be any amount
                    _change_words(db, _taken_out(db, [path])[1], [])

    def restamp(self, stamps: Iterable[tuple[str, Stamp]]) -> None:
        """Files whose content is what it was have other stamps now."""
        with self.writing(content=False) as db:
            db.executemany(
                "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ? WHERE path = ?",
                [(stamp.size, stamp.mtime_ns, stamp.ctime_ns, path) for path, stamp in stamps],
            )

    def put_history(self, commits: Sequence[Commit], words: Sequence[Mapping[str, int]]) -> None:
        """Replace the commits that are known; `words` are the terms of each subject."""
        with self.writing() as db:
            db.execute("DELETE FROM commits")
            db.execute("DELETE FROM subjects")
            for number, (commit, counts) in enumerate(zip(commits, words, strict=True)):
                values = (number, sum(counts.values()), msgspec.msgpack.encode(commit))
                db.execute("INSERT INTO commits VALUES (?, ?, ?)", values)
                rows = [(number << COUNT_BITS | often, terms) for often, terms in by_count(counts)]
                db.executemany("INSERT INTO subjects (rowid, words) VALUES (?, ?)", rows)

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
        with self._using, contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA busy_timeout = 0")
            try:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                self._db.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}")

    def is_sound(self) -> bool:
        """Whether the database passes its own check: a reading of all of it."""
        try:
            return self.rows("PRAGMA quick_check(1)") == [("ok",)]
        except IndexDamagedError:
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
        except IndexDamagedError:
            set_aside(path)
    raise IndexDamagedError(f"{path} cannot be made")


def open_existing(path: str, root: str) -> Store | None:
    """The index at `path` when there is one for `root`. Raises IndexDamagedError."""
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
    """SQLite's complaints about the file as IndexDamagedError; a file that is busy or a full disk is no damage."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "").startswith(_PASSING):
            raise OSError(f"the code index: {error}") from error
        raise IndexDamagedError(str(error)) from error
    except sqlite3.DatabaseError as error:
        raise IndexDamagedError(str(error)) from error


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


def _changed(db: sqlite3.Connection) -> None:
    """Another generation, which nobody has called complete yet."""
    db.execute("INSERT INTO meta VALUES ('generation', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1")
    db.execute("UPDATE meta SET value = 0 WHERE key = 'complete'")


def _taken_out(db: sqlite3.Connection, paths: Sequence[str]) -> tuple[dict[str, int], set[tuple[Any, ...]]]:
    """Take files out; their numbers by their paths, and the rows of their words, which are still found."""
    ids, words = dict[str, int](), set[tuple[Any, ...]]()
    for path in paths:
        for id, data in db.execute(_HELD, (path,)).fetchall():
            ids[path] = id
            words.update(_words(id, _unpacked(data)))
            for table, key in _BY_FILE:
                db.execute(f"DELETE FROM {table} WHERE {key} = ?", (id,))
    return ids, words


def _change_words(db: sqlite3.Connection, old: set[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> None:
    """Have the new rows found in the place of the old ones. In the order of their numbers: FTS5 writes out what it has
    gathered whenever a number is below the last one."""
    if not old:
        db.executemany(_FIND, new)
        return
    wanted = set(new)
    for row in sorted(old ^ wanted, key=lambda row: (row[0], row in wanted)):
        db.execute(_FIND if row in wanted else _UNFIND, row)


def _unpacked(data: bytes) -> list[ChunkWords]:
    """The words of a file. Raises IndexDamagedError."""
    try:
        return unpacked_words(data)
    except ValueError as error:
        raise IndexDamagedError(str(error)) from error


def _words(file: int, chunks: Sequence[ChunkWords]) -> list[tuple[Any, ...]]:
    """The rows of the words of a file."""
    return [(place(file, at, often), *terms) for at, chunk in enumerate(chunks) for often, *terms in chunk.rows]


def place(file: int, chunk: int, often: int) -> int:
    """The number of the row of words that are so often in a chunk of a file."""
    return (file << _CHUNK_BITS | chunk) << COUNT_BITS | often


def split(places: Any) -> tuple[Any, Any, Any]:
    """The files, chunks and counts of places."""
    chunks = places >> COUNT_BITS
    return chunks >> _CHUNK_BITS, chunks & (1 << _CHUNK_BITS) - 1, places & (1 << COUNT_BITS) - 1


def _rows(batch: Batch, ids: Sequence[int]) -> tuple[list[tuple[Any, ...]], ...]:
    """The rows of files with these numbers, for each table of _CONTENT and for `words`."""
    files, chunks, symbols, imports, packed, words = rows = tuple[list[tuple[Any, ...]], ...]([] for _ in range(6))
    for id, file in zip(ids, batch.files, strict=True):
        source, stamp = file.source, (file.size, file.mtime_ns, file.ctime_ns)
        counts = (len(source.chunks), len(source.symbols))
        files.append((id, file.path, source.lang, source.state, *stamp, source.lines, source.sha, *counts))
        found = _unpacked(source.words)
        for number, (chunk, held) in enumerate(zip(source.chunks, found, strict=True)):
            cut = (chunk.line, chunk.end_line, KINDS.index(chunk.kind), chunk.symbol)
            chunks.append((id, number, *cut, held.body_length, held.symbol_length))
        for number, (at, symbol) in enumerate(source.symbols):
            names, lines = (symbol.name, folded(symbol.name)), (symbol.line, symbol.end_line)
            symbols.append((id, number, at, *names, symbol.kind, *lines, symbol.scope))
        if source.imports:
            imports.append((id, msgspec.msgpack.encode(source.imports)))
        packed.append((id, source.words))
        words += _words(id, found)
    return rows
