"""Words and terms as numbers, so that a process splits and stems each spelling once: what remains for a word that was
met before is looking it up, for all words of a text at once."""

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from codewhale.codesearch.terms import Terms
from codewhale.codesearch.wordfinder import WordFinder

if TYPE_CHECKING:
    import numpy

    Numbers = numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]
    Digests = numpy.ndarray[tuple[int], numpy.dtype[numpy.uint64]]

MOST_WORDS = 300_000
MOST_TERMS = 200_000
_SLOTS = 18  # bits: words that were met lately are found in a table of so many


class _Numbers(dict[str, int]):
    """Term -> its number, given when it is first asked for; `spelled` has them in the order of numbers."""

    def __init__(self) -> None:
        self.spelled: list[str] = []

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self.spelled)
        self.spelled.append(term)
        return number


class _Parts(dict[str, int]):
    """Part of a word as written -> the number of its stem."""

    def __init__(self, terms: Terms, numbers: _Numbers) -> None:
        self._stem, self._numbers = terms.stem, numbers

    def __missing__(self, part: str) -> int:
        number = self[part] = self._numbers[self._stem(part.lower())]
        return number


class _Seen:
    """Digest of a word -> its number: all of them sorted, and a table of those met last."""

    def __init__(self) -> None:
        import numpy

        self._digests = numpy.empty(0, dtype=numpy.uint64)
        self._numbers = numpy.empty(0, dtype=numpy.int64)
        self._lately = numpy.zeros(1 << _SLOTS, dtype=numpy.uint64)
        self._lately[0] = 1 << 63  # a digest that belongs elsewhere
        self._their_numbers = numpy.zeros(1 << _SLOTS, dtype=numpy.int64)

    def __len__(self) -> int:
        return len(self._digests)

    def numbers(self, digests: "Digests") -> "tuple[Numbers, Numbers]":
        """The number of each digest; and one index into `digests` for each that is new, which are numbered from
        `len()` on in the order of these indexes."""
        import numpy

        slots = digests >> numpy.uint64(64 - _SLOTS)
        found = self._their_numbers[slots]
        missed = numpy.flatnonzero(self._lately[slots] != digests)
        unique, first, back = numpy.unique(digests[missed], return_index=True, return_inverse=True)
        at = numpy.searchsorted(self._digests, unique)
        padded = numpy.append(self._digests, numpy.uint64(0))
        new = (padded[at] != unique) | (at == len(self._digests))
        numbers = numpy.append(self._numbers, 0)[at]
        numbers[new] = len(self) + numpy.arange(int(new.sum()))
        found[missed] = numbers[back]
        slots = unique >> numpy.uint64(64 - _SLOTS)
        self._lately[slots], self._their_numbers[slots] = unique, numbers
        self._digests = numpy.insert(self._digests, at[new], unique[new])
        self._numbers = numpy.insert(self._numbers, at[new], numbers[new])
        return found, missed[first[new]]


class Vocabulary:
    """The words and terms met so far. Numbers hold until `trim` forgets them all."""

    def __init__(self, terms: Terms) -> None:
        self.splitting = terms
        self._finder = WordFinder()
        self._reset()

    def _reset(self) -> None:
        self._seen = _Seen()
        self._numbers = _Numbers()
        self._parts = _Parts(self.splitting, self._numbers)
        self._first, self._counts, self._terms = array("I"), array("I"), array("I")
        self.name = self._numbers.__getitem__
        self.spelled = self._numbers.spelled

    def trim(self) -> None:
        """Forget everything when it has become too much. Between segments alone."""
        if len(self._seen) > MOST_WORDS or len(self._numbers) > MOST_TERMS:
            self._reset()

    def words(self, data: bytes) -> "tuple[Numbers, Numbers]":
        """(where it starts, number) of every word of a UTF-8 text that stands between MARGINs, in order."""
        starts, ends, digests = self._finder.find(data)
        numbers, new = self._seen.numbers(digests)
        self._learn([data[start:end] for start, end in zip(starts[new].tolist(), ends[new].tolist(), strict=True)])
        return starts, numbers

    def expanded(self, words: "Numbers") -> "tuple[Numbers, Numbers]":
        """(where in `words` each came from, term number) of all terms that words come to."""
        import numpy

        first = numpy.frombuffer(self._first, dtype=numpy.uint32)[words].astype(numpy.int64)
        counts = numpy.frombuffer(self._counts, dtype=numpy.uint32)[words].astype(numpy.int64)
        terms = numpy.frombuffer(self._terms, dtype=numpy.uint32)
        origin = numpy.repeat(numpy.arange(len(words)), counts)
        within = numpy.arange(len(origin)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
        return origin, terms[first[origin] + within].astype(numpy.int64)

    def _learn(self, words: Sequence[bytes]) -> None:
        """Note the terms of words that are numbered next."""
        for word in words:
            self._first.append(len(self._terms))
            if word.isascii():
                self._terms.extend(self._of_ascii(word.decode("ascii")))
            else:
                self._terms.extend(self._of_text(word.decode("utf-8", "replace")))
            self._counts.append(len(self._terms) - self._first[-1])

    def _of_ascii(self, word: str) -> list[int]:
        parts = self.splitting.parts(word)
        numbers = [self._parts[part] for part in parts]
        if len(parts) > 1:
            numbers.append(self._numbers["".join(parts).lower()])
        return numbers

    def _of_text(self, text: str) -> Iterable[int]:
        splitting, number_of = self.splitting, self._numbers.__getitem__
        return [number_of(term) for part in splitting.words(text) for term in splitting.expand(part)]
