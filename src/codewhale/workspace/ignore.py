"""One ignore pattern as git reads it (wildmatch over bytes), in time that never explodes.

Stars that are tried once each do within a name; between folders the places that can be reached are kept as a set.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
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


class WildPattern:
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


RULE_FILES = (".gitignore", ".ignore")  # the later one wins
_LARGEST = 1 << 20
_MOST_RULES = 20_000  # in force at once
_CHECK = 64  # rules between two looks at the time
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Layer:
    """The rules of one file: `base` is the folder it stands in ("" or ending in a slash). Plain ones are looked up;
    of all that match, the last of the file decides."""

    def __init__(self, base: bytes) -> None:
        self.base = base
        self._verdicts: list[bool] = []
        self._names: dict[bytes, tuple[int, int]] = {}  # the last rule for anything, the last for folders alone
        self._paths: dict[bytes, tuple[int, int]] = {}
        self._endings: dict[int, dict[bytes, tuple[int, int]]] = {}
        self._wild: list[tuple[int, bool, bool, WildPattern]] = []  # (number, of folders, by name, pattern)

    def __len__(self) -> int:
        return len(self._verdicts)

    def add(self, line: bytes) -> None:
        """One line; one that is no rule, or matches nothing, is passed over."""
        verdict = not line.startswith(b"!")
        pattern = line.removeprefix(b"!")
        folders = pattern.endswith(b"/")
        pattern = pattern.removesuffix(b"/")
        by_name = b"/" not in pattern
        plain = literal_length(pattern)
        number = len(self._verdicts)
        if not by_name and pattern.startswith(b"/"):
            pattern, plain = pattern[1:], plain - 1
        if not pattern:
            return
        if plain == len(pattern):
            _put(self._names if by_name else self._paths, pattern, number, folders)
        elif by_name and pattern.startswith(b"*") and literal_length(pattern[1:]) == len(pattern) - 1:
            _put(self._endings.setdefault(len(pattern) - 1, {}), pattern[1:], number, folders)
        else:
            try:
                self._wild.append((number, folders, by_name, WildPattern(pattern, 0 if by_name else plain)))
            except ValueError:
                return
        self._verdicts.append(verdict)

    def verdict(self, inner: bytes, is_dir: bool, spent: Callable[[], bool]) -> bool | None:
        """Whether the file ignores a path from its folder, None where it says nothing. Raises TimeoutError."""
        name = inner.rpartition(b"/")[2]
        last = max(_last(self._names, name, is_dir), _last(self._paths, inner, is_dir))
        for length, endings in self._endings.items():
            if length <= len(name):
                last = max(last, _last(endings, name[len(name) - length :], is_dir))
        for count, (number, folders, by_name, wild) in enumerate(reversed(self._wild), 1):
            if number < last:
                break
            if count % _CHECK == 0:
                _go_on(spent)
            if (is_dir or not folders) and wild.matches(name if by_name else inner):
                last = number
                break
        return self._verdicts[last] if last >= 0 else None


class IgnoreRules:
    """The rules in force in one folder: its own, those of the folders above it, and the person's global ones. They
    give up once the time is `spent`."""

    def __init__(self, layers: tuple[_Layer, ...] = (), spent: Callable[[], bool] = lambda: False) -> None:
        self._layers = layers
        self._spent = spent

    @classmethod
    def personal(cls, spent: Callable[[], bool] = lambda: False) -> "IgnoreRules":
        """The person's global rules alone ($XDG_CONFIG_HOME/git/ignore)."""
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
        return cls((), spent).adding("", _read(os.path.join(base, "git", "ignore"), _OPEN & ~os.O_NOFOLLOW))

    def entering(self, folder: str, fd: int, names: set[str]) -> "IgnoreRules":
        """The rules inside `folder` (path from the walk's root, "" for the root itself), open as `fd` and holding
        `names`."""
        rules = self
        for name in RULE_FILES:
            if name in names:
                rules = rules.adding(folder, _read(name, _OPEN, fd))
        return rules

    def adding(self, folder: str, data: bytes) -> "IgnoreRules":
        """These rules and those of a rule file in `folder`. Lines that cannot be understood are passed over, and so
        is what goes beyond the bounds. Raises TimeoutError."""
        layer = _Layer(_bytes(folder) + b"/" if folder else b"")
        room = _MOST_RULES - sum(map(len, self._layers))
        for count, line in enumerate(_lines(data[:_LARGEST]), 1):
            if len(layer) >= room:
                break
            if count % _CHECK == 0:
                _go_on(self._spent)
            layer.add(line)
        return IgnoreRules((*self._layers, layer), self._spent) if len(layer) else self

    def ignores(self, path: str, is_dir: bool) -> bool:
        """Whether `path` (from the walk's root) is ignored by itself; its folder must not be. Raises TimeoutError."""
        subject = _bytes(path)
        for layer in reversed(self._layers):
            verdict = layer.verdict(subject[len(layer.base) :], is_dir, self._spent)
            if verdict is not None:
                return verdict
        return False


def rules_in(fd: int) -> bytes:
    """The lines of the rule file open as `fd` up to 1 MiB, b"" for what is no regular file. Closes `fd`."""
    with open(fd, "rb") as file:
        try:
            data = file.read(_LARGEST + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
        except OSError:
            return b""
    return data if len(data) <= _LARGEST else data[: data.rfind(b"\n", 0, _LARGEST) + 1]


def _read(path: str, flags: int, folder: int | None = None) -> bytes:
    try:
        fd = os.open(path, flags, dir_fd=folder)
    except OSError:
        return b""
    return rules_in(fd)


def _go_on(spent: Callable[[], bool]) -> None:
    if spent():
        raise TimeoutError("the ignore rules take too long to apply")


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _lines(data: bytes) -> Iterator[bytes]:
    """The rules as git cuts them out: a NUL ends a line, blanks at its end count when they are escaped."""
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        rule = line.removesuffix(b"\r").partition(b"\0")[0]
        if rule and not line.startswith(b"#"):
            yield _without_blanks(rule)


def _without_blanks(line: bytes) -> bytes:
    short = line.rstrip(b" ")
    slashes = len(short) - len(short.rstrip(b"\\"))
    return short + b" " if slashes % 2 and len(short) < len(line) else short


def _put(table: dict[bytes, tuple[int, int]], key: bytes, number: int, folders: bool) -> None:
    anything, of_folders = table.get(key, (-1, -1))
    table[key] = (anything, number) if folders else (number, of_folders)


def _last(table: dict[bytes, tuple[int, int]], key: bytes, is_dir: bool) -> int:
    anything, of_folders = table.get(key, (-1, -1))
    return max(anything, of_folders) if is_dir else anything


# What tools leave behind for themselves: nobody's work.
CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})
FOLDERS = ("target", "node_modules", ".git", "DerivedData", "dist", "build")
ENDINGS = (".lock", ".plist")
EXCLUDES = (*FOLDERS, *(f"*{ending}" for ending in ENDINGS))
# Left out of the index besides, as grep_files does: they hold text, but nobody's.
UNREAD_FOLDERS = ("__pycache__", ".venv", "venv")
UNREAD_ENDINGS = (".min.js", ".min.css", ".map")


def is_unread(path: str) -> bool:
    """Whether the index leaves out a file by its name. Folders are the walker's affair (`unread_folders`)."""
    return path.endswith(ENDINGS + UNREAD_ENDINGS)


def unread_folders() -> frozenset[str]:
    return frozenset(FOLDERS + UNREAD_FOLDERS)
