"""A project's own law, constitution.json: rows that hold writing to paths, in every mode. It only makes calls narrower.

Read are schema_version and protected_invariants, of those the ones with paths: `{"text", "paths": [PATTERN, ...],
"action": "ask" | "block"}`. Other fields are for people and later versions.
"""

import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from codewhale.lib.bounded import check_nesting
from codewhale.permissions.paths import beneath, matches
from codewhale.permissions.rules import NO_RULES, RuleFacts, RuleSet, read_permissions
from codewhale.process.repository import find_repository
from codewhale.protocol.decisions import DecisionRequest, Opinion, Rule
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.tools import CommandSubject, PathSubject

_TARGET = re.compile(r"(?:>>?|>\||&>>?)\s*([^\s;|&<>()]+)")
# What takes a folder for all that is in it.
_WHOLE = frozenset("rm mv shred truncate chmod chown rsync git".split())


class Constitution:
    """The rows of one file. `folder` is where the workspace lies below the folder that the law is for, "" for there."""

    def __init__(self, rules: tuple[Rule, ...] = (), folder: str = "") -> None:
        self.rules = rules
        self._set = RuleSet(rules) if rules else NO_RULES
        self._folder = folder

    def opinion(self, request: DecisionRequest, view: RuleFacts) -> Opinion | None:
        """What the law says of a call: the strictest of the rows whose paths it would write; None for nothing. A
        command line that only reads writes nothing; of another one, the paths that stand in it count."""
        if not self.rules:
            return None
        written = tuple(one for one in request.subjects if isinstance(one, PathSubject) and one.write)
        opinions = []
        if written:
            seen = RuleFacts(view.analyse, lambda subject: [self._placed(path) for path in view.paths(subject)])
            opinions += self._set.opinions(replace(request, subjects=written), seen)
        for subject in request.subjects:
            if isinstance(subject, CommandSubject):
                opinions += self._command(subject, request, view)
        return min(opinions, key=lambda opinion: opinion.verdict != "deny", default=None)

    def _command(self, subject: CommandSubject, request: DecisionRequest, view: RuleFacts) -> Iterator[Opinion]:
        judged = view.analyse(subject)
        if judged.verdict == "allow":
            return
        where = posixpath.join(request.workspace or "/", subject.cwd)
        names = [(path, False) for path in _TARGET.findall(subject.command)]
        for command in judged.commands:
            whole = command.argv[:1] != () and command.argv[0] in _WHOLE
            names += [(word.rpartition("=")[2], whole) for word in command.argv[1:] if not word.startswith("-")]
        for name, whole in names:
            path = beneath(posixpath.join(where, name.strip("\"'")), request.workspace or "/")
            if path is not None:
                yield from (
                    Opinion(rule.action, rule.name, _reason(rule, path))  # type: ignore[arg-type]
                    for rule in self.rules
                    if matches(rule.path, self._placed(path)) or (whole and _holds(self._placed(path), rule.path))
                )

    def _placed(self, path: str) -> str:
        """A path below the workspace as the law names it."""
        return posixpath.normpath(posixpath.join(self._folder, path))


def _holds(folder: str, pattern: str) -> bool:
    fixed = re.split(r"[*?]", pattern.strip("/"), maxsplit=1)[0]
    return "/" in pattern.strip("/") and (folder == "." or fixed.startswith(folder.rstrip("/") + "/"))


def _reason(rule: Rule, path: str) -> str:
    return f"invariant {rule.row} of the project's constitution protects {path}" + (
        f": {rule.reason}" if rule.reason else "."
    )


CONSTITUTION_FILE = os.path.join(".codewhale", "constitution.json")
MAX_BYTES = 256 << 10
MOST_ROWS, MOST_PATHS, MOST_TEXT = 500, 200, 500
_ACTIONS = {"ask": "ask", "block": "deny"}


def find_constitution(workspace: str) -> str:
    """The nearest one from the workspace up to the root of its repository, "" where there is none."""
    folder = os.path.realpath(workspace)
    repository = find_repository(folder)
    root = os.path.realpath(repository.root) if repository is not None else folder
    while True:
        path = os.path.join(folder, CONSTITUTION_FILE)
        if os.path.lexists(path):
            return path
        if folder == root or os.path.dirname(folder) == folder:
            return ""
        folder = os.path.dirname(folder)


def read_constitution(workspace: str, trusts: Callable[[str, str], bool]) -> Constitution | None:
    """The law of a workspace, empty where there is none, None where it is not trusted as it is. Raises ConfigError for
    one that cannot be used."""
    path = find_constitution(workspace)
    data = read_permissions(path) if path else None
    if data is None:
        return Constitution()
    if not trusts(path, hashlib.sha256(data).hexdigest()):
        return None
    folder = os.path.relpath(os.path.realpath(workspace), os.path.dirname(os.path.dirname(path)))
    return Constitution(parse_constitution(path, data), "" if folder == "." else folder)


def parse_constitution(path: str, data: bytes) -> tuple[Rule, ...]:
    """The rows that hold something: one for each pattern, numbered by their invariant from 1. Raises ConfigError naming
    file and field."""
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES} bytes; a constitution cannot be so large")
    try:
        check_nesting(data)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    try:
        tree = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: must be a JSON object")
    if tree.get("schema_version", 1) != 1:
        raise ConfigError(f"{path}: schema_version: must be 1")
    rows = tree.get("protected_invariants", [])
    if not isinstance(rows, list) or len(rows) > MOST_ROWS:
        raise ConfigError(f"{path}: protected_invariants: must be a list of at most {MOST_ROWS}")
    return tuple(rule for number, row in enumerate(rows, 1) for rule in _rows(path, number, row))


def _rows(path: str, number: int, row: Any) -> list[Rule]:
    place = f"{path}: protected_invariants[{number}]"
    if isinstance(row, str):
        return []
    if not isinstance(row, dict):
        raise ConfigError(f"{place}: must be a text or an object")
    text, paths, action = row.get("text", ""), row.get("paths", []), row.get("action", "ask")
    if not isinstance(text, str):
        raise ConfigError(f"{place}.text: must be a text")
    if action not in _ACTIONS:
        raise ConfigError(f"{place}.action: must be one of {', '.join(_ACTIONS)}")
    if not isinstance(paths, list) or len(paths) > MOST_PATHS:
        raise ConfigError(f"{place}.paths: must be a list of at most {MOST_PATHS} patterns")
    for at, pattern in enumerate(paths, 1):
        if not isinstance(pattern, str) or not pattern.strip("/. ") or len(pattern) > MOST_TEXT or "\0" in pattern:
            raise ConfigError(f"{place}.paths[{at}]: must be a pattern such as src/generated/**")
    reason = " ".join(text.split())[:MOST_TEXT]
    return [
        Rule(_ACTIONS[action], path=pattern, reason=reason, source="constitution", row=number)  # type: ignore[arg-type]
        for pattern in paths
    ]
