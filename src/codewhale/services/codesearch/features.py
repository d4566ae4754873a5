"""Evidence as numbers between 0 and about 1.5 for each candidate file: what the fitted weights multiply."""

from typing import TYPE_CHECKING

from codewhale.services.codesearch.evidence import Evidence
from codewhale.services.codesearch.priors import DOCS, ENTRY, EXAMPLES, SCRIPTS, TESTS

if TYPE_CHECKING:
    from codewhale.services.codesearch.corpus import Floats, Numbers

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
    "imported": "imports",
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
    some = np.flatnonzero(likely) if allowed is None else allowed[likely[allowed] > 0]
    kinds = corpus.kinds[some]
    worth = likely[some] - 0.6 * (kinds & TESTS > 0) - 0.4 * (kinds & DOCS > 0) - 0.3 * corpus.prose[some]
    if len(some) > most:
        some = some[np.argpartition(-worth, most - 1)[:most]]
    return np.sort(some)


def matrix(evidence: Evidence, chosen: "Numbers") -> "Floats":
    """The features of the chosen files: a row a file, a column a feature, in the order of FEATURES."""
    import numpy as np

    corpus, total = evidence.corpus, evidence.total
    kinds = corpus.kinds[chosen]
    alike: dict[str, tuple[float, float]] = {}
    names = np.array([_named(evidence, int(file), alike) for file in chosen]).reshape(-1, 4).T
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
        "imported": corpus.importers[chosen],
        "tests": kinds & TESTS > 0,
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


def _named(evidence: Evidence, file: int, alike: dict[str, tuple[float, float]]) -> tuple[float, float, float, float]:
    """How a file's name fits the query: whether all of it is asked for; the share of the query in it and the share of
    it in the query, words that begin alike counted in part; and the share of its folder's name in the query. `alike`
    remembers likenesses."""
    query, known = evidence.query, evidence.idf
    stem, folder, _ = evidence.corpus.names(file)
    asked = query.terms.keys() | set(query.pairs)
    whole = fit = share = 0.0
    for term in stem:
        if term in asked:
            whole += 1
            fit += 1
            share += known[term] if term in query.parts else 0.0
        else:
            if term not in alike:
                alike[term] = _likeness(term, evidence)
            likeness, telling = alike[term]
            fit += likeness
            share += likeness * telling
    size = len(stem) or 1
    inside = sum(term in asked for term in folder) / (len(folder) or 1)
    return (float(bool(stem) and whole == len(stem)), share / evidence.total, fit / size, inside)


def _likeness(term: str, evidence: Evidence) -> tuple[float, float]:
    """The word of the query that begins `term` or that it begins: how much of the longer that is, and its idf."""
    best = (0.0, 0.0)
    if len(term) >= _LEAST_PREFIX:
        for other in evidence.query.parts:
            if len(other) >= _LEAST_PREFIX and (other.startswith(term) or term.startswith(other)):
                likeness = min(len(term), len(other)) / max(len(term), len(other))
                best = max(best, (likeness, evidence.idf[other]))
    return best
