"""Words and terms as numbers (`number_of` a word, `name` of a whole term, `spelled` back), so that a process meets each
spelling once: splitting and stemming are done when a word is first seen, what remains is looking it up."""

from array import array
from typing import TYPE_CHECKING

from codewhale.codesearch.terms import Terms

if TYPE_CHECKING:
    import numpy

    Numbers = numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]

MOST_WORDS = 400_000
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
_APART = bytes(byte if byte in _WORD or byte >= 0x80 else 0x20 for byte in range(256))


class _Numbers(dict[str, int]):
    """Term -> its number, given when it is first asked for; `spelled` has them in the order of numbers."""

    def __init__(self) -> None:
        self.spelled: list[str] = []

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self.spelled)
        self.spelled.append(term)
        return number


class _Words(dict[bytes, int]):
    """Word -> its number. A word here is what ASCII punctuation and space leave; what else parts it, Terms knows."""

    def __init__(self, terms: Terms, numbers: _Numbers) -> None:
        self.first, self.counts, self.terms = array("I"), array("I"), array("I")
        self._splitting = terms
        self._numbers = numbers

    def __missing__(self, word: bytes) -> int:
        splitting, number_of = self._splitting, self._numbers.__getitem__
        self.first.append(len(self.terms))
        if word.isalnum() and word.isascii():
            self.terms.extend(map(number_of, splitting.expand(word.decode("ascii"))))
        else:
            for part in splitting.words(word.decode("utf-8", "replace")):
                self.terms.extend(map(number_of, splitting.expand(part)))
        self.counts.append(len(self.terms) - self.first[-1])
        number = self[word] = len(self)
        return number


class Vocabulary:
    """The words and terms met so far. Numbers hold until `trim` forgets them all."""

    def __init__(self, terms: Terms) -> None:
        self.splitting = terms
        self._reset()

    def _reset(self) -> None:
        self._numbers = _Numbers()
        self._words = _Words(self.splitting, self._numbers)
        self.number_of = self._words.__getitem__
        self.name = self._numbers.__getitem__
        self.spelled = self._numbers.spelled

    def trim(self) -> None:
        """Forget everything when it has become too much. Between segments alone."""
        if len(self._words) > MOST_WORDS or len(self._numbers) > MOST_WORDS:
            self._reset()

    def words(self, data: bytes) -> list[bytes]:
        """The words of a UTF-8 text, in order."""
        return data.translate(_APART).split()

    def expanded(self, words: "Numbers") -> "tuple[Numbers, Numbers]":
        """(where in `words` each came from, term number) of all terms that words come to."""
        import numpy

        first = numpy.frombuffer(self._words.first, dtype=numpy.uint32)[words].astype(numpy.int64)
        counts = numpy.frombuffer(self._words.counts, dtype=numpy.uint32)[words].astype(numpy.int64)
        terms = numpy.frombuffer(self._words.terms, dtype=numpy.uint32)
        origin = numpy.repeat(numpy.arange(len(words)), counts)
        within = numpy.arange(len(origin)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
        return origin, terms[first[origin] + within].astype(numpy.int64)
