"""Lines that hold a query as it is: the index says which files may, and the files themselves decide."""

import asyncio
import os
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from codewhale.codesearch import plaintext
from codewhale.codesearch.model import BODY
from codewhale.codesearch.query import SearchQuery
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.terms import Terms
from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular

if TYPE_CHECKING:
    from codewhale.codesearch.corpus import Numbers

MOST_LINES = 20
_MOST_READ = 300  # files that are quicker read here than searched by another program
_SECONDS = 0.5
_WORD = re.compile(r"\w+")
_FILE = os.O_RDONLY | os.O_NONBLOCK


async def exact_lines(reader: IndexReader, root: str, query: SearchQuery, terms: Terms) -> dict[str, list[int]]:
    """Path -> numbers of the lines that hold `query.text`, case and all, at most 20 each, of indexed files.

    The words inside the query name the files that may hold it. Where there are none, for its first and last word may
    be pieces of longer ones, or where too many files hold them, all files are searched, for at most half a second.
    """
    wanted = query.text.encode("utf-8", "surrogatepass")
    if not wanted or b"\n" in wanted:
        return {}
    files = await asyncio.to_thread(_holding, reader, query, terms)
    if (files is None or len(files) > _MOST_READ) and query.text.isprintable():
        rows = await plaintext.matches(root, (query.text,), _SECONDS, "--hidden", "--glob", "!.git", "--text")
        if rows is not None:
            return _by_path(reader, rows)
    paths = reader.paths if files is None else (reader.paths[file] for file in files.tolist())
    return await asyncio.to_thread(_read, paths, Root(root), wanted)


def _holding(reader: IndexReader, query: SearchQuery, terms: Terms) -> "Numbers | None":
    """The files in which every word stands that has something before and behind it in the query, and those whose text
    is not indexed; None where there is no such word. A piece of a word is no term of the index."""
    import numpy as np

    inner = [word[0] for word in _WORD.finditer(query.text) if word.start() and word.end() < len(query.text)]
    files = None
    for term in dict.fromkeys(term for word in inner for term in terms.expand(word)):
        chunks, _ = reader.postings(BODY, term)
        having = np.unique(reader.chunk_file[chunks])
        files = having if files is None else np.intersect1d(files, having, assume_unique=True)
    if files is None:
        return None
    unread = [file for file, doc in enumerate(reader.files) if doc.state and doc.chunks]
    return np.union1d(files, np.array(unread, np.int64))


def _by_path(reader: IndexReader, rows: Iterable[tuple[str, int, str]]) -> dict[str, list[int]]:
    known = set(reader.paths)
    lines: dict[str, list[int]] = {}
    for path, line, _ in rows:
        if path in known:
            lines.setdefault(path, []).append(line)
    return {path: list(dict.fromkeys(at)) for path, at in lines.items()}


def _read(paths: Iterable[str], beneath: Root, wanted: bytes) -> dict[str, list[int]]:
    lines, until = dict[str, list[int]](), time.monotonic() + _SECONDS
    for path in paths:
        if time.monotonic() > until:
            break
        at = _lines_with(beneath, path, wanted)
        if at:
            lines[path] = at[:MOST_LINES]
    return lines


def _lines_with(beneath: Root, path: str, wanted: bytes) -> list[int]:
    """The numbers of lines of a file, from 1, that hold some bytes; none where it cannot be read."""
    try:
        data = read_regular(beneath.open(path, _FILE, links=False), plaintext.LARGEST)
    except (OSError, PathRefused):
        return []
    if not data or wanted not in data:
        return []
    return [number for number, line in enumerate(data.split(b"\n"), start=1) if wanted in line]
