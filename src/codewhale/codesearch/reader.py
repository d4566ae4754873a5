"""A view of an index for ranking: one state of it, whatever is written meanwhile; postings as arrays. Not for use by
two threads at once."""

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from codewhale.codesearch.model import BODY, CALL, DEFINED, KINDS, SYMBOL, Chunk, Commit, FileDoc, Symbol, Touch, folded
from codewhale.codesearch.store import IndexDamagedError, Store, place, split
from codewhale.codesearch.terms import as_written

if TYPE_CHECKING:
    import numpy

    Floats = numpy.ndarray[tuple[int], numpy.dtype[numpy.float32]]
    Ints = numpy.ndarray[tuple[int], numpy.dtype[numpy.int32]]
    Numbers = numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]

T = TypeVar("T")

_MOST_KEPT = 20_000  # postings lists
_CHUNKS = "SELECT file, start_line, end_line, kind, body_length, symbol_length FROM chunks ORDER BY file, number"
_SYMBOL = "name, kind, line, end_line, scope"


class IndexReader:
    """One state of an index. Chunks are numbered from 0 through all files. Takes the store over: close the reader, not
    the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.begin_reading()
        self.generation = store.generation()
        self._load_files()
        self._kept: dict[tuple[str, str], tuple[Any, Any]] = {}
        self._symbols: dict[int, list[Symbol]] = {}
        self._commit_files: tuple[Numbers, Ints] | None = None
        self.commit_length = _array(store.numbers("SELECT length FROM commits ORDER BY number")).astype("float32")
        self.commit_count = len(self.commit_length)

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    def meta(self, key: str) -> Any:
        """What the index remembers under a key (branch, built_at, complete ...)."""
        return self._store.meta(key)

    def lengths(self, field: str) -> "Floats":
        """How many terms each chunk has in BODY or SYMBOL."""
        return self._lengths[field]

    def postings(self, field: str, term: str) -> "tuple[Numbers, Floats]":
        """(chunk, how often it holds the term), ascending. A chunk DEFINED a name once or not."""
        found = self._kept.get((field, term))
        if found is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            files, numbers, often = split(self._places(field, term))
            chunks = self._firsts.take(files, mode="clip") + numbers
            if len(chunks) and (chunks[-1] >= self.chunk_count or files[-1] >= len(self._firsts)):
                raise IndexDamagedError("words of a chunk that is not there")
            found = self._kept[field, term] = (chunks, often.astype("float32"))
        return found

    def names_with_prefix(self, prefix: str, limit: int = 50) -> list[str]:
        """The folded names of definitions that begin with `prefix`, sorted, at most `limit`."""
        sql = "SELECT DISTINCT folded FROM symbols WHERE folded >= ? AND folded < ? ORDER BY folded LIMIT ?"
        return [name for (name,) in self._store.rows(sql, (prefix, prefix + chr(0x10FFFF), limit))]

    def chunk(self, number: int) -> Chunk:
        """A chunk with its main definition."""
        file = self.files[self.chunk_file[number]]
        sql = "SELECT start_line, end_line, kind, symbol FROM chunks WHERE file = ? AND number = ?"
        ((start, end, kind, symbol),) = self._store.rows(sql, (file.id, int(number) - file.first))
        return Chunk(start, end, KINDS[kind], symbol)

    def symbols(self, file: int) -> list[Symbol]:
        """What a file defines, in the order of lines."""
        found = self._symbols.get(file)
        if found is None:
            sql = f"SELECT {_SYMBOL} FROM symbols WHERE file = ? ORDER BY number"
            found = self._symbols[file] = [Symbol(*row) for row in self._store.rows(sql, (self.files[file].id,))]
        return found

    def defined(self, name: str, *, fold: bool = False) -> list[tuple[int, Symbol]]:
        """(file, definition) of everything called `name`; `fold`: whatever its case and underscores."""
        last = name.replace("::", ".").rpartition(".")[2]
        rows = self._store.rows(f"SELECT file, {_SYMBOL} FROM symbols WHERE folded = ?", (folded(last),))
        found = [(self._numbers[file], number, Symbol(*row)) for number, (file, *row) in enumerate(rows)]
        return [(file, symbol) for file, _, symbol in sorted(found) if fold or symbol.name == last]

    def imports(self, file: int) -> list[tuple[int, str]]:
        """What a file imports: (line, as written: "a.b", "./c", "foo/bar.h")."""
        rows = self._store.rows("SELECT data FROM imports WHERE file = ?", (self.files[file].id,))
        return unpacked_imports(rows[0][0]) if rows else []

    def packed_imports(self) -> Iterator[tuple[int, bytes]]:
        """(file, its imports as they are stored) of every file that has some; for `unpacked_imports`."""
        for file, packed in self._store.rows("SELECT file, data FROM imports"):
            if file in self._numbers:
                yield self._numbers[file], packed

    def touches(self) -> list[Touch]:
        """What sessions looked at or changed."""
        return self._store.touches()

    def commit(self, number: int) -> Commit:
        """A commit, 0 being the newest."""
        (row,) = self._store.rows("SELECT data FROM commits WHERE number = ?", (number,))
        return _decoded(row[0], Commit)

    def commits(self) -> Iterator[Commit]:
        """All of them, newest first."""
        for (data,) in self._store.rows("SELECT data FROM commits ORDER BY number"):
            yield _decoded(data, Commit)

    def history(self, term: str) -> "tuple[Numbers, Floats]":
        """(commit, how often its subject holds the term), ascending."""
        _, commits, often = split(self._matching("subjects", f'"{term}"'))
        return commits, often.astype("float32")

    @property
    def commit_files(self) -> "tuple[Numbers, Ints]":
        """(starts, files): the files that commit N changed and that still exist are files[starts[N]:starts[N + 1]]."""
        import numpy

        if self._commit_files is None:
            numbers = {path: number for number, path in enumerate(self.paths)}
            starts, files = [0], array("i")
            for commit in self.commits():
                files.extend(numbers[path] for path in commit.paths if path in numbers)
                starts.append(len(files))
            self._commit_files = (numpy.array(starts, dtype=numpy.int64), numpy.array(files, dtype=numpy.int32))
        return self._commit_files

    def _load_files(self) -> None:
        import numpy

        table = _array(self._store.numbers(_CHUNKS)).reshape(-1, 6)
        of, self.chunk_line, self.chunk_end, self.chunk_kind, *lengths = table.T.copy()
        self._lengths = {field: each.astype("float32") for field, each in zip((BODY, SYMBOL), lengths, strict=True)}
        self.chunk_count = len(of)
        ids, firsts, counts = numpy.unique(of, return_index=True, return_counts=True)
        self._firsts = numpy.zeros(int(ids.max(initial=0)) + 1, dtype=numpy.int64)
        self._firsts[ids] = firsts
        found = dict(zip(ids.tolist(), counts.tolist(), strict=True))
        sql = "SELECT id, path, lang, state, size, lines, chunks FROM files WHERE chunks ORDER BY path"
        rows = self._store.rows(sql)
        if {id: chunks for id, *_, chunks in rows} != found:
            raise IndexDamagedError("chunks of a file are missing, or a file of chunks")
        self.files = [
            FileDoc(id, path, lang, state, size, lines, int(self._firsts[id]), chunks)
            for id, path, lang, state, size, lines, chunks in rows
        ]
        self.paths = [file.path for file in self.files]
        self._numbers = {file.id: number for number, file in enumerate(self.files)}
        numbers = numpy.zeros(len(self._firsts), dtype=numpy.int32)
        numbers[[file.id for file in self.files]] = numpy.arange(len(self.files))
        self.chunk_file = numbers[of]

    def _places(self, field: str, term: str) -> "Numbers":
        if field == DEFINED:
            rows = self._store.rows("SELECT DISTINCT file, chunk FROM symbols WHERE folded = ?", (term,))
            return _array(place(file, chunk, 1) for file, chunk in sorted(rows))
        return self._matching("words", f'{field} : "{as_written(term) if field == CALL else term}"')

    def _matching(self, table: str, wanted: str) -> "Numbers":
        """The numbers of the rows that match. As one text, which is read much faster than so many rows."""
        import numpy

        ((text,),) = self._store.rows(f"SELECT group_concat(rowid) FROM {table} WHERE {table} MATCH ?", (wanted,))
        return numpy.sort(numpy.fromstring(text or "", numpy.int64, sep=","))


def unpacked_imports(packed: bytes) -> list[tuple[int, str]]:
    """(line, import as written). Raises IndexDamagedError."""
    return _decoded(packed, list[tuple[int, str]])


def _array(values: Iterator[int]) -> "Numbers":
    import numpy

    return numpy.fromiter(values, numpy.int64)


def _decoded(data: bytes, kind: type[T]) -> T:
    """What was packed as a value of `kind`. Raises IndexDamagedError."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise IndexDamagedError(str(error)) from error
