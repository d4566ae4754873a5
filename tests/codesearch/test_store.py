"""The database itself: whose it is, what it forgets, what it says of damage."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codewhale.codesearch.indexing import Batch
from codewhale.codesearch.model import Chunk, IndexedFile, ParsedSource, Stamp, Symbol
from codewhale.codesearch.store import (
    IndexDamagedError,
    Store,
    database_path,
    open_existing,
    open_store,
    place,
    split,
)
from codewhale.codesearch.terms import ChunkWords, packed_words
from support.patience import HANG


def batch(*paths: str) -> Batch:
    chunk = Chunk(1, 1, "fn", "f")
    words = packed_words([ChunkWords(b"", 1, 0, [(1, "word", "", "", "")])])
    symbols = [(0, Symbol("f", "fn", 1, 1))]
    content = ([chunk], symbols, [(1, "os")], words)
    sources = ((path, ParsedSource("python", path.encode(), 1, "", *content)) for path in paths)
    return Batch([IndexedFile(path, 1, 2, 3, source) for path, source in sources], [])


CONNECT = sqlite3.connect


@pytest.fixture
def path(tmp_path: Path) -> str:
    return database_path(str(tmp_path / "home"), str(tmp_path))


def counts(store: Store) -> tuple[int, ...]:
    tables = ("files", "chunks", "file_words", "symbols", "imports")
    words = store.rows("SELECT count(*) FROM words WHERE words MATCH 'word'")[0][0]
    return words, *(store.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables)


def test_files_replace_what_was_known_of_them(path: str, tmp_path: Path) -> None:
    store = open_store(path, str(tmp_path))
    store.put(batch("a.py", "b.py"))
    before = store.generation()
    store.put(batch("a.py"))
    assert counts(store) == (2,) * 6 and store.generation() == before + 1
    store.put(batch("b.py"))
    assert counts(store) == (2,) * 6
    store.forget(["a.py", "b.py", "never there"])
    assert counts(store) == (0,) * 6
    store.close()


def test_stamps_and_shas(path: str, tmp_path: Path) -> None:
    store = open_store(path, str(tmp_path))
    store.put(batch("a.py"))
    generation = store.generation()
    store.restamp([("a.py", Stamp(7, 8, 9))])
    assert store.stamps() == {"a.py": Stamp(7, 8, 9)} and store.shas(["a.py", "b"]) == {"a.py": b"a.py"}
    assert store.generation() == generation
    store.close()


def test_a_failed_write_leaves_nothing(path: str, tmp_path: Path) -> None:
    store = open_store(path, str(tmp_path))
    bad = batch("a.py")
    bad.files[0].path = None  # type: ignore[assignment]
    with pytest.raises(IndexDamagedError):
        store.put(bad)
    assert counts(store) == (0,) * 6 and store.generation() == 0
    store.close()


def test_touches_add_up(path: str, tmp_path: Path) -> None:
    store = open_store(path, str(tmp_path))
    store.touch(["a.py", "b.py"], 5)
    store.touch(["a.py"], 3)
    assert [(touch.path, touch.count, touch.last_ns) for touch in store.touches()] == [("a.py", 2, 5), ("b.py", 1, 5)]
    store.close()


def test_an_index_of_another_place_or_by_other_rules_is_not_taken(path: str, tmp_path: Path) -> None:
    store = open_store(path, str(tmp_path))
    store.put(batch("a.py"))
    store.close()
    assert open_existing(path, str(tmp_path / "elsewhere")) is None
    store = open_store(path, str(tmp_path / "elsewhere"))
    assert counts(store) == (0,) * 6
    store.close()


def test_there_is_none_where_none_was_made(path: str, tmp_path: Path) -> None:
    assert open_existing(path, str(tmp_path)) is None and not os.path.exists(path)


def test_a_wreck_is_set_aside(path: str, tmp_path: Path) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).write_bytes(b"no database at all, but long enough to be read as one " * 100)
    with pytest.raises(IndexDamagedError):
        open_existing(path, str(tmp_path))
    store = open_store(path, str(tmp_path))
    assert counts(store) == (0,) * 6 and os.path.exists(path + ".damaged") and store.is_sound()
    store.close()


def test_a_reader_sees_one_state_while_another_writes(path: str, tmp_path: Path) -> None:
    store, other = open_store(path, str(tmp_path)), open_store(path, str(tmp_path))
    store.begin_reading()
    assert store.generation() == 0
    other.put(batch("a.py"))
    assert counts(store)[0] == 0 and counts(other)[0] == 1
    store.close()
    other.close()


def test_a_full_disk_is_no_damage(path: str, tmp_path: Path) -> None:
    store = open_store(path, str(tmp_path))
    pages = store.rows("PRAGMA page_count")[0][0]
    store.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OSError, match="full"):
        store.put(batch(*(f"file{number}.py" for number in range(3000))))
    assert counts(store) == (0,) * 6
    store.close()


def test_the_database_is_the_owners_alone(path: str, tmp_path: Path) -> None:
    open_store(path, str(tmp_path)).close()
    assert os.stat(path).st_mode & 0o77 == 0
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_wreck_is_let_go_of(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[sqlite3.Connection] = []

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        made.append(CONNECT(*args, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", connect)
    with contextlib.closing(open_store(path, str(tmp_path))) as store:
        store.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    data = Path(path).read_bytes()
    page = int.from_bytes(data[16:18], "big")
    Path(path).write_bytes(data[:page] + os.urandom(len(data) - page))  # its schema can be read, its tables not
    with pytest.raises(IndexDamagedError):
        open_existing(path, str(tmp_path))
    open_store(path, str(tmp_path)).close()
    assert len(made) > 4
    for connection in made:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.total_changes  # noqa: B018


async def test_who_copies_the_log_back_waits_for_no_reader(path: str) -> None:
    store, reader = open_store(path, "/w"), open_store(path, "/w")
    store.put(batch("a.py"))
    reader.begin_reading()
    assert reader.stamps().keys() == {"a.py"}
    store.put(batch("b.py"))
    async with asyncio.timeout(HANG):
        await asyncio.to_thread(store.checkpoint)
    assert store.rows("PRAGMA busy_timeout") == [(20_000,)]
    assert reader.stamps().keys() == {"a.py"} and store.stamps().keys() == {"a.py", "b.py"}
    reader.close()
    store.close()


def test_places_come_apart_as_they_were_put_together() -> None:
    assert split(place(7, 41_999, 255)) == (7, 41_999, 255) and place(7, 41_999, 255) < place(8, 0, 0)


CLOSING = """
import itertools, sys, threading
from codewhale.codesearch.store import open_store

for number in range(5):
    store, begun, ends = open_store(sys.argv[1], sys.argv[2]), threading.Event(), []

    def work():
        try:
            with store.writing() as db:
                begun.set()
                db.executemany("INSERT INTO meta VALUES (?, 1)", ((f"x{row}",) for row in itertools.count()))
        except OSError as error:
            ends.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    begun.wait()
    store.close()
    thread.join(60)
    assert ["interrupted" in str(end) for end in ends] == [True], ends
store = open_store(sys.argv[1], sys.argv[2])
print(store.is_sound(), store.rows("SELECT count(*) FROM meta WHERE key LIKE 'x%'"))
"""


def test_a_database_that_is_closed_in_use_ends_its_user_and_not_the_process(path: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLOSING, path, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert (done.returncode, done.stdout) == (0, "True [(0,)]\n"), done.stderr
