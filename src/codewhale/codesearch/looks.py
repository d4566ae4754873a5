"""What the file system says of many paths: size, change time and modification time of each, packed so that all of them
can be compared at once. Where the system has statx it is called by its address: most of the time of `os.lstat` goes
into the objects of an answer of which three numbers are wanted."""

import os
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

AT_ONCE = 256  # paths that one look takes at most
COLUMNS = 5  # numbers of eight bytes that are told of a path
GONE: tuple[int, ...] = (-1, 0, 0, 0, 0)
SECOND = 1_000_000_000  # nanoseconds
# statx(2): do not follow links; size, mtime and ctime; the numbers of eight bytes in its answer and, among those,
# size, seconds and nanoseconds of ctime, and the same of mtime.
_NO_FOLLOW, _WANTED, _ANSWER, _PLACES = 0x100, 0x2C0, 32, (5, 12, 13, 14, 15)

Look = Callable[[int, Sequence[bytes]], bytes]


def row(size: int, ctime_ns: int, mtime_ns: int) -> tuple[int, ...]:
    """What a look tells of one path: size, then seconds and nanoseconds of either time."""
    return (size, *divmod(ctime_ns, SECOND), *divmod(mtime_ns, SECOND))


def packed(rows: Sequence[tuple[int, ...]]) -> bytes:
    """Rows as a look gives them: the first number of each, then the second of each, and so on."""
    return b"".join(array("q", column).tobytes() for column in zip(*rows, strict=True))


def rows(look: bytes) -> Iterator[tuple[int, ...]]:
    """What was packed, or looked at."""
    numbers, count = memoryview(look).cast("q"), len(look) // (8 * COLUMNS)
    return zip(*(numbers[column * count : (column + 1) * count] for column in range(COLUMNS)), strict=True)


def mtimes(look: bytes) -> bytes:
    """The modification times alone."""
    return look[len(look) // COLUMNS * (COLUMNS - 2) :]


def looker() -> Look:
    """look(folder, paths) -> what stands there now, packed: of at most AT_ONCE paths beneath an open folder, links not
    followed; GONE for what cannot be looked at. For one thread at a time."""
    return _by_statx() or by_lstat


def by_lstat(folder: int, paths: Sequence[bytes]) -> bytes:
    """A look by the means that every system has."""
    found: list[tuple[int, ...]] = []
    for path in paths:
        try:
            at = os.lstat(path, dir_fd=folder)
        except OSError:
            found.append(GONE)
        else:
            found.append(row(at.st_size, at.st_ctime_ns, at.st_mtime_ns))
    return packed(found)


def _by_statx() -> Look | None:
    """A look by statx, None where there is none or it may not be called."""
    if sys.platform != "linux" or sys.byteorder != "little":
        return None
    import ctypes

    statx = getattr(ctypes.CDLL(None), "statx", None)
    answers = ctypes.create_string_buffer(8 * _ANSWER * AT_ONCE)
    base, numbers = ctypes.addressof(answers), memoryview(answers).cast("B").cast("q")
    places = [ctypes.c_void_p(base + 8 * _ANSWER * at) for at in range(AT_ONCE)]
    if statx is None or statx(0, b"/", _NO_FOLLOW, _WANTED, places[0]):
        return None

    def look(folder: int, paths: Sequence[bytes]) -> bytes:
        failed = list(map(statx, repeat(folder), paths, repeat(_NO_FOLLOW), repeat(_WANTED), places))
        end = _ANSWER * len(paths)
        found = [numbers[place:end:_ANSWER].tobytes() for place in _PLACES]
        if any(failed):
            there = zip(failed, rows(b"".join(found)), strict=True)
            return packed([GONE if code else told for code, told in there])
        return b"".join(found)

    return look
