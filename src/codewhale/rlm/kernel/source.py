"""The source: a mapped file that is read like a text. Characters are those of UTF-8; a byte that belongs to none is one
character, U+FFFD. Positions in characters are found by a table of blocks; spans are bytes, half open."""

import mmap
import os
import re
from bisect import bisect_right

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

BLOCK = 1 << 18
PLAIN = 32 << 20  # a source up to this size is a plain string as well
_ODD = re.compile("[\udc80-\udcff]")


def decoded(data: bytes) -> str:
    """Bytes as text with one character for each that is no UTF-8."""
    text = data.decode("utf-8", "surrogateescape")
    return text if text.isascii() else _ODD.sub("�", text)


class MappedSource:
    """Opened once. `starts` are blocks as (byte, character, line) of their beginnings."""

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.bytes = os.fstat(fd).st_size
            self.map: Any = mmap.mmap(fd, 0, access=mmap.ACCESS_READ) if self.bytes else b""
        finally:
            os.close(fd)
        self._index: tuple[list[int], list[int], list[int]] | None = None

    def index(self) -> "tuple[list[int], list[int], list[int]]":
        """(bytes, characters, lines) at the beginning of each block, and at the end; made at the first need."""
        if self._index is None:
            starts, chars, lines = [0], [0], [0]
            at = 0
            while at < self.bytes:
                end = self.boundary(min(at + BLOCK, self.bytes))
                if end <= at:
                    end = min(at + BLOCK, self.bytes)
                block = self.map[at:end]
                size = len(block) if block.isascii() else len(block.decode("utf-8", "surrogateescape"))
                starts.append(end)
                chars.append(chars[-1] + size)
                lines.append(lines[-1] + block.count(b"\n"))
                at = end
            self._index = starts, chars, lines
            self._release()
        return self._index

    def boundary(self, at: int) -> "Any":
        """The beginning of the character that byte `at` belongs to."""
        low = at
        while 0 < low < self.bytes and at - low < 4 and self.map[low] & 0xC0 == 0x80:
            low -= 1
        return low if 0 < low < self.bytes and self.map[low] & 0xC0 != 0x80 else at

    @property
    def chars(self) -> int:
        return self.index()[1][-1]

    def byte_at(self, char: int) -> "Any":
        """Where a character begins; the end of the source for one behind it."""
        starts, chars, _ = self.index()
        if char >= chars[-1]:
            return self.bytes
        block = bisect_right(chars, max(0, char)) - 1
        rest = char - chars[block]
        if chars[block + 1] - chars[block] == starts[block + 1] - starts[block]:
            return starts[block] + rest
        text = self.map[starts[block] : starts[block + 1]].decode("utf-8", "surrogateescape")
        return starts[block] + len(text[:rest].encode("utf-8", "surrogateescape"))

    def char_at(self, byte: int) -> "Any":
        """The character that begins at a byte, or holds it."""
        starts, chars, _ = self.index()
        byte = min(max(0, byte), self.bytes)
        block = min(bisect_right(starts, byte) - 1, len(starts) - 2) if len(starts) > 1 else 0
        if not self.bytes:
            return 0
        if chars[block + 1] - chars[block] == starts[block + 1] - starts[block]:
            return chars[block] + byte - starts[block]
        return chars[block] + len(self.map[starts[block] : byte].decode("utf-8", "surrogateescape"))

    def line_start(self, line: int) -> "Any":
        """The byte at which a line begins (from 0); the end of the source for one behind the last."""
        starts, _, lines = self.index()
        if line <= 0:
            return 0
        if line > lines[-1]:
            return self.bytes
        block = bisect_right(lines, line - 1) - 1
        while lines[block + 1] < line:
            block += 1
        at, left = starts[block], line - lines[block]
        while left:
            at = self.map.find(b"\n", at) + 1
            left -= 1
        return at

    @property
    def line_count(self) -> int:
        if not self.bytes:
            return 0
        return self.index()[2][-1] + int(self.map[self.bytes - 1] != 10)

    def text(self, start: int, end: int) -> str:
        return decoded(self.map[max(0, start) : min(end, self.bytes)])

    def spans(self, size: int, overlap: int = 0, begin: int = 0, end: "int | None" = None) -> "Any":
        """Spans of at most `size` bytes that end behind a line where one ends in their second half."""
        end = self.bytes if end is None else end
        at = begin
        while at < end:
            stop = min(at + size, end)
            if stop < end:
                line = self.map.rfind(b"\n", at + size // 2, stop) + 1
                stop = line if line > at else self.boundary(stop)
                if stop <= at:
                    stop = min(at + size, end)
            yield at, stop
            if stop >= end:
                return
            at = max(self.boundary(stop - overlap), at + 1) if overlap else stop

    def _release(self) -> None:
        """Give mapped pages back: they were read once, and are not the kernel's own."""
        if hasattr(self.map, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
            self.map.madvise(mmap.MADV_DONTNEED)


class Span:
    """A part of the source: `start` and `end` in bytes, `index` among its like. It reads like its text, which is made
    when it is looked at."""

    __slots__ = ("_source", "end", "index", "start")

    def __init__(self, source: MappedSource, start: int, end: int, index: int = 0) -> None:
        self._source = source
        self.start = start
        self.end = end
        self.index = index

    @property
    def text(self) -> str:
        return self._source.text(self.start, self.end)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        text = self._source.text(self.start, min(self.end, self.start + 60))
        return f"<span {self.index}: bytes {self.start}-{self.end} {text!r}>"

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, key: "Any") -> "Any":
        return (
            getattr(self, key) if isinstance(key, str) and key in ("start", "end", "index", "text") else self.text[key]
        )

    def __iter__(self) -> "Any":
        return iter(self.text)

    def __contains__(self, part: "Any") -> bool:
        return str(part) in self.text

    def __eq__(self, other: "Any") -> bool:
        return self.text == str(other) if isinstance(other, (str, Span)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __add__(self, other: "Any") -> str:
        return self.text + str(other)

    def __radd__(self, other: "Any") -> str:
        return str(other) + self.text

    def __format__(self, spec: "Any") -> str:
        return format(self.text, spec)

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.text, name)


class PlainSpan(str):
    """A part of a source that is a plain string: its text, and where that stands."""

    start: int
    end: int
    index: int  # type: ignore[assignment]

    def __new__(cls, source: "Any", start: int, end: int, index: int = 0, text: "Any" = None) -> "Any":
        self = super().__new__(cls, source.text(start, end) if text is None else text)
        self.start, self.end, self.index = start, end, index
        return self

    @property
    def text(self) -> "Any":
        return str(self)

    def __getitem__(self, key: "Any") -> "Any":
        if isinstance(key, str) and key in ("start", "end", "index", "text"):
            return getattr(self, key)
        return str.__getitem__(self, key)


class PlainSource(str):
    """The whole source as a string, whose slices know where they stand."""

    source: MappedSource
    ascii: bool

    def __new__(cls, source: "Any") -> "Any":
        self = super().__new__(cls, source.text(0, source.bytes))
        self.source = source
        self.ascii = source.bytes == len(self) and self.isascii()
        return self

    def __getitem__(self, key: "Any") -> "Any":
        text = str.__getitem__(self, key)
        if not isinstance(key, slice) or key.step not in (None, 1) or not text:
            return text
        start, end, _ = key.indices(len(self))
        if not self.ascii:
            start, end = self.source.byte_at(start), self.source.byte_at(end)
        return PlainSpan(self.source, start, end, 0, text)

    @property
    def line_count(self) -> int:
        return self.source.line_count

    def lines(self, start: int = 0, end: "int | None" = None) -> "Any":
        return BigSource(self.source).lines(start, end)


class BigSource:
    """A source that is too large for a string: slices, lines, find and regular expressions work on the mapped file."""

    def __init__(self, source: MappedSource) -> None:
        self.source = source

    def __len__(self) -> int:
        return self.source.chars

    def __repr__(self) -> str:
        return f"<SOURCE: {self.source.bytes:,} bytes; read parts of it: SOURCE[a:b], peek(), chunk(), search()>"

    def __str__(self) -> str:
        raise TypeError("SOURCE is too large to be a string; use SOURCE[a:b], SOURCE.lines(a, b) or chunk()")

    def __iter__(self) -> None:
        raise TypeError("SOURCE is too large to go through by character; use SOURCE.lines() or chunk()")

    def __getitem__(self, key: "Any") -> "Any":
        if isinstance(key, slice):
            start, end, step = key.indices(len(self))
            span = Span(self.source, self.source.byte_at(start), self.source.byte_at(max(start, end)))
            return span if step == 1 else self._reversed(key)
        number = key + len(self) if key < 0 else key
        if not 0 <= number < len(self):
            raise IndexError("SOURCE index out of range")
        at = self.source.byte_at(number)
        return self.source.text(at, self.source.byte_at(number + 1))

    def _reversed(self, key: "Any") -> None:
        raise TypeError(f"SOURCE[{key.start}:{key.stop}:{key.step}]: slices of SOURCE have no step")

    def __contains__(self, part: "Any") -> bool:
        return bool(self.source.map.find(str(part).encode("utf-8", "surrogateescape")) >= 0)

    @property
    def bytes(self) -> "Any":
        return self.source.map

    @property
    def line_count(self) -> int:
        return self.source.line_count

    def lines(self, start: int = 0, end: "int | None" = None) -> "Any":
        """The lines from `start` to `end` (from 0, half open), one after the other, without their ends."""
        source = self.source
        at = source.line_start(start)
        stop = source.bytes if end is None else source.line_start(end)
        while at < stop:
            behind = source.map.find(b"\n", at, stop)
            behind = stop if behind < 0 else behind
            yield source.text(at, behind).removesuffix("\r")
            at = behind + 1

    def splitlines(self, keepends: bool = False) -> "Any":
        return Lines(self)

    def split(self, sep: "Any" = None, maxsplit: int = -1) -> "Any":
        if sep == "\n" and maxsplit < 0:
            return Lines(self)
        raise TypeError('SOURCE is large: SOURCE.split("\\n") goes by lines; else split parts: SOURCE[a:b].split()')

    def find(self, part: "Any", start: int = 0, end: "int | None" = None) -> "Any":
        return self._find(self.source.map.find, part, start, end)

    def rfind(self, part: "Any", start: int = 0, end: "int | None" = None) -> "Any":
        return self._find(self.source.map.rfind, part, start, end)

    def index(self, part: "Any", start: int = 0, end: "int | None" = None) -> "Any":
        at = self.find(part, start, end)
        if at < 0:
            raise ValueError("substring not found")
        return at

    def _find(self, how: "Any", part: "Any", start: int, end: "int | None") -> "Any":
        begin, stop, _ = slice(start, end).indices(len(self))
        data = str(part).encode("utf-8", "surrogateescape")
        at = how(data, self.source.byte_at(begin), self.source.byte_at(stop))
        return -1 if at < 0 else self.source.char_at(at)

    def count(self, part: "Any", start: int = 0, end: "int | None" = None) -> "Any":
        begin, stop, _ = slice(start, end).indices(len(self))
        at, stop = self.source.byte_at(begin), self.source.byte_at(stop)
        data = str(part).encode("utf-8", "surrogateescape")
        if not data:
            return len(self) + 1
        count = 0
        while (at := self.source.map.find(data, at, stop)) >= 0:
            count += 1
            at += len(data)
        return count

    def startswith(self, part: "Any") -> "Any":
        data = str(part).encode()
        return self.source.map[: len(data)] == data

    def endswith(self, part: "Any") -> "Any":
        data = str(part).encode()
        return not data or self.source.map[max(0, self.source.bytes - len(data)) :] == data

    def findall(self, pattern: "Any", flags: int = 0) -> "Any":
        return [texts(match) for match in self.finditer(pattern, flags)]

    def finditer(self, pattern: "Any", flags: int = 0) -> "Any":
        """Matches of a regular expression over the bytes of the source: groups are bytes, `.` is one byte."""
        return as_bytes(pattern, flags).finditer(self.source.map)

    def __getattr__(self, name: str) -> None:
        if not name.startswith("_") and hasattr(str, name):
            raise AttributeError(f"SOURCE is too large for .{name}(); use it on a part: str(SOURCE[a:b]).{name}()")
        raise AttributeError(name)


class Lines:
    """The lines of a large source, as a sequence that holds none of them."""

    def __init__(self, big: BigSource) -> None:
        self._big = big

    def __len__(self) -> int:
        return self._big.line_count

    def __iter__(self) -> "Any":
        return self._big.lines()

    def __getitem__(self, key: "Any") -> "Any":
        if isinstance(key, slice):
            start, end, step = key.indices(len(self))
            return list(self._big.lines(start, max(start, end)))[::step]
        number = key + len(self) if key < 0 else key
        if not 0 <= number < len(self):
            raise IndexError("line out of range")
        return next(self._big.lines(number, number + 1))


def as_bytes(pattern: "Any", flags: int = 0) -> "Any":
    """A regular expression for bytes."""
    if isinstance(pattern, re.Pattern):
        flags, pattern = flags | pattern.flags & ~re.UNICODE, pattern.pattern
    return re.compile(pattern if isinstance(pattern, bytes) else str(pattern).encode(), flags)


def texts(match: "Any") -> "Any":
    groups = [decoded(group) if group is not None else "" for group in match.groups()]
    return decoded(match[0]) if not groups else groups[0] if len(groups) == 1 else tuple(groups)
