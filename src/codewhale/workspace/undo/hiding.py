"""Which files were hidden by ignore rules before a call. One that a call brought to sight was somebody's all along, and
is not taken for one that the call made."""

import os
import time
from collections.abc import Callable, Iterable, Mapping

from codewhale.lib.beneath import PathRefused, Root
from codewhale.process.repository import find_repository
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.workspace.ignore import RULE_FILES, Rules, rules_in

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_SECONDS = 10.0


def is_rule_file(path: str) -> bool:
    """Whether a file holds ignore rules."""
    return os.path.basename(path) in RULE_FILES


def hidden(root: Root, paths: Iterable[str], former: Mapping[str, bytes]) -> set[str]:
    """Those of the paths that were ignored while the rule files in `former` held these bytes ("" for none)."""
    until = time.monotonic() + _SECONDS
    asked = tuple(paths)
    try:
        sight = _Sight(root, former, lambda: time.monotonic() > until)
        return {path for path in asked if sight.hides(path)}
    except TimeoutError:  # hostile rules: what may have been somebody's is left alone
        return set(asked)


class _Sight:
    """The rules as they were, folder by folder."""

    def __init__(self, root: Root, former: Mapping[str, bytes], spent: Callable[[], bool]) -> None:
        self._root = root
        self._former = former
        above = Rules.personal(spent)
        repository = find_repository(root.path)
        if repository is not None:
            data = read_small(os.path.join(repository.common, "info", "exclude"))
            above = above.adding("", data) if data else above
        self._rules = {"": self._entering("", above)}
        self._hidden = {"": False}

    def hides(self, path: str) -> bool:
        """Whether the rules hid a file."""
        folder = os.path.dirname(path)
        return self._hides_folder(folder) or self._rules[folder].ignores(path, False)

    def _hides_folder(self, folder: str) -> bool:
        if folder not in self._hidden:
            above = os.path.dirname(folder)
            self._hidden[folder] = self._hides_folder(above) or self._rules[above].ignores(folder, True)
            self._rules[folder] = self._entering(folder, self._rules[above])
        return self._hidden[folder]

    def _entering(self, folder: str, rules: Rules) -> Rules:
        for name in RULE_FILES:
            data = self._data(os.path.join(folder, name))
            rules = rules.adding(folder, data) if data else rules
        return rules

    def _data(self, path: str) -> bytes:
        if path in self._former:
            return self._former[path]
        try:
            return rules_in(self._root.open(path, _OPEN, links=False))
        except (PathRefused, OSError):
            return b""
