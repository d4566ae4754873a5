"""Ranking: an additive score with fitted weights. What a file scores is the sum of its reasons, to the last digit.

The weights (weights.json) differ by the shape of the query; scripts/fit_search.py fits them.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from codewhale.codesearch.corpus import Corpus
from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.features import FEATURES, SIGNALS, candidates, matrix
from codewhale.codesearch.model import Touch
from codewhale.codesearch.places import best_place
from codewhale.codesearch.query import SearchQuery, read_query
from codewhale.codesearch.reader import IndexReader
from codewhale.codesearch.reasons import EXACT, SESSION, Reason, RequestSignals, detail
from codewhale.codesearch.terms import Terms

if TYPE_CHECKING:
    from codewhale.codesearch.corpus import Floats, Numbers

T = TypeVar("T", bound=Hashable)
SIGNAL_ORDER = (*dict.fromkeys(SIGNALS.values()), EXACT, SESSION)  # as reasons are listed

_SURE_EXACT = 3
_MOST_EXACT = 100  # files that hold the query as it is and rank for that alone
_SHORT = 2  # words of a query that many files hold
_DIGITS = 3
_TOUCH_HALF_LIFE = 4 * 3600e9


class Weights(Struct, frozen=True):
    """What each feature counts, by shape of query. By hand: what a file that a session just touched gains, and one
    that holds the query as it is: where that is code or the query looks like code, and where it is prose. A query of
    one or two words matches many files, so that it counts less for each (`short_...`)."""

    shapes: dict[str, dict[str, float]]
    session: float
    exact_code: float
    exact_prose: float
    short_code: float
    short_prose: float

    def exact(self, query: SearchQuery, prose: bool) -> float:
        """What a file gains that holds the query as it is."""
        if len(query.words) <= _SHORT:
            return self.short_prose if prose else self.short_code
        return self.exact_prose if prose and not query.literal else self.exact_code

    @classmethod
    def shipped(cls) -> "Weights":
        """The weights that ship with the package."""
        data = resources.files("codewhale.codesearch").joinpath("weights.json").read_bytes()
        return msgspec.json.decode(data, type=cls)


class Filter(Struct, frozen=True):
    """Which files may be found: by path, by language, by defining something of a kind of model.KINDS ("" is any).
    `glob` is how `paths` was written."""

    paths: Callable[[str], bool] | None = None
    lang: str = ""
    kind: str = ""
    glob: str = ""

    def fits(self, path: str, lang: str) -> bool:
        """Whether a file may be found by its path and its language."""
        return (not self.lang or lang == self.lang) and (self.paths is None or self.paths(path))


class Hit(Struct, frozen=True):
    """A file and its best place. `score` is the sum of the values of `reasons`."""

    path: str
    line: int
    end_line: int
    kind: str
    symbol: str
    score: float
    reasons: tuple[Reason, ...]


class Ranking(Struct, frozen=True):
    """The best first. `signals` had anything to say of any of them; `exact` of them hold the query as it is."""

    hits: list[Hit]
    signals: tuple[str, ...]
    exact: int


class Ranker:
    """Ranks the files of one reader, a query at a time. Making one costs some milliseconds for 10,000 files."""

    def __init__(self, reader: IndexReader, terms: Terms | None = None, weights: Weights | None = None) -> None:
        self.reader = reader
        self.terms = terms or Terms()
        self.weights = weights or Weights.shipped()
        self.corpus = Corpus(reader, self.terms)
        self._numbers = {path: number for number, path in enumerate(reader.paths)}

    def search(
        self,
        text: str,
        limit: int = 10,
        *,
        only: Filter | None = None,
        exact: Mapping[str, Sequence[int]] | None = None,
        now_ns: int = 0,
        touches: Sequence[Touch] | None = None,
    ) -> Ranking:
        """The `limit` best files for a query. `exact`: lines that hold the query as it is, by path; `now_ns`: the
        time that touches are measured from, 0 to leave them out; `touches`: those known when not the reader's."""
        only = only or Filter()
        evidence = Evidence(self.corpus, read_query(text, self.terms))
        touched = self.reader.touches() if touches is None and now_ns else touches or ()
        allowed = self._allowed(only)
        likely = candidates(evidence, allowed)
        seen = self._seen(self._telling(exact or {}, likely), touched if now_ns else (), now_ns)
        chosen = self._chosen(likely, allowed, only, seen)
        parts = self._parts(evidence, chosen, seen)
        hits = []
        for row in self._order(parts, chosen, seen, limit):
            file = int(chosen[row])
            told = zip(SIGNAL_ORDER, parts[row].tolist(), strict=True)
            reasons = tuple(Reason(name, value, detail(name, evidence, file, seen)) for name, value in told if value)
            place = best_place(evidence, file, only.kind, seen.lines.get(file, ()))
            score = round(sum(reason.value for reason in reasons), _DIGITS)
            hits.append(Hit(self.reader.paths[file], *place, score, reasons))
        speaking = {reason.signal for hit in hits for reason in hit.reasons}
        exactly = sum(self._numbers[hit.path] in seen.lines for hit in hits)
        return Ranking(hits, tuple(name for name in SIGNAL_ORDER if name in speaking), exactly)

    def _seen(self, exact: Mapping[str, Sequence[int]], touched: Sequence[Touch], now_ns: int) -> RequestSignals:
        """What is known besides the index, by number of file. A touch counts 1 when there were three or more just
        now, and half as much every four hours."""
        lines = {self._numbers[path]: tuple(at) for path, at in exact.items() if at and path in self._numbers}
        touches = {}
        for touch in touched:
            if touch.path in self._numbers:
                age = max(0, now_ns - touch.last_ns)
                fresh = min(1.0, math.log2(1 + touch.count) / 2) * 0.5 ** (age / _TOUCH_HALF_LIFE)
                touches[self._numbers[touch.path]] = (fresh, touch.count, age / 1e9)
        return RequestSignals(lines, touches)

    def _telling(self, exact: Mapping[str, Sequence[int]], likely: "Numbers") -> Mapping[str, Sequence[int]]:
        """The files with exact lines; of very many those that are candidates anyway."""
        if len(exact) <= _MOST_EXACT:
            return exact
        return {path: exact[path] for file in likely.tolist() if (path := self.reader.paths[file]) in exact}

    def _allowed(self, only: Filter) -> "Numbers | None":
        """The files that a filter lets through by path and language; None for all."""
        import numpy as np

        if only == Filter():
            return None
        return np.array([i for i, file in enumerate(self.reader.files) if only.fits(file.path, file.lang)], np.int64)

    def _chosen(self, likely: "Numbers", allowed: "Numbers | None", only: Filter, seen: RequestSignals) -> "Numbers":
        """The candidates and every file with an exact line, as far as the filter lets them through."""
        import numpy as np

        exact = np.array([file for file in sorted(seen.lines) if self.reader.files[file].chunks], np.int64)
        chosen = np.union1d(likely, exact if allowed is None else np.intersect1d(exact, allowed))
        if only.kind:
            having = [any(one.kind == only.kind for one in self.reader.symbols(file)) for file in chosen.tolist()]
            chosen = chosen[np.array(having, bool)]
        return chosen

    def _parts(self, evidence: Evidence, chosen: "Numbers", seen: RequestSignals) -> "Floats":
        """What each signal (column) gives each chosen file (row), in thousandths."""
        import numpy as np

        weights = self.weights.shapes[evidence.query.shape]
        weighed = matrix(evidence, chosen) * np.array([weights.get(name, 0.0) for name in FEATURES])
        parts = np.zeros((len(chosen), len(SIGNAL_ORDER)))
        for column, name in enumerate(FEATURES):
            parts[:, SIGNAL_ORDER.index(SIGNALS[name])] += weighed[:, column]
        for row, file in enumerate(chosen.tolist()):
            if file in seen.lines:
                worth = self.weights.exact(evidence.query, bool(self.corpus.prose[file]))
                parts[row, SIGNAL_ORDER.index(EXACT)] = worth
            if file in seen.touches:
                parts[row, SIGNAL_ORDER.index(SESSION)] = self.weights.session * seen.touches[file][0]
        rounded: Floats = np.round(parts, _DIGITS) + 0.0
        return rounded

    @staticmethod
    def _order(parts: "Floats", chosen: "Numbers", seen: RequestSignals, limit: int) -> list[int]:
        """Rows from the best on. Files that hold the query as it is are all among them where they are no more than
        that."""
        import numpy as np

        ranked: list[int] = np.lexsort((chosen, -np.round(parts.sum(axis=1), _DIGITS))).tolist()
        exact = {row for row in ranked if int(chosen[row]) in seen.lines} if seen.lines else set[int]()
        return with_exact(ranked, exact, limit, len(exact) if len(exact) <= limit else min(_SURE_EXACT, limit - 1))


def with_exact(ranked: Sequence[T], exact: set[T], limit: int, sure: int) -> list[T]:
    """The first `limit` of what is ranked. The last places go to exact matches where fewer than `sure` made it."""
    best = list(ranked[:limit])
    missing = sure - len(exact.intersection(best))
    late = [one for one in ranked[limit:] if one in exact][: max(0, missing)]
    weak = [one for one in reversed(best) if one not in exact][: len(late)]
    return [one for one in best if one not in weak] + late
