"""Lines that hold a query as it is: the words point to chunks, and the files themselves decide."""

import os

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.services.codesearch.model import BODY
from codewhale.services.codesearch.query import Query
from codewhale.services.codesearch.reader import Reader

MOST_FILES = 60
MOST_LINES = 20
_LARGEST = 2 << 20
_FILE = os.O_RDONLY | os.O_NONBLOCK


def exact_lines(reader: Reader, root: str, query: Query) -> dict[str, list[int]]:
    """Path -> numbers of the lines that hold `query.text`, case and all, at most 20 each in at most 60 files.

    Only files are read that hold every term of the query, so a text that begins or ends inside a word is not found.
    """
    import numpy as np

    wanted = query.text.encode()
    chunks = None
    for term in query.terms:
        found, _ = reader.postings(BODY, term)
        chunks = found if chunks is None else np.intersect1d(chunks, found, assume_unique=True)
    if chunks is None or not len(chunks) or "\n" in query.text:
        return {}
    by_file: dict[int, list[int]] = {}
    for chunk in chunks.tolist():
        by_file.setdefault(int(reader.chunk_file[chunk]), []).append(chunk)
    beneath, lines = Root(root), dict[str, list[int]]()
    for file in sorted(by_file, key=lambda number: (-len(by_file[number]), number))[:MOST_FILES]:
        path = reader.paths[file]
        at = [number for number in _lines_with(beneath, path, wanted) if _within(reader, by_file[file], number)]
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
