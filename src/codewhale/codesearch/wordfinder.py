"""The words of a text, all at once: where each stands, and a number of 64 bits that tells it from others. Words here
are what ASCII punctuation and space leave of UTF-8 bytes; the loops over bytes are numpy's."""

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    Places = numpy.ndarray[tuple[int], numpy.dtype[numpy.int64]]
    Digests = numpy.ndarray[tuple[int], numpy.dtype[numpy.uint64]]

MARGIN = b" " * 9  # what has to stand before and behind a text
_WORD = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz" + bytes(range(0x80, 0x100))
_STEP = 8  # bytes taken at once
_STEPS = 32  # what is longer is digested by itself
_FIRST, _NEXT = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93  # odd, so that no step loses anything


class WordFinder:
    """Finds words. Holds two small tables."""

    def __init__(self) -> None:
        import numpy

        self._is_word = numpy.zeros(256, dtype=numpy.bool_)
        self._is_word[list(_WORD)] = True
        self._masks = numpy.array([(1 << 8 * kept) - 1 for kept in range(_STEP + 1)], dtype=numpy.uint64)

    def find(self, data: bytes) -> "tuple[Places, Places, Digests]":
        """(start, end, digest) of every word of a text that stands between MARGINs, in order. Equal words have equal
        digests; those of different words are different up to 8 bytes and, beyond, as good as always."""
        import numpy

        inside = self._is_word[numpy.frombuffer(data, dtype=numpy.uint8)]
        edges = numpy.flatnonzero(inside[1:] != inside[:-1]) + 1
        starts, ends = edges[::2], edges[1::2]
        return starts, ends, self._digests(data, starts, ends - starts)

    def _digests(self, data: bytes, starts: "Places", lengths: "Places") -> "Digests":
        import numpy

        eights: Any = numpy.ndarray((len(data) - _STEP + 1,), dtype="<u8", buffer=data, strides=(1,))
        digests: Digests = (eights[starts] & self._masks[numpy.minimum(lengths, _STEP)]) * numpy.uint64(_FIRST)
        digests ^= digests >> numpy.uint64(32)
        left = numpy.flatnonzero(lengths > _STEP)
        for taken in range(_STEP, _STEP * _STEPS, _STEP):
            if not len(left):
                break
            rest = lengths[left] - taken
            part = eights[starts[left] + taken] & self._masks[numpy.minimum(rest, _STEP)]
            mixed = (digests[left] + part) * numpy.uint64(_NEXT)
            digests[left] = mixed ^ (mixed >> numpy.uint64(29))
            left = left[rest > _STEP]
        for number in left.tolist():
            start = int(starts[number])
            word = hashlib.blake2b(data[start : start + int(lengths[number])], digest_size=8)
            digests[number] = int.from_bytes(word.digest(), "little")
        return digests
