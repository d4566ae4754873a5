"""Evidence as numbers between 0 and about 1.5 for each candidate file: what the fitted weights multiply.

How many files import a file was tried and left out: it gained 0.003 at best and cost a second for 10,000 files.
"""

from typing import TYPE_CHECKING

from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.path_kinds import DOCS, ENTRY, EXAMPLES, SCRIPTS, TESTS

if TYPE_CHECKING:
    from codewhale.codesearch.corpus import Floats, Numbers

# Every feature with the signal under which it is told, in the order of columns.
SIGNALS = {
    "text": "lexical",
    "text_sum": "lexical",
    "text_and_symbol": "lexical",
    "whole_file": "lexical",
    "coverage": "lexical",
    "chunk_coverage": "lexical",
    "defines": "symbol",
    "defines_word": "symbol",
    "compound": "symbol",
    "path": "path",
    "path_coverage": "path",
    "path_prefix": "path",
    "name_whole": "path",
    "name_share": "path",
    "name_fit": "path",
    "folder": "path",
    "history": "history",
    "tests": "prior",
    "examples": "prior",
    "docs": "prior",
    "scripts": "prior",
    "entry": "prior",
    "prose": "prior",
    "language": "prior",
    "size": "prior",
    "depth": "prior",
}
FEATURES = tuple(SIGNALS)
CANDIDATES = 150

_LEAST_PREFIX = 3


def candidates(evidence: Evidence, allowed: "Numbers | None" = None, most: int = CANDIDATES) -> "Numbers":
    """The numbers of the files worth a closer look, of those `allowed`, at most `most`, in ascending order."""
    import numpy as np

    corpus = evidence.corpus
    likely = _scaled(evidence.both) + _scaled(evidence.whole) + _scaled(evidence.path) + _scaled(evidence.defines)
    likely += 0.5 * _scaled(evidence.history) + 0.3 * _scaled(evidence.compound) + 0.3 * _scaled(evidence.prefix)
    some = np.flatnonzero(likely > 0) if allowed is None else allowed[likely[allowed] > 0]
    kinds = corpus.kinds[some]
    worth = (
        likely[some]
        - (0.0 if evidence.query.tests else 0.6) * (kinds & TESTS > 0)
        - 0.4 * (kinds & DOCS > 0)
        - 0.3 * corpus.prose[some]
    )
    if len(some) > most:
        some = some[np.argpartition(-worth, most - 1)[:most]]
    return np.sort(some)


def matrix(evidence: Evidence, chosen: "Numbers") -> "Floats":
    """The features of the chosen files: a row a file, a column a feature, in the order of FEATURES."""
    import numpy as np

    corpus, total = evidence.corpus, evidence.total
    kinds = corpus.kinds[chosen]
    fits = _Names(evidence)
    names = np.array([fits.of(file) for file in chosen.tolist()]).reshape(-1, 4).T
    columns = {
        "text": _scaled(evidence.text[chosen]),
        "text_sum": _scaled(evidence.text_sum[chosen]),
        "text_and_symbol": _scaled(evidence.both[chosen]),
        "whole_file": _scaled(evidence.whole[chosen]),
        "coverage": evidence.cover[chosen] / total,
        "chunk_coverage": evidence.best_cover[chosen] / total,
        "defines": evidence.defines[chosen],
        "defines_word": evidence.defines_word[chosen],
        "compound": _scaled(evidence.compound[chosen]),
        "path": _scaled(evidence.path[chosen]),
        "path_coverage": evidence.path_cover[chosen] / total,
        "path_prefix": _scaled(evidence.prefix[chosen]),
        "name_whole": names[0],
        "name_share": names[1],
        "name_fit": names[2],
        "folder": names[3],
        "history": _scaled(evidence.history[chosen]),
        "tests": (kinds & TESTS > 0) & (not evidence.query.tests),
        "examples": kinds & EXAMPLES > 0,
        "docs": kinds & DOCS > 0,
        "scripts": kinds & SCRIPTS > 0,
        "entry": kinds & ENTRY > 0,
        "prose": corpus.prose[chosen],
        "language": corpus.language[chosen],
        "size": np.log1p(corpus.words[chosen]) / 10,
        "depth": corpus.depth[chosen] / 5,
    }
    return np.stack([columns[name].astype(np.float64) for name in FEATURES], axis=1)


def _scaled(values: "Floats") -> "Floats":
    """Divided by the greatest."""
    most = float(values.max()) if len(values) else 0.0
    return values / most if most > 0 else values


class _Names:
    """How names of files and folders fit a query, remembered by term."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._asked = evidence.query.terms.keys() | set(evidence.query.pairs)
        self._parts = [part for part in evidence.query.parts if len(part) >= _LEAST_PREFIX]
        self._starts = {part[:_LEAST_PREFIX] for part in self._parts}
        self._known: dict[str, tuple[float, float]] = {}

    def of(self, file: int) -> tuple[float, float, float, float]:
        """Whether all of a file's name is asked for; the share of the query in it and the share of it in the query,
        words that begin alike counted in part; and the share of its folder's name in the query."""
        stem, folder, _ = self._evidence.corpus.names(file)
        fits = [self._known.get(term) or self._fit(term) for term in stem]
        size = len(stem) or 1
        share = sum(likeness * telling for likeness, telling in fits) / self._evidence.total
        inside = sum(term in self._asked for term in folder) / (len(folder) or 1)
        whole = float(bool(stem) and all(likeness == 1.0 for likeness, _ in fits))
        return whole, share, sum(likeness for likeness, _ in fits) / size, inside

    def _fit(self, term: str) -> tuple[float, float]:
        """1 and its idf for a term of the query (no idf for a whole name); for the word of the query that begins
        `term` or that it begins, how much of the longer that is, and its idf."""
        known, query = self._evidence.idf, self._evidence.query
        if term in self._asked:
            best = (1.0, known[term] if term in query.parts else 0.0)
        else:
            best = (0.0, 0.0)
            for other in self._parts if term[:_LEAST_PREFIX] in self._starts else ():
                if other.startswith(term) or term.startswith(other):
                    best = max(best, (min(len(term), len(other)) / max(len(term), len(other)), known[other]))
        self._known[term] = best
        return best
