"""What files were known by when they were indexed, laid out so that looking at all of them is fast: in groups of
neighbours, each with the bytes that a look at it gives as long as nothing has changed."""

import os
from array import array
from collections.abc import Iterator, KeysView, MutableMapping, Sequence

from msgspec import Struct

from codewhale.codesearch.looks import AT_ONCE, SECOND, packed, row, rows


class Stamp(Struct, frozen=True, array_like=True):
    """What a file was known by when it was indexed. A `ctime_ns` of 0 is a stamp not to be trusted."""

    size: int
    mtime_ns: int
    ctime_ns: int


class Group:
    """Some paths, the same as the system takes them, and what a look at them is to give."""

    __slots__ = ("expected", "names", "paths")

    def __init__(self, paths: list[str], told: Sequence[tuple[int, ...]]) -> None:
        self.paths = paths
        self.names = [os.fsencode(path) for path in paths]
        self.expected = packed(told)

    def changed(self, look: bytes) -> list[str]:
        """The files that are gone or do not look as they did, by what a look at the group tells now."""
        if look == self.expected:
            return []
        pairs = zip(self.paths, rows(look), rows(self.expected), strict=True)
        return [path for path, now, before in pairs if now != before]

    def put(self, path: str, stamp: Stamp) -> None:
        """One of the paths has another stamp."""
        numbers = array("q", self.expected)
        numbers[self.paths.index(path) :: len(self.paths)] = array("q", _row(stamp))
        self.expected = numbers.tobytes()


class Stamps(MutableMapping[str, Stamp]):
    """The stamps of files by path. Made of (path, size, mtime_ns, ctime_ns), neighbours together."""

    def __init__(self, found: Sequence[tuple[str, int, int, int]] = ()) -> None:
        self.groups: list[Group] = []
        self._of: dict[str, Group] = {}
        for start in range(0, len(found), AT_ONCE):
            some = found[start : start + AT_ONCE]
            self._add([each[0] for each in some], [row(size, ctime, mtime) for _, size, mtime, ctime in some])

    def __getitem__(self, path: str) -> Stamp:
        group = self._of[path]
        size, changed, part, seconds, rest = array("q", group.expected)[group.paths.index(path) :: len(group.paths)]
        return Stamp(size, seconds * SECOND + rest, changed * SECOND + part)

    def __setitem__(self, path: str, stamp: Stamp) -> None:
        if path in self._of:
            self._of[path].put(path, stamp)
        elif self.groups and len(self.groups[-1].paths) < AT_ONCE:
            last = self.groups.pop()
            self._add([*last.paths, path], [*rows(last.expected), _row(stamp)])
        else:
            self._add([path], [_row(stamp)])

    def __delitem__(self, path: str) -> None:
        group = self._of.pop(path)
        left = {other: told for other, told in zip(group.paths, rows(group.expected), strict=True) if other != path}
        self.groups.remove(group)
        if left:
            self._add(list(left), list(left.values()))

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def keys(self) -> KeysView[str]:
        """The paths."""
        return self._of.keys()

    def _add(self, paths: list[str], told: Sequence[tuple[int, ...]]) -> None:
        group = Group(paths, told)
        self.groups.append(group)
        self._of.update(dict.fromkeys(paths, group))


def _row(stamp: Stamp) -> tuple[int, ...]:
    return row(stamp.size, stamp.ctime_ns, stamp.mtime_ns)
