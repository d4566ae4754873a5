"""What an index says for a query, file by file: BM25 in each field with that field's own idf, coverage of the query,
names that are defined, and older commits whose subjects speak of the same.

BM25 as in Robertson and Zaragoza (2009), k1 = 1.5, b = 0.75, idf = ln(1 + (N - df + 0.5) / (df + 0.5)).
"""

import math
from bisect import bisect_left
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from codewhale.codesearch.corpus import CONTAINERS, K1, K1_COMMIT, Corpus, idf
from codewhale.codesearch.model import BODY, DEFINED, KINDS, SYMBOL, Symbol, folded
from codewhale.codesearch.query import SYMBOL as SYMBOL_SHAPE
from codewhale.codesearch.query import SearchQuery

if TYPE_CHECKING:
    from codewhale.codesearch.corpus import Floats, Numbers

_PREFIXES = 40
_LEAST_PREFIX = 3
_LEAST_SHARE = 0.4
_OUTER = 0.5  # what the first parts of a qualified name count: the last one is what is asked for
_LOOKED_INTO = 25  # files with a definition of one name


class Evidence:
    """The signals of each file, and of each chunk, for one query. All by file but for `chunk`."""

    def __init__(self, corpus: Corpus, query: SearchQuery) -> None:
        import numpy as np

        self.corpus, self.query = corpus, query
        files, chunks = corpus.files, len(corpus.home)
        self.idf: dict[str, float] = {}
        self.chunk_text, self.chunk_symbol, self.chunk_cover = np.zeros(chunks), np.zeros(chunks), np.zeros(chunks)
        self.whole, self.path, self.cover, self.path_cover = (np.zeros(files) for _ in range(4))
        for term, often in query.terms.items():
            self._body(term, often)
            self._symbols(term, often)
            self._paths(term, often)
        self.total = sum(self.idf[term] for term in query.parts) or 1.0
        self.chunk = self.chunk_text + 0.7 * self.chunk_symbol
        some = np.flatnonzero(self.chunk > 0)
        self.text, self.both = self._best(self.chunk_text, some), self._best(self.chunk, some)
        self.best_cover = self._best(self.chunk_cover, some)
        self.text_sum = np.bincount(corpus.home[some], weights=self.chunk_text[some], minlength=files)
        self.compound = self._compounds()
        self.prefix = self._prefixes()
        self.history = self._history()
        self.defines, self.defines_word = self._definitions(), self._word_definitions()

    def _body(self, term: str, often: int) -> None:
        import numpy as np

        corpus = self.corpus
        found, counts = corpus.reader.postings(BODY, term)
        by_file = np.bincount(corpus.home[found], weights=counts, minlength=corpus.files)
        files = np.flatnonzero(by_file > 0)
        self.idf[term] = telling = idf(corpus.files, len(files))
        if not len(found):
            return
        weight = often * idf(corpus.chunks, len(found)) * (K1 + 1)
        self.chunk_text[found] += weight * counts / (counts + corpus.norms[BODY][found])
        by_file = by_file[files]
        self.whole[files] += often * telling * (K1 + 1) * by_file / (by_file + corpus.file_norms[files])
        if term in self.query.parts:
            self.cover[files] += telling
            self.chunk_cover[found] += telling

    def _symbols(self, term: str, often: int) -> None:
        found, counts = self.corpus.reader.postings(SYMBOL, term)
        if len(found):
            weight = often * idf(self.corpus.chunks, len(found)) * (K1 + 1)
            self.chunk_symbol[found] += weight * counts / (counts + self.corpus.norms[SYMBOL][found])

    def _paths(self, term: str, often: int) -> None:
        files, counts = self.corpus.paths_with(term)
        if len(files):
            weight = often * idf(self.corpus.files, len(files)) * (K1 + 1)
            self.path[files] += weight * counts / (counts + self.corpus.path_norms[files])
            if term in self.query.parts:
                self.path_cover[files] += self.idf[term]

    def _best(self, by_chunk: "Floats", some: "Numbers") -> "Floats":
        """The most that any of `some` chunks of a file has."""
        import numpy as np

        best = np.zeros(self.corpus.files)
        np.maximum.at(best, self.corpus.home[some], by_chunk[some])
        return best

    def _compounds(self) -> "Floats":
        """Neighbouring words of the query that are one name in symbols, paths, or (half) text."""
        import numpy as np

        score, self.joined = np.zeros(self.corpus.files), dict[int, list[str]]()
        for pair in self.query.pairs:
            in_text, _ = self.corpus.reader.postings(BODY, pair)
            in_names = self.corpus.reader.postings(SYMBOL, pair)[0] if len(in_text) else in_text
            home = self.corpus.home
            in_paths = self.corpus.paths_with(pair)[0]
            for found, weight in ((home[in_names], 1.0), (in_paths, 1.0), (home[in_text], 0.5)):
                files = np.unique(found)
                score[files] += weight * idf(self.corpus.files, len(files))
                for file in files.tolist():
                    names = self.joined.setdefault(file, [])
                    names += [] if pair in names else [pair]
        return score

    def _prefixes(self) -> "Floats":
        """Terms of paths that begin a word of the query or that it begins: auth and authentication."""
        import numpy as np

        score = np.zeros(self.corpus.files)
        for term in self.query.parts:
            if len(term) >= _LEAST_PREFIX:
                best = np.zeros(self.corpus.files)
                for other, share in self._alike(term):
                    files, _ = self.corpus.paths_with(other)
                    telling = min(self.idf[term], idf(self.corpus.files, len(files)))
                    best[files] = np.maximum(best[files], share * telling)
                score += best
        return score

    def _alike(self, term: str) -> list[tuple[str, float]]:
        terms, at = self.corpus.path_terms, bisect_left(self.corpus.path_terms, term)
        longer = takewhile(lambda other: other.startswith(term), islice(terms, at, at + _PREFIXES))
        alike = [(other, len(term) / len(other)) for other in longer if other != term]
        for size in range(max(_LEAST_PREFIX, math.ceil(_LEAST_SHARE * len(term))), len(term)):
            at = bisect_left(terms, term[:size])
            if at < len(terms) and terms[at] == term[:size]:
                alike.append((term[:size], size / len(term)))
        return [(other, share) for other, share in alike if share >= _LEAST_SHARE]

    def _history(self) -> "Floats":
        """The root of the summed squares of what a file's commits score, each over the root of its files' number."""
        import numpy as np

        corpus = self.corpus
        self.commit_scores = scores = np.zeros(corpus.commits)
        if not corpus.commits:
            return np.zeros(corpus.files)
        for term, often in self.query.terms.items():
            found, counts = corpus.reader.history(term)
            if len(found):
                weight = often * idf(corpus.commits, len(found)) * (K1_COMMIT + 1)
                scores[found] += weight * counts / (counts + corpus.commit_norms[found])
        squares = (scores * corpus.commit_weight) ** 2
        summed: Floats = np.sqrt(np.bincount(corpus.changed, squares[corpus.commit_of], minlength=corpus.files))
        return summed

    def _definitions(self) -> "Floats":
        """Where names of the query are defined: large containers and files of that name before others; in a sentence
        the less the more files define it."""
        import numpy as np

        score, self.defined = np.zeros(self.corpus.files), dict[int, tuple[float, str, int]]()
        for name in self.query.names:
            flat = folded(name)
            found = self._defining(name)
            alone = self.query.shape == SYMBOL_SHAPE
            among = 1.0 if alone else 1 / math.sqrt(max(1, len({file for file, _ in found})))
            for file, symbol in found:
                worth = 1.0 if symbol.kind in CONTAINERS else 0.6
                worth *= 0.6 + 0.4 * min(1.0, math.log1p(symbol.end_line - symbol.line) / 5)
                worth = among * (worth + 0.5 * (self.corpus.names(file)[2] == flat))
                worth *= _OUTER if alone and name != self.query.names[-1] else 1.0
                if worth > self.defined.get(file, (0.0,))[0]:
                    self.defined[file] = (worth, symbol.name, symbol.line)
                    score[file] = worth
        return score

    def _defining(self, name: str) -> list[tuple[int, Symbol]]:
        """(file, definition) of a name, as written if it is defined so anywhere. Where many files define it, the
        chunks that do count as the definitions."""
        reader = self.corpus.reader
        chunks, _ = reader.postings(DEFINED, folded(name))
        homes = self.corpus.home[chunks]
        if len(set(homes.tolist())) <= _LOOKED_INTO:
            return reader.defined(name) or reader.defined(name, fold=True)
        lines = zip(chunks, reader.chunk_kind[chunks], reader.chunk_line[chunks], reader.chunk_end[chunks], strict=True)
        return [
            (int(self.corpus.home[chunk]), Symbol(name, KINDS[kind], int(line), int(end)))
            for chunk, kind, line, end in lines
        ]

    def _word_definitions(self) -> "Floats":
        """Containers (classes, modules, types) that bear a plain word of the query as their name."""
        import numpy as np

        score, self.containers = np.zeros(self.corpus.files), dict[str, set[int]]()
        for word in dict.fromkeys(self.query.words):
            chunks, _ = self.corpus.reader.postings(DEFINED, folded(word))
            files = np.unique(self.corpus.home[chunks[self.corpus.contains[chunks]]])
            self.containers[word] = set(files.tolist())
            score[files] += 1 / math.sqrt(max(1, len(files)))
        return np.minimum(score, 1.5)

    def has_term(self, field: str, term: str, file: int) -> bool:
        """Whether a term is in a field of a file."""
        import numpy as np

        found, _ = self.corpus.reader.postings(field, term)
        doc = self.corpus.reader.files[file]
        at = int(np.searchsorted(found, doc.first))
        return at < len(found) and int(found[at]) < doc.first + doc.chunks

    def commits_of(self, file: int) -> list[int]:
        """The commits that changed a file and match the query, best first."""
        import numpy as np

        corpus = self.corpus
        commits = corpus.commit_of[np.flatnonzero(corpus.changed == file)]
        worth = self.commit_scores[commits] * corpus.commit_weight[commits]
        ranked: list[int] = commits[np.argsort(-worth, kind="stable")][: int((worth > 0).sum())].tolist()
        return ranked
