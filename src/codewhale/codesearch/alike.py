"""Names that a name which nothing is called may have meant."""

from collections.abc import Iterator

from codewhale.codesearch.model import SYMBOL, folded
from codewhale.codesearch.reader import Reader
from codewhale.codesearch.terms import Terms
from codewhale.lib.text import scrub_surrogates

MOST = 3
_SAME_LETTERS = 2  # at the beginning of names that are spelled nearly alike
_LOOKED_AT = 5_000
_MOST_FILES = 50
_CLOSE = 0.75  # of difflib's ratio


def alike(reader: Reader, name: str) -> tuple[str, ...]:
    """At most three names that are defined in the tree: those spelled nearly like `name`, then those that hold all its
    words, the shortest first."""
    if not name.strip():
        return ()
    holding = sorted(_holding(reader, name), key=lambda one: (len(one), one))
    return tuple(dict.fromkeys([*_spelled(reader, name), *holding]))[:MOST]


def _spelled(reader: Reader, name: str) -> Iterator[str]:
    import difflib

    wanted = folded(scrub_surrogates(name))
    known = reader.names_with_prefix(wanted[:_SAME_LETTERS], _LOOKED_AT)
    for term in difflib.get_close_matches(wanted, known, MOST, _CLOSE):
        for _, symbol in reader.defined(term, fold=True)[:1]:
            yield symbol.name


def _holding(reader: Reader, name: str) -> set[str]:
    import numpy

    terms, chunks = Terms(), None
    words = {terms.stem(part.lower()) for part in terms.parts(name)}
    for word in words:
        found, _ = reader.postings(SYMBOL, word)
        chunks = found if chunks is None else numpy.intersect1d(chunks, found, assume_unique=True)
    files = {int(reader.chunk_file[chunk]) for chunk in ([] if chunks is None else chunks.tolist())}
    symbols = (symbol for file in sorted(files)[:_MOST_FILES] for symbol in reader.symbols(file))
    return {symbol.name for symbol in symbols if words <= set(terms.expand(symbol.name))}
