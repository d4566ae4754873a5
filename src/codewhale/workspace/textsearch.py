"""Searching the text of files line by line.

One engine decides what matches, so that a result never depends on what is installed. ripgrep, where it is found, only
says which files are worth looking into; patterns that it might read differently never reach it. A pattern that may
take long, or much memory, is tried by this module run as a program, which can be ended.
"""

import asyncio
import codecs
import os
import re
import stat
import string
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.lib.patterns import is_tame
from codewhale.process.confinement import held_where_possible
from codewhale.process.isolated import IsolatedWork
from codewhale.process.launch import Completed, Launch, run

LARGEST_FILE = 10 << 20
LINE_LIMIT = 500
_SAMPLE = 8192
_WORTH_RG = 150  # files from which a second process pays
_RG_SHARE = 0.5  # of the time: some files never end for it, and without it the rest is searched all the same
_ARGUMENTS = 400_000  # bytes of file names for one process
_MOST_CROSSINGS = 32
_CHECK_LINES = 2000
_ESCAPES = frozenset("dDwWsSbntrf" + string.punctuation) - frozenset("<>")
_FILE = os.O_RDONLY | os.O_NONBLOCK
_UNREAD = re.compile(rb"\(os error \d+\)$")
_PATIENCE = 1.0  # seconds of work one search of one text may take
_GRACE = 3.0  # seconds by which a process may be late before it is ended

Hit = tuple[int, int, int]  # number of a line, its offset in the text, offset of the match in the line


class PatternError(ValueError):
    """A pattern that is no regular expression; `position` counts characters from 0."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class PatternTooSlow(Exception):
    """A pattern that one file's text makes run on and on; the text of the exception is the file's path, "" where that
    is not known."""


class TextQuery(Struct, frozen=True):
    """What to look for: `context` lines are told before and after, `limit` matching lines at most."""

    pattern: str
    ignore_case: bool = False
    context: int = 2
    limit: int = 100


class LineMatch(Struct, frozen=True):
    """A matching line, numbered from 1, without its line end; long ones are cut around the match."""

    file: str
    line_number: int
    line: str
    context_before: list[str]
    context_after: list[str]


class TextMatches(Struct, frozen=True):
    """The first matches by path and line. `total` counts every matching line seen, `searched` the files read as text;
    `complete` is False when the time ran out before the last file."""

    matches: list[LineMatch]
    total: int
    searched: int
    complete: bool


def compile_pattern(query: TextQuery) -> Any:
    """The pattern as a `regex.Pattern`. Raises PatternError."""
    import regex  # type: ignore[import-untyped]

    flags = regex.MULTILINE | (regex.IGNORECASE if query.ignore_case else 0)
    try:
        return regex.compile(query.pattern, flags)
    except regex.error as error:
        raise PatternError(error.msg, min(error.pos or 0, len(query.pattern)))
    except (RecursionError, OverflowError, MemoryError):
        raise PatternError("nested too deep or too large", 0)


def portable(pattern: str) -> str | None:
    """The pattern for ripgrep, a line end before $ allowed for, when every engine reads it alike and a line that
    matches it alone also does within its text; else None."""
    index, in_set, quantified = (4 if pattern.startswith("(?i)") else 0), False, False
    pieces = [pattern[:index]]
    while index < len(pattern):
        char, rest = pattern[index], pattern[index + 1 :]
        step = 1
        if char == "\\":
            if not rest or rest[0] not in _ESCAPES or (in_set and rest[0] == "b"):
                return None
            step = 2
        elif in_set:
            if char == "[" or (char in "&-~|" and rest[:1] == char):
                return None
            in_set = char != "]"
        elif char == "[":
            in_set = True
            step += len(rest) - len(rest.removeprefix("^").removeprefix("]"))
        elif char == "{":
            step = _repeat_length(pattern[index:])
            if step == 0:
                return None
        elif _differs(char, rest, quantified):
            return None
        quantified = not in_set and char in "*+?{"
        pieces.append(r"(?:\r?$)" if char == "$" and not in_set else pattern[index : index + step])
        index += step
    return None if in_set else "".join(pieces)


def _differs(char: str, rest: str, quantified: bool) -> bool:
    """Whether a character outside sets begins what engines read differently: special groups, possessive repeats."""
    return (char == "(" and rest[:1] == "?" and rest[:2] != "?:") or (char == "+" and quantified) or char in "\n\r"


def _repeat_length(text: str) -> int:
    """The length of the {n}, {n,} or {n,m} that `text` begins with, else 0."""
    inside, closing, _ = text[1:].partition("}")
    low, comma, high = inside.partition(",")
    good = closing and low.isascii() and low.isdigit() and (not high or (high.isascii() and high.isdigit()))
    return len(inside) + 2 if good and len(low) < 4 and len(high) < 4 and (comma or not high) else 0


async def search(root: str, files: Sequence[str], query: TextQuery, *, seconds: float, rg: str | None) -> TextMatches:
    """Search `files` (paths beneath `root`), in their order. Binary files, files over 10 MiB and links are passed over.

    `rg` is the path of ripgrep or None. Raises PatternError, PatternTooSlow.
    """
    if not is_tame(query.pattern, ignore_case=query.ignore_case):
        return await _search_isolated(_SearchRequest(root, list(files), query, seconds))
    scan = _Scan(Root(root), query, seconds)
    try:
        if rg is None or len(files) < _WORTH_RG or scan.portable is None:
            return await asyncio.to_thread(scan.all, files)
        # Of a file that is named to it ripgrep reads gigabytes: it gets those alone that a search would read.
        sampled = await asyncio.to_thread(scan.sampled, files)
        hits = await _files_with((rg, scan.portable), root, list(sampled), query.ignore_case, _RG_SHARE * seconds)
        if hits is None:
            return await asyncio.to_thread(scan.all, files)
        promising = [file for file in files if file in hits or sampled.get(file) is False]
        matches = await asyncio.to_thread(scan.all, promising)
        return TextMatches(matches.matches, matches.total, len(sampled.keys() | scan.read), matches.complete)
    finally:
        scan.stop()


class _SearchRequest(Struct):
    root: str
    files: list[str]
    query: TextQuery
    seconds: float


class _SearchAnswer(Struct):
    """What that process says: what it found, or which fault it met and where."""

    found: TextMatches | None = None
    fault: str = ""
    position: int = -1


async def _search_isolated(order: _SearchRequest) -> TextMatches:
    work = IsolatedWork(__name__, msgspec.json.encode(order), (), order.root, order.seconds + _GRACE, 64 << 20)
    done = await work.do()
    if done.exit_code != 0 or done.timed_out or done.stdout_gap >= 0:
        raise PatternTooSlow("")
    answer = msgspec.json.decode(done.stdout, type=_SearchAnswer)
    if answer.found is not None:
        return answer.found
    raise PatternTooSlow(answer.fault) if answer.position < 0 else PatternError(answer.fault, answer.position)


def _answer(order: _SearchRequest) -> _SearchAnswer:
    try:
        return _SearchAnswer(_Scan(Root(order.root), order.query, order.seconds).all(order.files))
    except PatternError as error:
        return _SearchAnswer(fault=error.reason, position=error.position)
    except PatternTooSlow as slow:
        return _SearchAnswer(fault=str(slow))


async def _files_with(
    rg: tuple[str, str], root: str, files: Sequence[str], ignore_case: bool, seconds: float
) -> set[str] | None:
    """The files in which ripgrep (its path, the pattern) finds a match, or None when it cannot tell."""
    options = ("--no-config", "--files-with-matches", "--null", "--text")
    case = "--ignore-case" if ignore_case else "--case-sensitive"
    until = time.monotonic() + seconds
    profile = await held_where_possible("read-only")
    hits: set[str] = set()
    for chunk in _chunks(files):
        argv = (rg[0], *options, case, "-e", rg[1], "--", *chunk)
        left = max(0.1, until - time.monotonic())
        try:
            done = await run(
                Launch(argv, root, profile, seconds=left, supervised=False, own=True, output_limit=64 << 20)
            )
        except OSError:
            return None
        if done.stdout_gap >= 0 or not (done.exit_code in (0, 1) or _only_unread(done)):
            return None
        hits.update(os.fsdecode(done.stdout).split("\0"))
    return hits


def _only_unread(done: Completed) -> bool:
    """Whether ripgrep ended badly for files alone that cannot be read, which holds for whoever looks into them next."""
    lines = done.stderr.splitlines() if done.exit_code == 2 and done.stderr_gap < 0 else []
    return bool(lines) and all(_UNREAD.search(line) for line in lines)


def _chunks(files: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for file in files:
        chunk.append(file)
        size += len(file.encode()) + 9
        if size > _ARGUMENTS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


class _Scan:
    """One search: what is found so far, and the bounds that end it. Runs in a thread."""

    def __init__(self, root: Root, query: TextQuery, seconds: float) -> None:
        self._root = root
        self._query = query
        self._deadline = time.monotonic() + seconds
        self._stop = threading.Event()
        self._pattern = compile_pattern(query)
        self._matches: list[LineMatch] = []
        self._total = 0
        self._complete = True
        self.portable = portable(query.pattern)
        self.read: set[str] = set()

    def stop(self) -> None:
        self._stop.set()

    def all(self, files: Sequence[str]) -> TextMatches:
        for file in files:
            if self._spent():
                break
            text = self._text(file)
            if text is not None:
                self.read.add(file)
                self._search(file, text)
        return TextMatches(self._matches, self._total, len(self.read), self._complete)

    def sampled(self, files: Sequence[str]) -> dict[str, bool]:
        """Those of `files` that a search would read (regular, not too large, not binary by their first 8 KiB), each
        with whether that part is UTF-8: ripgrep reads no character where there is none."""
        readable: dict[str, bool] = {}
        top = os.open(self._root.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for file in files:
                if self._spent():
                    break
                sample = _sample(top, file)
                if sample is not None and b"\0" not in sample:
                    readable[file] = sample.isascii() or _is_utf8(sample)
        finally:
            os.close(top)
        return readable

    def _spent(self) -> bool:
        if self._stop.is_set() or time.monotonic() > self._deadline:
            self._complete = False
        return not self._complete

    def _text(self, file: str) -> str | None:
        """The file's text with plain line ends; None for what is not searched."""
        try:
            fd = self._root.open(file, _FILE, links=False)
        except (OSError, PathRefused):
            return None
        data = read_regular(fd, LARGEST_FILE)
        if data is None or b"\0" in data[:_SAMPLE]:
            return None
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").replace("\r\n", "\n")

    def _search(self, file: str, text: str) -> None:
        try:
            for hit in self._hits(text) if self.portable is not None else self._by_line(text, 1, 0):
                self._total += 1
                if len(self._matches) < self._query.limit:
                    self._matches.append(_match(file, text, hit, self._query.context))
        except (TimeoutError, MemoryError):
            if not self._spent():
                raise PatternTooSlow(file)

    def _hits(self, text: str) -> Iterator[Hit]:
        """The matching lines of a text, looked for in the whole of it; line by line once that goes badly."""
        number, start, crossings = 1, 0, 0
        while start < len(text):
            try:
                hit = self._pattern.search(text, start, timeout=self._left(), concurrent=True)
            except TimeoutError:
                crossings, hit = _MOST_CROSSINGS, None
            if crossings >= _MOST_CROSSINGS:
                yield from self._by_line(text, number, start)
                return
            line = -1 if hit is None else text.rfind("\n", 0, hit.start()) + 1
            if hit is None or line >= len(text):
                return
            number += text.count("\n", start, line)
            start, end = line, _line_end(text, line)
            if hit.end() <= end:
                yield number, line, hit.start() - line
            else:  # it goes on into the next line: does this one match by itself?
                crossings += 1
                hit = self._pattern.search(text[line:end], timeout=self._left(), concurrent=True)
                if hit is not None:
                    yield number, line, hit.start()
            number, start = number + 1, end + 1

    def _by_line(self, text: str, number: int, start: int) -> Iterator[Hit]:
        """The same, every line for itself, from line `number` on, which begins at `start`."""
        lines = text[start:].removesuffix("\n").split("\n") if start < len(text) else []
        for count, line in enumerate(lines):
            if count % _CHECK_LINES == 0 and self._spent():
                return
            hit = self._pattern.search(line, timeout=self._left(), concurrent=True)
            if hit is not None:
                yield number + count, start, hit.start()
            start += len(line) + 1

    def _left(self) -> float:
        return min(_PATIENCE, max(0.01, self._deadline - time.monotonic()))


def _sample(top: int, file: str) -> bytes | None:
    try:
        fd = os.open(file, _FILE | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        small = stat.S_ISREG(info.st_mode) and info.st_size <= LARGEST_FILE
        return os.read(fd, _SAMPLE) if small else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _is_utf8(sample: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _match(file: str, text: str, hit: Hit, context: int) -> LineMatch:
    number, start, column = hit
    end = _line_end(text, start)
    before: list[str] = []
    above = start
    while above > 0 and len(before) < context:
        begin = text.rfind("\n", 0, above - 1) + 1
        before.insert(0, cut(text[begin : above - 1], 0))
        above = begin
    after: list[str] = []
    below = end + 1
    while below < len(text) and len(after) < context:
        stop = _line_end(text, below)
        after.append(cut(text[below:stop], 0))
        below = stop + 1
    return LineMatch(file, number, cut(text[start:end], column), before, after)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def cut(line: str, column: int) -> str:
    """At most 500 characters of a line, those around offset `column`, with marks that tell how many are left out."""
    if len(line) <= LINE_LIMIT:
        return line
    start = 0 if column < LINE_LIMIT - 100 else min(column - 100, len(line) - LINE_LIMIT)
    end = start + LINE_LIMIT
    before = f"[{start} characters left out] … " if start else ""
    after = f" … [{len(line) - end} characters left out]" if end < len(line) else ""
    return before + line[start:end] + after


def escaped(text: str) -> str:
    import regex

    return str(regex.escape(text, special_only=True))


if __name__ == "__main__":
    sys.stdout.buffer.write(
        msgspec.json.encode(_answer(msgspec.json.decode(sys.stdin.buffer.read(), type=_SearchRequest)))
    )
