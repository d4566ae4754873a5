"""A view of an index for ranking: one state of it, whatever is written meanwhile; postings as arrays. Not for use by
two threads at once."""

import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from codewhale.codesearch import segment
from codewhale.codesearch.model import (
    BODY,
    DEFINED,
    KINDS,
    Chunk,
    Commit,
    FileDoc,
    Outline,
    Symbol,
    Touch,
    folded,
)
from codewhale.codesearch.resolve import Resolver
from codewhale.codesearch.segment import COUNTED, Rows
from codewhale.codesearch.store import CODE, HISTORY, DamagedError, Store

if TYPE_CHECKING:
    import numpy

    Floats = numpy.ndarray[tuple[int], numpy.dtype[numpy.float32]]
    Ints = numpy.ndarray[tuple[int], numpy.dtype[numpy.int32]]
    Numbers = numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]

T = TypeVar("T")

_MOST_KEPT = 20_000  # postings lists
_BLOCKS = 4_000  # blocks kept in memory
_FIND = "SELECT crc, data FROM blocks WHERE id = ?"


class _Part:
    """One segment: its number, its first chunk among all, its first block, and the first key of each block."""

    def __init__(self, base: int, first_block: int, first_keys: str) -> None:
        self.base = base
        self.first_block = first_block
        self.keys = first_keys.split("\n")


class Reader:
    """One state of an index. Chunks are numbered from 0 through all segments; among them are dead ones, of files that
    have changed since (`chunk_file` -1). Takes the store over: close the reader, not the store."""

    def __init__(self, store: Store) -> None:
        import numpy

        self._store = store
        store.begin_reading()
        self.generation = store.generation()
        self._parts: dict[int, _Part] = {}
        self._blocks: dict[int, segment.Block] = {}
        self._history: _Part | None = None
        columns = self._load_segments()
        self.chunk_line, self.chunk_end = columns["starts"], columns["ends"]
        self.chunk_kind = columns["kinds"]
        self._lengths: dict[str, Floats] = {field: columns[field].astype(numpy.float32) for field in COUNTED}
        self.chunk_count = len(self.chunk_line)
        self.chunk_file = numpy.full(self.chunk_count, -1, dtype=numpy.int32)
        self.files: list[FileDoc] = []
        self._load_files()
        self.paths = [file.path for file in self.files]
        self.live_chunks = int((self.chunk_file >= 0).sum())
        self._kept: dict[tuple[str, str], tuple[Any, Any]] = {}
        self._outlines: dict[int, Outline] = {}
        self._imports: tuple[Ints, Ints] | None = None
        self._commit_files: tuple[Numbers, Ints] | None = None
        self.commit_length, self.commit_count = self._load_history()

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    def meta(self, key: str) -> Any:
        """What the index remembers under a key (branch, built_at, complete ...)."""
        return self._store.meta(key)

    def lengths(self, field: str) -> "Floats":
        """How many terms each chunk has in a field that is counted (BODY, COMMENT, SYMBOL, PATH)."""
        return self._lengths[field]

    def postings(self, field: str, term: str) -> "tuple[Numbers, Floats]":
        """(chunk, how often the term stands in it), live chunks alone, ascending."""
        found = self._kept.get((field, term))
        if found is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            found = self._kept[field, term] = self._postings(field + term)
        return found

    def terms_with_prefix(self, field: str, prefix: str, limit: int = 50) -> list[str]:
        """The terms of a field that begin with `prefix`, sorted, at most `limit`. Some may be of dead chunks alone."""
        found: set[str] = set()
        wanted = field + prefix
        for part in self._parts.values():
            own: set[str] = set()
            for at in range(max(0, bisect_right(part.keys, wanted) - 1), len(part.keys)):
                if len(own) >= limit or (part.keys[at] > wanted and not part.keys[at].startswith(wanted)):
                    break
                keys = segment.keys_of(self._block(part.first_block + at))
                own.update(key for key in keys if key.startswith(wanted))
            found |= own
        return [key[len(field) :] for key in sorted(found)[:limit]]

    def chunk(self, number: int) -> Chunk:
        """A chunk, named by the largest definition that begins in it, or else the smallest around it."""
        line, end = int(self.chunk_line[number]), int(self.chunk_end[number])
        return Chunk(line, end, KINDS[int(self.chunk_kind[number])], self.chunk_symbol(number))

    def chunk_symbol(self, number: int) -> str:
        """The name of what a live chunk mainly is, "" for a plain stretch."""
        line, end = int(self.chunk_line[number]), int(self.chunk_end[number])
        kind = KINDS[int(self.chunk_kind[number])]
        if kind == "block" or self.chunk_file[number] < 0:
            return ""
        symbols = self.symbols(int(self.chunk_file[number]))
        inside = [symbol for symbol in symbols if line <= symbol.line <= end and symbol.kind == kind]
        if inside:
            return max(inside, key=lambda symbol: (min(symbol.end_line, end) - symbol.line, -symbol.line)).name
        around = [symbol for symbol in symbols if symbol.line <= line <= symbol.end_line and symbol.kind == kind]
        return min(around, key=lambda symbol: symbol.end_line - symbol.line).name if around else ""

    def outline(self, file: int) -> Outline:
        """What a file defines and imports."""
        found = self._outlines.get(file)
        if found is None:
            sql = "SELECT symbols, imports FROM outlines WHERE file = ?"
            rows = self._store.rows(sql, (self.files[file].id,))
            found = self._outlines[file] = _outline(*rows[0]) if rows else Outline([], [])
        return found

    def symbols(self, file: int) -> list[Symbol]:
        """What a file defines, in the order of lines."""
        return self.outline(file).symbols

    def defined(self, name: str, *, fold: bool = False) -> list[tuple[int, Symbol]]:
        """(file, definition) of everything called `name`; `fold`: whatever its case and underscores."""
        last = name.replace("::", ".").rpartition(".")[2]
        chunks, _ = self.postings(DEFINED, folded(last))
        files = sorted({int(self.chunk_file[chunk]) for chunk in chunks})
        same = folded(last)
        return [
            (file, symbol)
            for file in files
            for symbol in self.symbols(file)
            if symbol.name == last or (fold and folded(symbol.name) == same)
        ]

    def imports(self) -> "tuple[Ints, Ints]":
        """(importing file, imported file), pairs of files of this tree, each once."""
        import numpy

        if self._imports is None:
            resolver = Resolver(self.paths)
            pairs = {
                (file, target)
                for file, packed in self.packed_imports()
                for _, written in unpacked_imports(packed)
                for target in resolver.targets(file, self.files[file].lang, written)
                if target != file
            }
            ordered = numpy.array(sorted(pairs), dtype=numpy.int32).reshape(-1, 2)
            self._imports = (ordered[:, 0].copy(), ordered[:, 1].copy())
        return self._imports

    def packed_imports(self) -> Iterator[tuple[int, bytes]]:
        """(file, its imports as they are stored) of every file that has some; for `unpacked_imports`."""
        numbers = {file.id: number for number, file in enumerate(self.files)}
        for file, packed in self._store.rows("SELECT file, imports FROM outlines WHERE imports != x'90'"):
            if file in numbers:
                yield numbers[file], packed

    def touches(self) -> list[Touch]:
        """What sessions looked at or changed."""
        return self._store.touches()

    def commit(self, number: int) -> Commit:
        """A commit, 0 being the newest."""
        (row,) = self._store.rows("SELECT data FROM commits WHERE number = ?", (number,))
        return _commit(row[0])

    def commits(self) -> Iterator[Commit]:
        """All of them, newest first."""
        for (data,) in self._store.rows("SELECT data FROM commits ORDER BY number"):
            yield _commit(data)

    def history(self, term: str) -> "tuple[Numbers, Floats]":
        """(commit, how often the term stands in its subject), ascending."""
        import numpy

        raw = self._raw(self._history, BODY + term) if self._history is not None else b""
        packed = numpy.frombuffer(raw, dtype=numpy.uint32)
        return (packed >> 8).astype(numpy.int64), (packed & 255).astype(numpy.float32)

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

    def _load_segments(self) -> "dict[str, Any]":
        import numpy

        columns: dict[str, list[Any]] = {name: [] for name in ("starts", "ends", "kinds", *COUNTED)}
        base = 0
        sql = "SELECT id, columns, first_block, first_keys FROM segments WHERE kind = ? ORDER BY id"
        for number, data, first, keys in self._store.rows(sql, (CODE,)):
            rows = _decoded(data, Rows)
            self._parts[number] = _Part(base, first, keys)
            base += rows.chunks
            columns["starts"].append(numpy.frombuffer(rows.starts, dtype=numpy.uint32))
            columns["ends"].append(numpy.frombuffer(rows.ends, dtype=numpy.uint32))
            columns["kinds"].append(numpy.frombuffer(rows.kinds, dtype=numpy.uint8))
            for field, lengths in zip(COUNTED, rows.lengths, strict=True):
                columns[field].append(numpy.frombuffer(lengths, dtype=numpy.uint16))
        types = {"kinds": numpy.uint8, "starts": numpy.int32, "ends": numpy.int32}
        return {
            name: numpy.concatenate(parts).astype(types.get(name, numpy.uint16)) if parts else
            numpy.empty(0, dtype=types.get(name, numpy.uint16))
            for name, parts in columns.items()
        }  # fmt: skip

    def _load_files(self) -> None:
        sql = "SELECT id, path, lang, state, size, lines, segment, first, chunks FROM files ORDER BY path"
        for id, path, lang, state, size, lines, number, first, chunks in self._store.rows(sql):
            if not chunks:
                continue
            if number not in self._parts:
                raise DamagedError(f"a segment of {path} is missing")
            start = self._parts[number].base + first
            self.chunk_file[start : start + chunks] = len(self.files)
            self.files.append(FileDoc(id, path, lang, state, size, lines, start, chunks))

    def _load_history(self) -> "tuple[Floats, int]":
        import numpy

        sql = "SELECT chunks, columns, first_block, first_keys FROM segments WHERE kind = ? ORDER BY id"
        for count, data, first, keys in self._store.rows(sql, (HISTORY,)):
            self._history = _Part(0, first, keys)
            return numpy.frombuffer(_decoded(data, Rows).lengths[0], dtype=numpy.uint16).astype(numpy.float32), count
        return numpy.empty(0, dtype=numpy.float32), 0

    def _postings(self, key: str) -> "tuple[Numbers, Floats]":
        import numpy

        found = [(raw, part.base) for part in self._parts.values() if (raw := self._raw(part, key))]
        if not found:
            return numpy.empty(0, dtype=numpy.int64), numpy.empty(0, dtype=numpy.float32)
        packed = numpy.frombuffer(b"".join(raw for raw, _ in found), dtype=numpy.uint32)
        ids = (packed >> 8).astype(numpy.int64)
        if len(found) > 1 or found[0][1]:
            ids += numpy.repeat([base for _, base in found], [len(raw) // 4 for raw, _ in found])
        often = (packed & 255).astype(numpy.float32)
        if self.live_chunks == self.chunk_count:
            return ids, often
        live = self.chunk_file[ids] >= 0
        return ids[live], often[live]

    def _raw(self, part: _Part, key: str) -> bytes:
        at = bisect_right(part.keys, key) - 1
        return segment.find(self._block(part.first_block + at), key) if at >= 0 else b""

    def _block(self, number: int) -> segment.Block:
        found = self._blocks.get(number)
        if found is None:
            rows = self._store.rows(_FIND, (number,))
            if not rows:
                raise DamagedError("a block of postings is missing")
            if len(self._blocks) >= _BLOCKS:
                self._blocks.clear()
            found = self._blocks[number] = _checked(*rows[0])
        return found


def unpacked_imports(packed: bytes) -> list[tuple[int, str]]:
    """(line, import as written). Raises DamagedError."""
    return _decoded(packed, list[tuple[int, str]])


def _checked(crc: int, data: bytes) -> segment.Block:
    """A block that is what was written. Raises DamagedError."""
    if zlib.crc32(data) != crc:
        raise DamagedError("a block of postings is not what was written")
    try:
        return segment.decoded(data)
    except msgspec.DecodeError as error:
        raise DamagedError(str(error)) from error


def _outline(symbols: bytes, imports: bytes) -> Outline:
    return Outline(_decoded(symbols, list[Symbol]), _decoded(imports, list[tuple[int, str]]))


def _commit(data: bytes) -> Commit:
    return _decoded(data, Commit)


def _decoded(data: bytes, kind: type[T]) -> T:
    """What was packed as a value of `kind`. Raises DamagedError."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise DamagedError(str(error)) from error
