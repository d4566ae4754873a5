"""Ignore rules read from a tree itself, for folders that no git repository speaks for.

Separate from the walker: it decides about one path, the walker decides where to go.
"""

import os
import stat
from typing import TYPE_CHECKING, Any

from codewhale.system.repository import read_small

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RULE_FILES = (".gitignore", ".ignore")  # the later one wins
_LARGEST = 1 << 20


class Rules:
    """The rules in force in one folder: its own, those of the folders above it, and the person's global ones."""

    def __init__(self, layers: "tuple[tuple[str, GitIgnoreSpec], ...]" = ()) -> None:
        self._layers = layers

    @classmethod
    def personal(cls) -> "Rules":
        """The person's global rules alone ($XDG_CONFIG_HOME/git/ignore)."""
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
        data = read_small(os.path.join(base, "git", "ignore"))
        return cls().adding("", data) if data else cls()

    def entering(self, folder: str, fd: int, names: "set[str]") -> "Rules":
        """The rules inside `folder` (path from the walk's root, "" for the root itself), open as `fd` and holding
        `names`."""
        rules = self
        for name in RULE_FILES:
            if name in names:
                data = _read(fd, name)
                rules = rules.adding(folder, data) if data else rules
        return rules

    def adding(self, folder: str, data: bytes) -> "Rules":
        """These rules and those of a rule file in `folder`. A file that cannot be understood adds none."""
        spec = _parsed(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").splitlines())
        return self if spec is None else Rules((*self._layers, (folder + "/" if folder else "", spec)))

    def ignores(self, path: str, is_dir: bool) -> bool:
        """Whether `path` (from the walk's root) is ignored, its folder not being so."""
        subject = path + "/" if is_dir else path
        for base, spec in reversed(self._layers):
            verdict = spec.check_file(subject[len(base) :]).include
            if verdict is not None:
                return verdict
        return False


def _parsed(lines: list[str]) -> "GitIgnoreSpec | None":
    from pathspec import GitIgnoreSpec

    good: list[Any] = []
    for line in lines:
        try:
            good.extend(GitIgnoreSpec.from_lines([line]).patterns)
        except ValueError:
            continue  # git passes over what it cannot parse as well
    good = [pattern for pattern in good if pattern.include is not None]
    return GitIgnoreSpec(good) if good else None


def _read(folder: int, name: str) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        return b""
    with os.fdopen(fd, "rb") as file:
        return file.read(_LARGEST) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
