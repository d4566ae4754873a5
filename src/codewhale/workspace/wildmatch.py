"""One ignore pattern as git reads it (wildmatch over bytes), in time that never explodes.

Stars that are tried once each do within a name; between folders the places that can be reached are kept as a set.
"""

import re
from functools import cached_property

from codewhale.lib.globs import covers

_SPECIAL = re.compile(rb"[*?\[\\]")
_SLASH, _STAR, _END = ord("/"), ord("*"), 0
_LONGEST = 4096  # bytes of the longest path there is; a pattern that wants more matches none
# What git's own tables, which know ASCII alone, hold to be of a class.
_ALPHA = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGIT = frozenset(b"0123456789")
_GRAPH = frozenset(range(0x21, 0x7F))
_CLASSES = {
    b"alnum": _ALPHA | _DIGIT,
    b"alpha": _ALPHA,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset((*range(0x20), 0x7F)),
    b"digit": _DIGIT,
    b"graph": _GRAPH,
    b"lower": frozenset(b"abcdefghijklmnopqrstuvwxyz"),
    b"print": _GRAPH | {0x20},
    b"punct": _GRAPH - _ALPHA - _DIGIT,
    b"space": frozenset(b" \t\n\r"),
    b"upper": frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}


def literal_length(pattern: bytes) -> int:
    """How many bytes at the start of a pattern stand for themselves."""
    special = _SPECIAL.search(pattern)
    return len(pattern) if special is None else special.start()


class Wild:
    """A compiled pattern: what a path must begin with, and the steps after that. Raises ValueError for a pattern that
    matches nothing."""

    def __init__(self, pattern: bytes, prefix: int = 0) -> None:
        self._prefix = pattern[:prefix]
        self._sources = _steps(pattern[prefix:])
        self._least = len(self._sources) - self._sources.count(None)

    @cached_property
    def _parts(self) -> list[re.Pattern[bytes] | None]:
        # At the first question: of thousands of rules few are ever asked.
        return [None if source is None else re.compile(source, re.DOTALL) for source in self._sources]

    def matches(self, text: bytes) -> bool:
        """Whether the pattern matches all of `text`, a path without a slash at its ends."""
        if not text.startswith(self._prefix):
            return False
        steps = text[len(self._prefix) :].split(b"/")
        return len(steps) >= self._least and covers(self._parts, steps, whole=True)


def _steps(pattern: bytes) -> list[bytes | None]:
    """An expression for each step of a pattern, None for any number of steps."""
    parts: list[bytes | None] = []
    pieces: list[bytes] = [b""]  # what stands between the stars of the step being read
    index = singles = 0
    pattern += b"\0"
    while pattern[index] != _END:
        if pattern[index] != _STAR:
            source, index = _single(pattern, index)
            singles += 1
            if singles > _LONGEST:
                raise ValueError("it wants more than the longest path")
            if source == b"/":
                parts.append(_name(pieces))
                pieces = [b""]
            else:
                pieces[-1] += source
            continue
        begin, index = index, _past_stars(pattern, index)
        wide = index - begin > 1 and (begin == 0 or pattern[begin - 1] == _SLASH)
        if wide and pattern[index] == _END:
            return [*parts, None, b""]
        slash = _slash_length(pattern, index) if wide else 0
        index += slash
        if not slash:
            pieces.append(b"")
        elif slash == 2:  # an escaped slash: one step at least
            parts += [b"", None]
        elif not parts or parts[-1] is not None:
            parts.append(None)
    return [*parts, _name(pieces)]


def _slash_length(pattern: bytes, index: int) -> int:
    return 1 if pattern[index] == _SLASH else 2 * (pattern[index : index + 2] == b"\\/")


def _past_stars(pattern: bytes, index: int) -> int:
    while pattern[index] == _STAR:
        index += 1
    return index


def _single(pattern: bytes, index: int) -> tuple[bytes, int]:
    """What matches one byte, as an expression ("/" for a slash), and where the pattern, ending in NUL, goes on."""
    char = pattern[index : index + 1]
    if char == b"?":
        return b".", index + 1
    if char == b"[":
        chars, index = _set(pattern, index)
        return _class(chars), index
    if char == b"\\":
        index += 1
        char = pattern[index : index + 1]
        if char == b"\0":
            raise ValueError("nothing follows the last backslash")
    return (char if char == b"/" else re.escape(char)), index + 1


def _set(pattern: bytes, index: int) -> tuple[set[int], int]:
    """The bytes of the set that begins at `index`, and where the pattern goes on behind it."""
    index += 1
    negated = pattern[index] in b"!^"
    index += negated
    chars: set[int] = set()
    former = 0
    char = pattern[index]
    while True:
        if char == _END:
            raise ValueError("a set is not closed")
        former, index = _member(pattern, index, former, chars)
        index += 1
        char = pattern[index]
        if char == ord("]"):
            break
    return (set(range(1, 256)) - chars if negated else chars) - {_SLASH}, index + 1


def _member(pattern: bytes, index: int, former: int, chars: set[int]) -> tuple[int, int]:
    """Read one member of a set into `chars`: the byte a range could begin with (0 for none), and its last place."""
    char = pattern[index]
    if char == ord("-") and former and pattern[index + 1] not in b"]\0":
        last, index = _escaped(pattern, index + 1)
        chars.update(range(former, last + 1))
        return 0, index
    if pattern[index : index + 2] == b"[:":
        end = pattern.find(b"]", index + 2)
        if end < 0:
            raise ValueError("a set is not closed")
        if end > index + 2 and pattern[end - 1] == ord(":"):
            chars.update(_CLASSES.get(pattern[index + 2 : end - 1]) or _unknown())
            return 0, end
    char, index = _escaped(pattern, index)
    chars.add(char)
    return char, index


def _unknown() -> frozenset[int]:
    raise ValueError("there is no such class")


def _escaped(pattern: bytes, index: int) -> tuple[int, int]:
    if pattern[index] == ord("\\"):
        index += 1
    if pattern[index] == _END:
        raise ValueError("a set is not closed")
    return pattern[index], index


def _class(chars: set[int]) -> bytes:
    if not chars:
        raise ValueError("a set holds nothing")
    ranges: list[list[int]] = []
    for char in sorted(chars):
        if ranges and ranges[-1][1] == char - 1:
            ranges[-1][1] = char
        else:
            ranges.append([char, char])
    return b"[" + b"".join(b"\\x%02x-\\x%02x" % (low, high) for low, high in ranges) + b"]"


def _name(pieces: list[bytes]) -> bytes:
    """A step as an expression in which each star but the last is tried once: the first fit is always good enough."""
    first, *rest = pieces
    between = b"".join(b"(?>.*?%s)" % piece for piece in rest[:-1] if piece)
    return first + (between + b".*" + rest[-1] if rest else b"") + rb"\Z"
