"""Text to search terms: identifiers are split and stemmed and kept whole as well; CJK becomes bigrams.

Snowball's English stemmer ("porter2", through PyStemmer) is the one step whose answers are not written here.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

# Part of an index's fingerprint: raise it when any answer below changes.
TERMS_VERSION = 1

_WORD = re.compile(r"\w+")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HAN = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK = re.compile(f"[{_HAN}]")
_RUNS = re.compile(rf"[{_HAN}]+|[^\W\d_{_HAN}]+|\d+")
# In an index ASCII letters have no case and other ASCII characters part words: names as written go in other letters.
_AS_WRITTEN = {at: 0xE000 + at for at in range(128) if not chr(at).isalnum() or chr(at).isupper()}
_BLOB = re.compile(r"[0-9a-fA-FxX_]{16,}|[0-9]{7,}")
_SHORTEST_BLOB = 7
_LONGEST = 80
_CACHED, _CACHED_FOLDERS = 400_000, 20_000
_FOLDERS = 3
COUNT_BITS = 8
MOST_OFTEN = (1 << COUNT_BITS) - 1  # times a term is counted


class Terms:
    """What a text, a path or a word is found by. Holds a bounded cache: one for each thread or process."""

    def __init__(self) -> None:
        import Stemmer

        # Its own cache would hold the very stems that are kept here.
        self.stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
        self._known: dict[str, tuple[str, ...]] = {}
        self._folders: dict[str, dict[str, int]] = {}

    def expand(self, word: str) -> tuple[str, ...]:
        """The terms of one identifier or word: its parts, stemmed, and the whole without underscores if it has more
        than one part. `createStore` and `create_store` give the same. Nothing for blobs and words over 80 letters."""
        terms = self._known.get(word)
        if terms is None:
            if len(self._known) >= _CACHED:
                self._known.clear()
            terms = self._known[word] = tuple(self._expanded(word))
        return terms

    def count(self, text: str) -> dict[str, int]:
        """Term -> how often it is in `text`."""
        known, counts = self._known, dict[str, int]()
        for word, often in Counter(_WORD.findall(text)).items():
            terms = known.get(word)
            for term in self.expand(word) if terms is None else terms:
                counts[term] = counts.get(term, 0) + often
        return counts

    def path(self, path: str) -> dict[str, int]:
        """The terms of a POSIX path: those of the name without its last suffix twice, those of its last 3 folders."""
        folder, _, name = path.rpartition("/")
        stem = name[: name.rindex(".")] if name.rfind(".") > 0 else name
        counts = self._folder(folder).copy()
        for term, often in self.count(stem).items():
            counts[term] = counts.get(term, 0) + 2 * often
        return counts

    def _folder(self, folder: str) -> dict[str, int]:
        known = self._folders.get(folder)
        if known is None:
            if len(self._folders) >= _CACHED_FOLDERS:
                self._folders.clear()
            known = self._folders[folder] = self.count(" ".join(folder.split("/")[-_FOLDERS:]))
        return known

    def words(self, text: str) -> list[str]:
        """The words of a text as written, in order."""
        return _WORD.findall(text)

    def parts(self, word: str) -> list[str]:
        """The parts of an identifier or word as written; none for blobs and words over 80 letters."""
        if len(word) > _LONGEST or (len(word) >= _SHORTEST_BLOB and _BLOB.fullmatch(word)):
            return []
        found: list[str] = (_PARTS if word.isascii() else _RUNS).findall(word)
        return found

    def _expanded(self, word: str) -> Iterator[str]:
        parts = self.parts(word)
        for part in map(str.lower, parts):
            if _CJK.match(part):
                yield from (part[at : at + 2] for at in range(max(1, len(part) - 1)))
            else:
                yield self.stem(part)
        if len(parts) > 1:
            yield "".join(parts).lower()


def by_count(*fields: Mapping[str, int]) -> list[tuple[Any, ...]]:
    """(how often, the terms of each field that are so often in it, apart by blanks): one row a number."""
    rows: dict[int, tuple[list[str], ...]] = {}
    for at, counts in enumerate(fields):
        for term, often in counts.items():
            row = rows.get(often)
            if row is None:
                kept = min(often, MOST_OFTEN)
                row = rows[often] = rows.setdefault(kept, tuple([] for _ in fields))
            row[at].append(term)
    return [(often, *map(" ".join, row)) for often, row in sorted(rows.items()) if often <= MOST_OFTEN]


def packed_words(chunks: Iterable[Sequence[Mapping[str, int]]]) -> bytes:
    """The words of a file: for each chunk the counts of its fields."""
    rows = [
        (at << COUNT_BITS | often, *terms) for at, fields in enumerate(chunks) for often, *terms in by_count(*fields)
    ]
    return zlib.compress(msgspec.msgpack.encode(rows), 1)


def unpacked_words(data: bytes) -> list[tuple[Any, ...]]:
    """(number of a chunk and, in the last COUNT_BITS, how often; the terms of each field that are so often in it).
    Raises ValueError."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(data), type=list[tuple[Any, ...]])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"words cannot be read: {error}") from error


def as_written(name: str) -> str:
    """A name as one word that keeps its case and its punctuation in the index."""
    return name.translate(_AS_WRITTEN)
