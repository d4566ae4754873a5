"""Text to search terms: identifiers are split and stemmed and kept whole as well; CJK becomes bigrams.

Snowball's English stemmer ("porter2", through PyStemmer) is the one step whose answers are not written here.
"""

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct

# Part of an index's fingerprint: raise it when any answer below changes.
TERMS_VERSION = 1

_WORD = re.compile(r"\w+")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HAN = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK = re.compile(f"[{_HAN}]")
_RUNS = re.compile(rf"[{_HAN}]+|[^\W\d_{_HAN}]+|\d+")
_WORDS_ONLY = "".join(letter if _WORD.match(letter) else " " for letter in map(chr, range(128)))
# In an index ASCII letters have no case and other ASCII characters part words: names as written go in other letters.
_AS_WRITTEN = {at: 0xE000 + at for at in range(128) if not chr(at).isalnum() or chr(at).isupper()}
_BLOB = re.compile(r"[0-9a-fA-FxX_]{16,}|[0-9]{7,}")
_SHORTEST_BLOB = 7
_LONGEST = 80
_CACHED, _CACHED_FOLDERS = 400_000, 20_000
_FOLDERS = 3
COUNT_BITS = 8
MOST_OFTEN = (1 << COUNT_BITS) - 1  # times a term is counted


class ChunkWords(Struct, frozen=True, array_like=True):
    """The words of a chunk: a digest of all that they come from, how many terms its text and its names have, and
    `by_count` of its fields."""

    digest: bytes
    body_length: int
    symbol_length: int
    rows: list[tuple[Any, ...]]


class _Expansions(dict[str, tuple[str, ...]]):
    """Word -> its terms, each made at its first need. Bounded."""

    def __init__(self) -> None:
        import Stemmer

        # Its own cache would hold the very stems that are kept here.
        self.stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= _CACHED:
            self.clear()
        parts = word_parts(word)
        terms: list[str] = []
        for part in map(str.lower, parts):
            if part.isascii() or not _CJK.match(part):
                terms.append(self.stem(part))
            else:
                terms += (part[at : at + 2] for at in range(max(1, len(part) - 1)))
        if len(parts) > 1:
            terms.append("".join(parts).lower())
        made = self[word] = tuple(terms)
        return made


class Terms:
    """What a text, a path or a word is found by. Holds a bounded cache: one for each thread or process."""

    def __init__(self) -> None:
        self._known = _Expansions()
        self.stem = self._known.stem
        self._folders: dict[str, dict[str, int]] = {}

    def expand(self, word: str) -> tuple[str, ...]:
        """The terms of one identifier or word: its parts, stemmed, and the whole without underscores if it has more
        than one part. `createStore` and `create_store` give the same. Nothing for blobs and words over 80 letters."""
        return self._known[word]

    def count(self, text: str) -> Counter[str]:
        """Term -> how often it is in `text`."""
        return Counter(chain.from_iterable(map(self._known.__getitem__, self.words(text))))

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
        return text.translate(_WORDS_ONLY).split() if text.isascii() else _WORD.findall(text)


def word_parts(word: str) -> list[str]:
    """The parts of an identifier or word as written; none for blobs and words over 80 letters."""
    if len(word) > _LONGEST or (len(word) >= _SHORTEST_BLOB and _BLOB.fullmatch(word)):
        return []
    found: list[str] = (_PARTS if word.isascii() else _RUNS).findall(word)
    return found


def by_count(*fields: Mapping[str, int]) -> list[tuple[Any, ...]]:
    """(how often, the terms of each field that are so often in it, apart by blanks): one row a number."""
    rows: dict[int, list[str]] = {}
    for at, counts in enumerate(fields):
        terms = defaultdict[int, list[str]](list)
        for term, often in counts.items():
            terms[often].append(term)
        for often, found in terms.items():
            row = rows.setdefault(min(often, MOST_OFTEN), [""] * len(fields))
            row[at] = " ".join([row[at], *found] if row[at] else found)
    return [(often, *row) for often, row in sorted(rows.items())]


def packed_words(chunks: Sequence[ChunkWords]) -> bytes:
    """The words of a file, chunk by chunk."""
    return zlib.compress(msgspec.msgpack.encode(chunks), 1)


def unpacked_words(data: bytes) -> list[ChunkWords]:
    """What `packed_words` packed. Raises ValueError."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(data), type=list[ChunkWords])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"words cannot be read: {error}") from error


def as_written(name: str) -> str:
    """A name as one word that keeps its case and its punctuation in the index."""
    return name.translate(_AS_WRITTEN)
