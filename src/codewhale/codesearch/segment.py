"""Postings in packed form. A segment holds the postings of some files: its keys are a field's letter and a term, in
order, in blocks of some kilobytes; a posting is one number, the chunk (counted from the segment's first) times 256
plus how often the term stands in it (at most 255)."""

from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from codewhale.codesearch.model import BODY, CALL, COMMENT, DEFINED, KINDS, PATH, SYMBOL, Chunk
from codewhale.codesearch.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy

    Numbers = numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]

BLOCK = 2048  # postings, about
BLOCK_KEYS = 400
COUNTED = (BODY, COMMENT, SYMBOL, PATH)  # fields whose lengths are kept, in this order
_TEXTS = (BODY, COMMENT, SYMBOL)
NAMED = (CALL, DEFINED, PATH)  # fields whose terms are given whole
MOST_OFTEN = 255
_SHIFT = 24  # bits of a chunk's number in its segment
_CHUNK = (1 << _SHIFT) - 1
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


class _Tokens:
    """Numbers of words or names, and how many of them each chunk has."""

    def __init__(self) -> None:
        self.numbers, self.chunks, self.counts = array("I"), array("I"), array("I")

    def add(self, chunk: int, numbers: Iterable[int]) -> None:
        before = len(self.numbers)
        self.numbers.extend(numbers)
        self.chunks.append(chunk)
        self.counts.append(len(self.numbers) - before)


class Gathering:
    """Chunks being gathered into a segment. Not bounded by itself: a task's size bounds it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.chunks = 0
        self._vocabulary = vocabulary
        self._tokens = {field: _Tokens() for field in (*_TEXTS, *NAMED)}
        self._starts, self._ends, self._kinds = array("I"), array("I"), array("B")

    def open(self, chunk: Chunk) -> None:
        """Begin the next chunk; `text` and `names` add to it."""
        self._starts.append(chunk.line)
        self._ends.append(chunk.end_line)
        self._kinds.append(KINDS.index(chunk.kind))
        self.chunks += 1

    def text(self, field: str, data: bytes) -> None:
        """Add the words of a text to a counted field of the open chunk."""
        words = self._vocabulary.words(data)
        self._tokens[field].add(self.chunks - 1, map(self._vocabulary.number_of, words))

    def names(self, field: str, names: Iterable[str]) -> None:
        """Add names or terms as they are to a field of the open chunk."""
        kept = (name for name in names if "\n" not in name)
        self._tokens[field].add(self.chunks - 1, map(self._vocabulary.name, kept))

    def packed(self) -> tuple[Rows, list[tuple[str, bytes]]]:
        """The columns of the chunks, and (first key, block) in the order of keys."""
        import numpy

        spelled = self._vocabulary.spelled
        blocks: list[tuple[str, bytes]] = []
        lengths: dict[str, bytes] = {}
        for field in sorted(self._tokens):
            terms, chunks, often = self._counted(field)
            first = numpy.flatnonzero(numpy.diff(terms, prepend=-1))
            counts = numpy.diff(numpy.append(first, len(terms)))
            keys = [spelled[number] for number in terms[first].tolist()]
            order = sorted(range(len(keys)), key=keys.__getitem__)
            counts = counts[order]
            ends = numpy.cumsum(counts)
            places = numpy.repeat(first[order] - (ends - counts), counts) + numpy.arange(len(terms))
            postings = ((chunks << 8) | numpy.minimum(often, MOST_OFTEN))[places].astype(numpy.uint32)
            blocks += _blocks([field + keys[number] for number in order], counts, postings)
            if field in COUNTED:
                total = numpy.bincount(chunks, weights=often, minlength=self.chunks)
                lengths[field] = numpy.minimum(total, 65535).astype(numpy.uint16).tobytes()
        columns = (self._starts.tobytes(), self._ends.tobytes(), self._kinds.tobytes())
        return Rows(self.chunks, *columns, [lengths[field] for field in COUNTED]), blocks

    def _counted(self, field: str) -> "tuple[Numbers, Numbers, Numbers]":
        """(term, chunk, how often) of one field, each pair of the first two once, in their order."""
        import numpy

        tokens = self._tokens[field]
        numbers = numpy.frombuffer(tokens.numbers, dtype=numpy.uint32).astype(numpy.int64)
        chunks = numpy.repeat(numpy.frombuffer(tokens.chunks, dtype=numpy.uint32).astype(numpy.int64), tokens.counts)
        pairs, often = numpy.unique((numbers << _SHIFT) | chunks, return_counts=True)
        if field in NAMED or not len(pairs):
            return pairs >> _SHIFT, pairs & _CHUNK, often
        origin, terms = self._vocabulary.expanded(pairs >> _SHIFT)
        # One number a posting, so that a plain sort puts equal pairs side by side with their counts.
        wide = ((terms << _SHIFT) | (pairs & _CHUNK)[origin]) << _COUNT
        wide |= numpy.minimum(often, (1 << _COUNT) - 1)[origin]
        wide.sort()
        pairs, often = wide >> _COUNT, wide & ((1 << _COUNT) - 1)
        first = numpy.flatnonzero(numpy.diff(pairs, prepend=-1))
        summed = numpy.add.reduceat(often, first) if len(first) else often
        return pairs[first] >> _SHIFT, pairs[first] & _CHUNK, summed


def _blocks(keys: list[str], counts: "numpy.ndarray", postings: "numpy.ndarray") -> Iterator[tuple[str, bytes]]:
    """Keys in order, with the number of postings of each, as blocks."""
    import numpy

    offsets = numpy.append(0, numpy.cumsum(counts, dtype=numpy.int64))
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


def entries(block: Block) -> Iterator[tuple[str, bytes]]:
    """(key, its postings) of a block, in order."""
    offsets = memoryview(block.offsets).cast("I")
    for number, key in enumerate(keys_of(block)):
        yield key, block.postings[4 * offsets[number] : 4 * offsets[number + 1]]


def find(block: Block, key: str) -> bytes:
    """The postings of one key, empty when it is not in the block."""
    at = block.keys.find(f"\n{key}\n".encode())
    if at < 0:
        return b""
    number = block.keys.count(b"\n", 0, at)
    offsets = memoryview(block.offsets).cast("I")
    return block.postings[4 * offsets[number] : 4 * offsets[number + 1]]
