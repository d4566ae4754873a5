"""What ranking needs of an index that no query changes: lengths, kinds of paths, languages, history."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from codewhale.codesearch.model import BODY, KINDS, SYMBOL
from codewhale.codesearch.path_kinds import PROSE, PathKinds
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.terms import Terms

if TYPE_CHECKING:
    import numpy

    Floats = numpy.ndarray[Any, numpy.dtype[Any]]
    Numbers = numpy.ndarray[Any, numpy.dtype[Any]]

K1, B = 1.5, 0.75
K1_COMMIT, B_COMMIT = 1.2, 0.5
CONTAINERS = frozenset({"class", "struct", "enum", "trait", "interface", "type", "module", "impl"})


def idf(documents: int, having: int) -> float:
    """Inverse document frequency of a term that `having` of so many documents hold."""
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


class Corpus:
    """What ranking needs of a reader that no query changes: lengths, kinds of paths, sizes. One a reader."""

    def __init__(self, reader: IndexReader, terms: Terms) -> None:
        import numpy as np

        self.reader, self.terms = reader, terms
        self.files = len(reader.files)
        self.home = reader.chunk_file
        self.chunks = max(1, reader.chunk_count)
        self.contains = np.isin(reader.chunk_kind, [KINDS.index(kind) for kind in sorted(CONTAINERS)])
        self.norms = {field: self._norms(reader.lengths(field)) for field in (BODY, SYMBOL)}
        self.words = np.bincount(self.home, weights=reader.lengths(BODY), minlength=self.files)
        self.file_norms = self._norms(self.words)
        self._paths(reader.paths)
        kinds = PathKinds()
        self.kinds = np.fromiter((kinds.of(path) for path in reader.paths), np.int64, self.files)
        self.depth = np.fromiter((path.count("/") for path in reader.paths), np.float64, self.files)
        self._languages(reader)
        self._commits(reader)
        self._names: dict[int, tuple[tuple[str, ...], tuple[str, ...], str]] = {}

    def names(self, file: int) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """The terms of a file's name without its last suffix, those of its folder's, and the name as one word."""
        known = self._names.get(file)
        if known is None:
            folder, _, name = self.reader.paths[file].rpartition("/")
            stem = name[: name.rindex(".")] if name.rfind(".") > 0 else name
            known = self._names[file] = (
                self._terms_of(stem),
                self._terms_of(folder.rpartition("/")[2]),
                "".join(self.terms.words(stem)).lower().replace("_", ""),
            )
        return known

    def paths_with(self, term: str) -> "tuple[Numbers, Floats]":
        """(file, how often) for files whose path has a term."""
        import numpy as np

        found = self._by_path.get(term, ())
        return np.array(found[::2], np.int64), np.array(found[1::2], np.float64)

    def _terms_of(self, text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(term for word in self.terms.words(text) for term in self.terms.expand(word)))

    def _paths(self, paths: Sequence[str]) -> None:
        """The files of each term of their paths, each followed by how often it is in it."""
        import numpy as np

        self._by_path: dict[str, list[int]] = {}
        lengths = np.zeros(self.files)
        for file, path in enumerate(paths):
            counts = self.terms.path(path)
            lengths[file] = sum(counts.values())
            for term, often in counts.items():
                self._by_path.setdefault(term, []).extend((file, often))
        self.path_terms = sorted(self._by_path)
        self.path_norms = self._norms(lengths)

    @staticmethod
    def _norms(lengths: "Floats", k1: float = K1, b: float = B) -> "Floats":
        """BM25's k1 * (1 - b + b * length / average) of each document."""
        average = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
        norms: Floats = k1 * (1 - b + b * lengths / average)
        return norms

    def _languages(self, reader: IndexReader) -> None:
        import numpy as np

        sizes: dict[str, int] = {}
        for file in reader.files:
            if file.lang not in PROSE:
                sizes[file.lang] = sizes.get(file.lang, 0) + file.size
        total = sum(sizes.values()) or 1
        shares = [sizes.get(file.lang, 0) / total for file in reader.files]
        self.language = np.array(shares, np.float64)
        self.prose = np.array([file.lang in PROSE for file in reader.files], np.float64)

    def _commits(self, reader: IndexReader) -> None:
        import numpy as np

        starts, self.changed = reader.commit_files
        per = np.diff(starts)
        self.commits = reader.commit_count
        self.commit_of = np.repeat(np.arange(self.commits), per)
        self.commit_weight = 1 / np.sqrt(np.maximum(per, 1))
        lengths = reader.commit_length
        self.commit_norms = self._norms(lengths, K1_COMMIT, B_COMMIT)
