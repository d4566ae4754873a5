"""Where in a file to look: the chunk that matches the query best."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from codewhale.codesearch.evidence import Evidence
from codewhale.codesearch.model import Symbol
from codewhale.codesearch.query import SYMBOL

if TYPE_CHECKING:
    from codewhale.codesearch.corpus import Floats, Numbers

_DEFINITION = 0.5
_TEST_SHARE = 0.5
_TEST_MODULES = frozenset({"test", "tests", "unit_tests"})


class BestPlace(NamedTuple):
    """First and last line, kind and symbol of the best chunk."""

    line: int
    end_line: int
    kind: str
    symbol: str


def best_place(evidence: Evidence, file: int, kind: str, exact: Sequence[int]) -> BestPlace:
    """The chunk of a file to show, or, for a `kind`, the definition of that kind. A definition of what was asked for
    by name and a line that holds the query as it is come before text that matches well."""
    import numpy as np

    reader = evidence.corpus.reader
    doc = reader.files[file]
    chunks = np.arange(doc.first, doc.first + doc.chunks)
    starts, ends = reader.chunk_line[chunks], reader.chunk_end[chunks]
    worth = _worth(evidence, chunks)
    if not evidence.query.tests:
        worth *= np.where(_in_tests(reader.symbols(file), (starts + ends) / 2), _TEST_SHARE, 1.0)
    if kind:
        return _of_kind(evidence, file, kind, lambda line: float(worth[_around(starts, ends, line)].max(initial=0.0)))
    best, at = int(np.argmax(worth)), 0
    for line in _certain(evidence, file, exact):
        inside = _around(starts, ends, line)
        if len(inside):
            best, at = int(inside[np.argmin((ends - starts)[inside])]), line
            break
    chunk = reader.chunk(int(chunks[best]))
    return BestPlace(at or chunk.line, chunk.end_line, chunk.kind, chunk.symbol)


def _in_tests(symbols: Sequence[Symbol], middles: "Floats") -> "Numbers":
    """Which chunks are, by their middle lines, in tests within the file they test, as in Rust."""
    import numpy as np

    inside = np.zeros(len(middles), bool)
    for symbol in symbols:
        if symbol.kind == "module" and symbol.name.lower() in _TEST_MODULES:
            inside |= (symbol.line <= middles) & (middles <= symbol.end_line)
    return inside


def _around(starts: "Numbers", ends: "Numbers", line: int) -> "Numbers":
    """Which chunks hold a line."""
    import numpy as np

    return np.flatnonzero((starts <= line) & (line <= ends))


def _of_kind(evidence: Evidence, file: int, kind: str, worth: Callable[[int], float]) -> BestPlace:
    """The definition of a kind whose name is most asked for, then the one that stands in the best text."""
    corpus, asked = evidence.corpus, evidence.query.terms

    def rank(symbol: Symbol) -> tuple[int, float, int]:
        named = sum(term in asked for term in corpus.terms.expand(symbol.name))
        return named, worth(symbol.line), -symbol.line

    found = [symbol for symbol in corpus.reader.symbols(file) if symbol.kind == kind]
    best = max(found, key=rank)
    return BestPlace(best.line, best.end_line, kind, best.name)


def _certain(evidence: Evidence, file: int, exact: Sequence[int]) -> list[int]:
    """Lines that are surely meant: of a definition, if the query is a name or names it clearly; else exact ones."""
    worth, _, line = evidence.defined.get(file, (0.0, "", 0))
    named = [line] if worth and (evidence.query.shape == SYMBOL or worth >= _DEFINITION) else []
    return [*named, *exact[:1]]


def _worth(evidence: Evidence, chunks: "Numbers") -> "Floats":
    """BM25 of text and symbols, times one plus the share of the query that is there."""
    worth: Floats = evidence.chunk[chunks] * (1 + evidence.chunk_cover[chunks] / evidence.total)
    return worth
