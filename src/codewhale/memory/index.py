"""The full-text index of facts: a database that is only ever made anew, whole, from the MEMORY.md files."""

import contextlib
import glob
import hashlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from codewhale.lib.files import atomic_write
from codewhale.memory.files import LIMIT, NAME, FactFile, locked
from codewhale.memory.keys import claims
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.model import Fact
from codewhale.memory.words import words

if TYPE_CHECKING:
    import sqlite3

_VERSION = "2"  # raise it when words() or claims() gives other answers
_PATIENCE = 2.0  # seconds that a process waits for another that writes the index
_SEAL = 32
_TABLES = """
CREATE TABLE files (folder TEXT PRIMARY KEY, sha256 TEXT, first INTEGER, last INTEGER);
CREATE TABLE words (word TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE facts USING fts5 (text, about, tokenize = 'porter unicode61 remove_diacritics 2');
"""


class FactIndex:
    """The index of `root`, which is HOME/memory. Nothing is changed in the file on disk: it is written whole and
    renamed, so that no page or journal can hold the text of a removed fact."""

    def __init__(self, root: str) -> None:
        self.path = os.path.join(root, "index.sqlite3")
        self._root = root
        self._sums = dict[str, str]()
        self._facts = dict[str, tuple[Fact, ...]]()
        self._database: sqlite3.Connection | None = None
        self._using = threading.Lock()

    @contextlib.contextmanager
    def opened(self) -> Iterator["tuple[sqlite3.Connection, dict[str, tuple[Fact, ...]]]"]:
        """The database as the files are now, and the facts of each folder: row `first` + n is its fact n."""
        with self._using:
            sums = self._digests()
            if self._database is None or sums != self._sums or not os.path.exists(self.path):
                self._database = self._stored(sums) or self._made_anew()
            yield self._database, self._facts

    def forget(self) -> None:
        """Remove the index: for when the text of a fact has gone from its file."""
        with self._using, contextlib.ExitStack() as stack:
            self._alone(stack)
            self._database = None
            self._remove()

    def is_old(self) -> bool:
        """Whether there is one on disk which is not of the files as they are."""
        with self._using:
            return os.path.lexists(self.path) and self._stored(self._digests()) is None

    def dump(self) -> list[tuple[Any, ...]]:
        """Every row, to compare an index with another."""
        with self.opened() as (database, _):
            columns = {"files": "*", "words": "*", "facts": "rowid, *"}
            return [
                (table, *row) for table in columns for row in database.execute(f"SELECT {columns[table]} FROM {table}")
            ]

    def _digests(self) -> dict[str, str]:
        folders = ["global"]
        with contextlib.suppress(OSError):
            folders += sorted(f"workspace/{name}" for name in os.listdir(os.path.join(self._root, "workspace")))
        sums = dict[str, str]()
        for folder in folders:
            with (
                contextlib.suppress(OSError),
                open(os.path.join(self._root, folder, NAME), "rb", opener=_quiet) as file,
            ):
                sums[folder] = hashlib.sha256(file.read(LIMIT + 1)).hexdigest()
        return sums

    def _lists(self, sums: dict[str, str]) -> dict[str, str]:
        """Read the files; their digests as they were read."""
        lists = {folder: FactFile(self._root, folder).read() for folder in sums}
        self._facts = {folder: read.facts for folder, read in lists.items()}
        self._sums = {folder: read.sha256 or sums[folder] for folder, read in lists.items()}
        return self._sums

    def _stored(self, sums: dict[str, str]) -> "sqlite3.Connection | None":
        """The database on disk; None where it is of other files, or not as it was written."""
        try:
            with open(self.path, "rb", opener=_quiet) as file:
                data = file.read()
        except OSError:
            return None
        if _seal(data[:-_SEAL]) != data[-_SEAL:]:
            return None
        database = _memory()
        database.deserialize(data[:-_SEAL])
        rows = dict(database.execute("SELECT folder, sha256 FROM files"))
        return database if rows == sums == self._lists(sums) else None

    def _made_anew(self) -> "sqlite3.Connection":
        """A database of the files as they are once no other process writes one; stored where that can be done."""
        with contextlib.ExitStack() as stack:
            alone = self._alone(stack)
            sums = self._lists(self._digests())
            database = _memory()
            _fill(database, sums, self._facts)
            if alone:
                data = database.serialize()
                with contextlib.suppress(OSError):
                    self._remove()
                    atomic_write(self.path, data + _seal(data))
            return database

    def _remove(self) -> None:
        # With what a process that was killed while it wrote has left, and a journal of whoever opened the file.
        left = glob.glob(glob.escape(self._root) + "/.index.sqlite3.*.tmp")
        for path in (self.path, *left, *glob.glob(glob.escape(self.path) + "-*")):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _alone(self, stack: contextlib.ExitStack) -> bool:
        """Keep other processes from writing the index; False where one takes too long, or there is no memory."""
        if not os.path.isdir(self._root):
            return False
        try:
            stack.enter_context(locked(self._root, seconds=_PATIENCE))
        except (OSError, MemoryRefused):
            return False
        return True


def _quiet(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _seal(data: bytes) -> bytes:
    """What stands behind the last page of the file, where SQLite does not look: damage in any byte shows."""
    return hashlib.sha256(_VERSION.encode() + data).digest()


def _memory() -> "sqlite3.Connection":
    import sqlite3

    class Memory(sqlite3.Connection):
        __del__ = sqlite3.Connection.close  # with no file behind it, it is closed by whoever held it last

    return sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None, factory=Memory)


def _fill(database: "sqlite3.Connection", sums: dict[str, str], facts: dict[str, tuple[Fact, ...]]) -> None:
    database.executescript(_TABLES)
    database.execute("BEGIN")
    row, known = 1, set[str]()
    for folder, sha256 in sums.items():
        first = row
        for row, fact in enumerate(facts[folder], first):
            text = words(fact.text)
            key = words(fact.key) + [word for claim in claims(fact) for word in claim.key.split()]
            known.update(text, key)
            database.execute(
                "INSERT INTO facts (rowid, text, about) VALUES (?, ?, ?)", (row, " ".join(text), " ".join(key))
            )
        row = first + len(facts[folder])
        database.execute("INSERT INTO files VALUES (?, ?, ?, ?)", (folder, sha256, first, row - 1))
    database.executemany("INSERT INTO words VALUES (?)", [(word,) for word in sorted(known)])
    database.execute("COMMIT")
