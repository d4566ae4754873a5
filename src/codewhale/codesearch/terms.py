"""Text to search terms: identifiers are split and stemmed and kept whole as well; CJK becomes bigrams.

Snowball's English stemmer ("porter2", through PyStemmer) is the one step whose answers are not written here.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator

# Part of an index's fingerprint: raise it when any answer below changes.
TERMS_VERSION = 1

_WORD = re.compile(r"\w+")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HAN = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK = re.compile(f"[{_HAN}]")
_RUNS = re.compile(rf"[{_HAN}]+|[^\W\d_{_HAN}]+|\d+")
_BLOB = re.compile(r"[0-9a-fA-FxX_]{16,}|[0-9]{7,}")
_SHORTEST_BLOB = 7
_LONGEST = 80
_CACHED = 400_000
_FOLDERS = 3


class Terms:
    """What a text, a path or a word is found by. Holds a bounded cache: one for each thread or process."""

    def __init__(self) -> None:
        import Stemmer

        # Its own cache would hold the very stems that are kept here.
        self.stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
        self._known: dict[str, tuple[str, ...]] = {}

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
        counts = {term: 2 * often for term, often in self.count(stem).items()}
        for part in folder.split("/")[-_FOLDERS:]:
            for term, often in self.count(part).items():
                counts[term] = counts.get(term, 0) + often
        return counts

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
