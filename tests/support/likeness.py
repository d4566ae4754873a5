"""What an index says of its tree, however it is laid out: two indexes that agree here answer alike."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from codewhale.codesearch.segment import Block, Rows, decoded, keys_of
from codewhale.codesearch.store import CODE, Store

_FILES = "SELECT id, path, lang, state, lines, sha, segment, first, chunks FROM files ORDER BY path"


def likeness(store: Store) -> dict[str, str]:
    """Path -> a digest of all that the index holds of the file: what it is, its chunks, its outline and its postings.
    A reading of the whole database."""
    outlines = {file: told for file, *told in store.rows("SELECT file, symbols, imports FROM outlines")}
    rows = {
        number: _columns(msgspec.msgpack.decode(data, type=Rows))
        for number, data in store.rows("SELECT id, columns FROM segments WHERE kind = ?", (CODE,))
    }
    postings = {number: _postings(store, number) for number in rows}
    found = {}
    for id, path, lang, state, lines, sha, number, first, chunks in store.rows(_FILES):
        told: list[Any] = [lang, state, lines, sha, chunks, outlines.get(id, [])]
        for chunk in range(first, first + chunks):
            told += [[column[chunk] for column in rows[number]], sorted(postings[number].get(chunk, ()))]
        found[path] = hashlib.sha256(repr(told).encode()).hexdigest()
    return found


def entries(block: Block) -> Iterator[tuple[str, bytes]]:
    """(key, its postings) of a block, in order."""
    offsets = memoryview(block.offsets).cast("I")
    for number, key in enumerate(keys_of(block)):
        yield key, block.postings[4 * offsets[number] : 4 * offsets[number + 1]]


def _postings(store: Store, number: int) -> dict[int, list[tuple[str, int]]]:
    """Chunk -> its (key, how often)."""
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    ((first, keys),) = store.rows("SELECT first_block, first_keys FROM segments WHERE id = ?", (number,))
    last = first + len(keys.split("\n"))
    for (data,) in store.rows("SELECT data FROM blocks WHERE id >= ? AND id < ?", (first, last)):
        for key, raw in entries(decoded(data)):
            for posting in array("I", raw):
                found[posting >> 8].append((key, posting & 255))
    return found


def _columns(rows: Rows) -> list[Sequence[int]]:
    lines = [array("I", rows.starts), array("I", rows.ends), rows.kinds]
    return [*lines, *(array("H", lengths) for lengths in rows.lengths)]
