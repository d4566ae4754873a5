"""Postings in packed form. A segment holds the postings of some files: its keys are a field's letter and a term, in
order, in blocks of some kilobytes; a posting is one number, the chunk (counted from the segment's first) times 256
plus how often the term stands in it (at most 255)."""

from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from codewhale.codesearch.model import BODY, CALL, COMMENT, DEFINED, KINDS, PATH, SYMBOL, Chunk
from codewhale.codesearch.vocabulary import Vocabulary
from codewhale.codesearch.wordfinder import MARGIN

if TYPE_CHECKING:
    import numpy

    Numbers = numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]
    Counted = tuple[Numbers, Numbers, Numbers]

BLOCK = 2048  # postings, about
BLOCK_KEYS = 400
COUNTED = (BODY, COMMENT, SYMBOL, PATH)  # fields whose lengths are kept, in this order
_TEXTS = (BODY, COMMENT, SYMBOL)
NAMED = (CALL, DEFINED, PATH)  # fields whose terms are given whole
MOST_OFTEN = 255
_SHIFT = 24  # bits of a chunk's number in its segment
_CHUNK = (1 << _SHIFT) - 1
_FIELDS = 3
_PLACE = _SHIFT + 2  # bits of a chunk's number and a text's field
_AT_ONCE = 512 << 10  # bytes of texts that are looked through at once
_COUNT = 16  # bits of a count; those of a term's number are at most 23


class Block(msgspec.Struct, array_like=True):
    """Consecutive keys, each between newlines; where the postings of each begin and the last end (u32, counted in
    postings); the postings one after another (u32). Nothing of it needs decoding to find one key."""

    keys: bytes
    offsets: bytes
    postings: bytes


class Rows(msgspec.Struct, array_like=True):
    """What is kept of each chunk of a segment, column by column as packed numbers: first and last line (u32), kind
    (u8, in model.KINDS), and the length of each counted field (u16 each, at most 65535)."""

    chunks: int
    starts: bytes
    ends: bytes
    kinds: bytes
    lengths: list[bytes]


class _Names:
    """Numbers of names, and how many of them each chunk has."""

    def __init__(self) -> None:
        self.numbers, self.chunks, self.counts = array("I"), array("I"), array("I")

    def add(self, chunk: int, numbers: Iterable[int]) -> None:
        before = len(self.numbers)
        self.numbers.extend(numbers)
        self.chunks.append(chunk)
        self.counts.append(len(self.numbers) - before)

    def counted(self) -> "Counted":
        """(name, chunk, how often), each pair of the first two once, in their order."""
        import numpy

        numbers = numpy.frombuffer(self.numbers, dtype=numpy.uint32).astype(numpy.int64)
        chunks = numpy.repeat(numpy.frombuffer(self.chunks, dtype=numpy.uint32).astype(numpy.int64), self.counts)
        pairs, often = numpy.unique((numbers << _SHIFT) | chunks, return_counts=True)
        return pairs >> _SHIFT, pairs & _CHUNK, often


class _Texts:
    """Texts of chunks in counted fields. They are held until there are enough to be looked through at once; what stays
    of them is how often each chunk has each word."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._held: list[bytes] = []
        self._places = array("Q")  # the field's number and the chunk of each
        self._size = 0
        self._pairs: list[Numbers] = []
        self._often: list[Numbers] = []

    def add(self, field: str, chunk: int, data: bytes) -> None:
        self._held.append(data)
        self._places.append((_TEXTS.index(field) << _SHIFT) | chunk)
        self._size += len(data)
        if self._size > _AT_ONCE:
            self._count()

    def counted(self, field: str) -> "Counted":
        """(term, chunk, how often) of one field; a pair of the first two may be there again."""
        import numpy

        if self._held:
            self._count()
        pairs = numpy.concatenate(self._pairs) if self._pairs else numpy.empty(0, dtype=numpy.int64)
        often = numpy.concatenate(self._often) if self._often else pairs
        own = ((pairs >> _SHIFT) & _FIELDS) == _TEXTS.index(field)
        pairs, often = pairs[own], often[own]
        origin, terms = self._vocabulary.expanded(pairs >> _PLACE)
        return terms, (pairs & _CHUNK)[origin], often[origin]

    def _count(self) -> None:
        import numpy

        lengths = numpy.fromiter(map(len, self._held), dtype=numpy.int64, count=len(self._held))
        begins = len(MARGIN) + numpy.cumsum(lengths + 1) - (lengths + 1)
        starts, words = self._vocabulary.words(MARGIN + b" ".join(self._held) + MARGIN)
        counts = numpy.diff(numpy.append(numpy.searchsorted(starts, begins), len(starts)))
        places = numpy.frombuffer(self._places, dtype=numpy.int64)
        pairs = (words << _PLACE) | numpy.repeat(places, counts)
        pairs.sort()
        first = numpy.flatnonzero(numpy.diff(pairs, prepend=-1))
        self._pairs.append(pairs[first])
        self._often.append(numpy.diff(numpy.append(first, len(pairs))))
        self._held, self._places, self._size = [], array("Q"), 0


class Gathering:
    """Chunks being gathered into a segment. Not bounded by itself: a task's size bounds it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.chunks = 0
        self._vocabulary = vocabulary
        self._texts = _Texts(vocabulary)
        self._names = {field: _Names() for field in NAMED}
        self._starts, self._ends, self._kinds = array("I"), array("I"), array("B")

    def open(self, chunk: Chunk) -> None:
        """Begin the next chunk; `text` and `names` add to it."""
        self._starts.append(chunk.line)
        self._ends.append(chunk.end_line)
        self._kinds.append(KINDS.index(chunk.kind))
        self.chunks += 1

    def text(self, field: str, data: bytes) -> None:
        """Add the words of a text to a counted field of the open chunk."""
        self._texts.add(field, self.chunks - 1, data)

    def names(self, field: str, names: Iterable[str]) -> None:
        """Add names or terms as they are to a field of the open chunk."""
        kept = (name for name in names if "\n" not in name)
        self._names[field].add(self.chunks - 1, map(self._vocabulary.name, kept))

    def packed(self) -> tuple[Rows, list[tuple[str, bytes]]]:
        """The columns of the chunks, and (first key, block) in the order of keys."""
        import numpy

        counted = {field: self._texts.counted(field) for field in _TEXTS}
        counted.update((field, names.counted()) for field, names in self._names.items())
        ranks, ordered = self._ranked([terms for terms, _, _ in counted.values()])
        blocks: list[tuple[str, bytes]] = []
        lengths: dict[str, bytes] = {}
        for field, (terms, chunks, often) in sorted(counted.items()):
            places, chunks, often = _summed(ranks[terms], chunks, often)
            first = numpy.flatnonzero(numpy.diff(places, prepend=-1))
            keys = [field + ordered[place] for place in places[first].tolist()]
            postings = ((chunks << 8) | numpy.minimum(often, MOST_OFTEN)).astype(numpy.uint32)
            blocks += _blocks(keys, numpy.append(first, len(places)), postings)
            if field in COUNTED:
                total = numpy.bincount(chunks, weights=often, minlength=self.chunks)
                lengths[field] = numpy.minimum(total, 65535).astype(numpy.uint16).tobytes()
        columns = (self._starts.tobytes(), self._ends.tobytes(), self._kinds.tobytes())
        return Rows(self.chunks, *columns, [lengths[field] for field in COUNTED]), blocks

    def _ranked(self, used: "list[Numbers]") -> "tuple[Numbers, list[str]]":
        """(number of a term -> its place in the order of spelling, the spellings in order), of terms that are used."""
        import numpy

        spelled = self._vocabulary.spelled
        is_used = numpy.zeros(len(spelled), dtype=numpy.bool_)
        for terms in used:
            is_used[terms] = True
        order = sorted(numpy.flatnonzero(is_used).tolist(), key=spelled.__getitem__)
        ranks = numpy.zeros(len(spelled), dtype=numpy.int64)
        ranks[order] = numpy.arange(len(order))
        return ranks, [spelled[number] for number in order]


def _summed(terms: "Numbers", chunks: "Numbers", often: "Numbers") -> "Counted":
    """The same, each pair of term and chunk once and in their order."""
    import numpy

    # One number a posting, so that a plain sort puts equal pairs side by side with their counts.
    wide = (((terms << _SHIFT) | chunks) << _COUNT) | numpy.minimum(often, (1 << _COUNT) - 1)
    wide.sort()
    pairs, counts = wide >> _COUNT, wide & ((1 << _COUNT) - 1)
    first = numpy.flatnonzero(numpy.diff(pairs, prepend=-1))
    summed = numpy.add.reduceat(counts, first) if len(first) else counts
    return pairs[first] >> _SHIFT, pairs[first] & _CHUNK, summed


def _blocks(keys: list[str], offsets: "Numbers", postings: "numpy.ndarray") -> Iterator[tuple[str, bytes]]:
    """Keys in order, where the postings of each begin and the last end, as blocks."""
    import numpy

    start = 0
    while start < len(keys):
        done = int(offsets[start])
        stop = int(numpy.searchsorted(offsets, done + BLOCK, side="left"))
        stop = min(max(stop, start + 1), start + BLOCK_KEYS, len(keys))
        within = (offsets[start : stop + 1] - done).astype(numpy.uint32)
        spelled = ("\n" + "\n".join(keys[start:stop]) + "\n").encode()
        block = Block(spelled, within.tobytes(), postings[done : int(offsets[stop])].tobytes())
        yield keys[start], msgspec.msgpack.encode(block)
        start = stop


def decoded(data: bytes) -> Block:
    """A block as it was packed. Raises msgspec.DecodeError."""
    return msgspec.msgpack.decode(data, type=Block)


def keys_of(block: Block) -> list[str]:
    """The keys of a block, in order."""
    return block.keys.decode().split("\n")[1:-1]


def find(block: Block, key: str) -> bytes:
    """The postings of one key, empty when it is not in the block."""
    at = block.keys.find(f"\n{key}\n".encode())
    if at < 0:
        return b""
    number = block.keys.count(b"\n", 0, at)
    offsets = memoryview(block.offsets).cast("I")
    return block.postings[4 * offsets[number] : 4 * offsets[number + 1]]
