"""Where in a file to look: the stretch that says most for the query, and the next best ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from codewhale.services.codesearch.evidence import Evidence
from codewhale.services.codesearch.model import KINDS
from codewhale.services.codesearch.query import SYMBOL

if TYPE_CHECKING:
    from codewhale.services.codesearch.corpus import Floats, Numbers

_MORE = 2
_MORE_SHARE = 0.5
_DEFINITION = 0.5


class Place(NamedTuple):
    """First and last line, kind and symbol of the best chunk; lines of others."""

    line: int
    end_line: int
    kind: str
    symbol: str
    more: tuple[tuple[int, int], ...]


def best_place(evidence: Evidence, file: int, kind: str, exact: Sequence[int]) -> Place:
    """The chunk of a file (of a kind, "" for any) to show. A definition of what was asked for by name and a line that
    holds the query as it is come before text that matches well."""
    import numpy as np

    reader = evidence.corpus.reader
    chunks = np.flatnonzero(reader.chunk_file == file)
    if kind:
        chunks = chunks[reader.chunk_kind[chunks] == KINDS.index(kind)]
    starts, ends = reader.chunk_line[chunks], reader.chunk_end[chunks]
    worth = _worth(evidence, chunks)
    first = None
    for line in _certain(evidence, file, exact):
        inside = np.flatnonzero((starts <= line) & (line <= ends))
        if len(inside):
            first, at = int(inside[np.argmin((ends - starts)[inside])]), line
            break
    best = int(np.argmax(worth)) if first is None else first
    more = [
        other
        for other in np.argsort(-worth, kind="stable")[: _MORE + 1].tolist()
        if other != best and worth[other] > _MORE_SHARE * worth.max()
    ]
    chunk = reader.chunk(int(chunks[best]))
    line = chunk.line if first is None else at
    return Place(
        line,
        chunk.end_line,
        chunk.kind,
        chunk.symbol,
        tuple((int(starts[i]), int(ends[i])) for i in sorted(more[:_MORE])),
    )


def _certain(evidence: Evidence, file: int, exact: Sequence[int]) -> list[int]:
    """Lines that are surely meant: of a definition, if the query is a name or names it clearly; else exact ones."""
    worth, _, line = evidence.defined.get(file, (0.0, "", 0))
    named = [line] if worth and (evidence.query.shape == SYMBOL or worth >= _DEFINITION) else []
    return [*named, *exact[:1]]


def _worth(evidence: Evidence, chunks: "Numbers") -> "Floats":
    """BM25 of text and symbols, times one plus the share of the query that is there."""
    worth: Floats = evidence.chunk[chunks] * (1 + evidence.chunk_cover[chunks] / evidence.total)
    return worth
