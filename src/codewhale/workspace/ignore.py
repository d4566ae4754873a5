"""Ignore rules read from a tree itself, for folders that no git repository speaks for.

Separate from the walker: it decides about one path, the walker decides where to go. Names are compared as bytes, in
git's way, and what a hostile rule file may cost is bounded in bytes, rules and time.
"""

import os
import stat
from collections.abc import Callable, Iterator

from codewhale.workspace.wildmatch import Wild, literal_length

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
        self._wild: list[tuple[int, bool, bool, Wild]] = []  # (number, for folders, matches the name alone, pattern)

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
                self._wild.append((number, folders, by_name, Wild(pattern, 0 if by_name else plain)))
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


class Rules:
    """The rules in force in one folder: its own, those of the folders above it, and the person's global ones. They
    give up once the time is `spent`."""

    def __init__(self, layers: tuple[_Layer, ...] = (), spent: Callable[[], bool] = lambda: False) -> None:
        self._layers = layers
        self._spent = spent

    @classmethod
    def personal(cls, spent: Callable[[], bool] = lambda: False) -> "Rules":
        """The person's global rules alone ($XDG_CONFIG_HOME/git/ignore)."""
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
        return cls((), spent).adding("", _read(os.path.join(base, "git", "ignore"), _OPEN & ~os.O_NOFOLLOW))

    def entering(self, folder: str, fd: int, names: set[str]) -> "Rules":
        """The rules inside `folder` (path from the walk's root, "" for the root itself), open as `fd` and holding
        `names`."""
        rules = self
        for name in RULE_FILES:
            if name in names:
                rules = rules.adding(folder, _read(name, _OPEN, fd))
        return rules

    def adding(self, folder: str, data: bytes) -> "Rules":
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
        return Rules((*self._layers, layer), self._spent) if len(layer) else self

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
