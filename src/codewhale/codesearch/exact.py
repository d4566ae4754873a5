"""Lines that hold a query as it is: the words point to chunks, and the files themselves decide."""

import os
import time

from codewhale.codesearch.model import BODY
from codewhale.codesearch.query import Query
from codewhale.codesearch.reader import Reader
from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular

MOST_FILES = 60
MOST_LINES = 20
_LARGEST = 2 << 20
_SHORT = 3  # words of a query that may be a piece of a word
_SECONDS = 0.5
_FILE = os.O_RDONLY | os.O_NONBLOCK


def exact_lines(reader: Reader, root: str, query: Query) -> dict[str, list[int]]:
    """Path -> numbers of the lines that hold `query.text`, case and all, at most 20 each in at most 60 files.

    Only files that hold every term of the query are read. Where none does, and the query is short and looks like code
    or has no terms, it may begin or end inside a word: then all files are read, for at most half a second.
    """
    wanted = query.text.encode("utf-8", "surrogatepass")
    if not wanted or b"\n" in wanted:
        return {}
    beneath, by_file = Root(root), _holding(reader, query)
    if not by_file and len(query.words) <= _SHORT and (query.literal or not query.terms):
        return _scanned(reader, beneath, wanted)
    lines = dict[str, list[int]]()
    for file in sorted(by_file, key=lambda number: (-len(by_file[number]), number))[:MOST_FILES]:
        path = reader.paths[file]
        at = [number for number in _lines_with(beneath, path, wanted) if _within(reader, by_file[file], number)]
        if at:
            lines[path] = at[:MOST_LINES]
    return lines


def _holding(reader: Reader, query: Query) -> dict[int, list[int]]:
    """File -> its chunks that hold every term of the query."""
    import numpy as np

    chunks = None
    for term in query.terms:
        found, _ = reader.postings(BODY, term)
        chunks = found if chunks is None else np.intersect1d(chunks, found, assume_unique=True)
    by_file: dict[int, list[int]] = {}
    for chunk in [] if chunks is None else chunks.tolist():
        by_file.setdefault(int(reader.chunk_file[chunk]), []).append(chunk)
    return by_file


def _scanned(reader: Reader, beneath: Root, wanted: bytes) -> dict[str, list[int]]:
    lines, until = dict[str, list[int]](), time.monotonic() + _SECONDS
    for path in reader.paths:
        if len(lines) == MOST_FILES or time.monotonic() > until:
            break
        at = _lines_with(beneath, path, wanted)
        if at:
            lines[path] = at[:MOST_LINES]
    return lines


def _within(reader: Reader, chunks: list[int], line: int) -> bool:
    return any(reader.chunk_line[chunk] <= line <= reader.chunk_end[chunk] for chunk in chunks)


def _lines_with(beneath: Root, path: str, wanted: bytes) -> list[int]:
    """The numbers of lines of a file, from 1, that hold some bytes; none where it cannot be read."""
    try:
        data = read_regular(beneath.open(path, _FILE, links=False), _LARGEST)
    except (OSError, PathRefused):
        return []
    if not data or wanted not in data:
        return []
    return [number for number, line in enumerate(data.split(b"\n"), start=1) if wanted in line]
