"""Ignore rules read from a tree itself, for folders that no git repository speaks for.

Separate from the walker: it decides about one path, the walker decides where to go.
"""

import os
import re

from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.system.repository import read_small

RULE_FILES = (".gitignore", ".ignore")  # the later one wins
_LARGEST = 1 << 20
_FOLDER_MARK = "(?P<ps_d>/)"  # where the library lets a rule match by a folder above the path


class _Layer(Struct, frozen=True):
    """The rules of one file: the folder it stands in ("" or ending in a slash), and (ignores, pattern) in order."""

    base: str
    rules: tuple[tuple[bool, re.Pattern[str]], ...]


class Rules:
    """The rules in force in one folder: its own, those of the folders above it, and the person's global ones."""

    def __init__(self, layers: tuple[_Layer, ...] = ()) -> None:
        self._layers = layers

    @classmethod
    def personal(cls) -> "Rules":
        """The person's global rules alone ($XDG_CONFIG_HOME/git/ignore)."""
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
        data = read_small(os.path.join(base, "git", "ignore"))
        return cls().adding("", data) if data else cls()

    def entering(self, folder: str, fd: int, names: set[str]) -> "Rules":
        """The rules inside `folder` (path from the walk's root, "" for the root itself), open as `fd` and holding
        `names`."""
        rules = self
        for name in RULE_FILES:
            if name in names:
                data = _read(fd, name)
                rules = rules.adding(folder, data) if data else rules
        return rules

    def adding(self, folder: str, data: bytes) -> "Rules":
        """These rules and those of a rule file in `folder`. Lines that cannot be understood are passed over."""
        lines = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").split("\n")
        rules = tuple(rule for line in lines if (rule := _rule(line.removesuffix("\r"))) is not None)
        return Rules((*self._layers, _Layer(folder + "/" if folder else "", rules))) if rules else self

    def ignores(self, path: str, is_dir: bool) -> bool:
        """Whether `path` (from the walk's root) is ignored by itself; its folder must not be."""
        subject = path + "/" if is_dir else path
        for layer in reversed(self._layers):
            inner = subject[len(layer.base) :]
            for verdict, pattern in reversed(layer.rules):
                if pattern.search(inner):
                    return verdict
        return False


def _rule(line: str) -> tuple[bool, re.Pattern[str]] | None:
    """(whether it ignores, what it matches) of one line, None for a blank, a comment or what is no rule."""
    if not line.strip() or line.startswith("#"):
        return None
    from pathspec import GitIgnoreSpec

    try:
        (rule,) = GitIgnoreSpec.from_lines([_plain(line)]).patterns
        matcher: re.Pattern[str] | None = getattr(rule, "regex", None)
        if rule.include is None or matcher is None:
            return None
        return rule.include, re.compile(matcher.pattern.replace(_FOLDER_MARK, r"/\Z"))
    except (ValueError, re.error):
        return None


def _plain(line: str) -> str:
    """The same rule in words that the library and git read alike: all that is in a folder, not the folder itself."""
    line = line if line.endswith("\\ ") else line.rstrip(" ")
    return line + "/*" if line.endswith("/**") else line


def _read(folder: int, name: str) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        return b""
    return read_regular(fd, _LARGEST) or b""
