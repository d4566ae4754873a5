"""What an index says of its tree, however it is laid out: two indexes that agree here answer alike."""

import hashlib
from collections import defaultdict
from typing import Any

from codewhale.codesearch.store import Store, place
from codewhale.codesearch.terms import COUNT_BITS, unpacked_words

_FILES = "SELECT id, path, lang, state, lines, sha, chunks, symbols FROM files ORDER BY path"
_TABLES = ("chunks", "symbols", "imports")
_COLUMNS = ("body", "comment", "symbol", "call")


def likeness(store: Store) -> dict[str, str]:
    """Path -> a digest of all that the index holds of the file: what it is, its chunks, symbols, imports and words.
    That the words are found, and no others, is asserted. A reading of the whole database."""
    held: dict[int, list[Any]] = defaultdict(list)
    for table in _TABLES:
        for file, *row in store.rows(f"SELECT * FROM {table}"):
            held[file].append(row)
    for file, data in store.rows("SELECT file, data FROM file_words"):
        held[file] += [(at, [sorted(terms.split()) for terms in fields]) for at, *fields in word_rows(data)]
    files = store.rows(_FILES)
    assert held.keys() <= {id for id, *_ in files}, "something is held of a file that is not there"
    assert _found(store) == _kept(store), "the words that are found are not those that are held"
    return {path: hashlib.sha256(repr((row, held[id])).encode()).hexdigest() for id, path, *row in files}


def word_rows(data: bytes) -> list[tuple[Any, ...]]:
    """(number of a chunk and, in the last COUNT_BITS, how often; the terms of each field that are so often in it)."""
    chunks = enumerate(unpacked_words(data))
    return [(number << COUNT_BITS | often, *terms) for number, chunk in chunks for often, *terms in chunk.rows]


def _found(store: Store) -> set[tuple[int, str, str]]:
    """(place, field, term) of all that full-text search knows."""
    store.rows("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, instance)")
    return set(store.rows("SELECT doc, col, term FROM temp.vocabulary"))


def _kept(store: Store) -> set[tuple[int, str, str]]:
    return {
        (place(file, 0, at), field, term)
        for file, data in store.rows("SELECT file, data FROM file_words")
        for at, *fields in word_rows(data)
        for field, terms in zip(_COLUMNS, fields, strict=True)
        for term in terms.split()
    }
