"""constitution.json: what a project lays down for itself. Read are schema_version and protected_invariants, of those
the ones with paths: `{"text", "paths": [PATTERN, ...], "action": "ask" | "block"}`; a text alone holds nothing by
itself. Other fields are for people and later versions."""

import os
from typing import Any

import msgspec

from codewhale.lib.bounded import check_nesting
from codewhale.process.repository import find_repository
from codewhale.protocol.decisions import Rule
from codewhale.protocol.errors import ConfigError

CONSTITUTION_FILE = os.path.join(".codewhale", "constitution.json")
MAX_BYTES = 256 << 10
MOST_ROWS, MOST_PATHS, MOST_TEXT = 500, 200, 500
_ACTIONS = {"ask": "ask", "block": "deny"}


def find_constitution(workspace: str) -> str:
    """The nearest one from the workspace up to the root of its repository, "" where there is none."""
    folder = os.path.realpath(workspace)
    found = find_repository(folder)
    root = os.path.realpath(found.root) if found is not None else folder
    while True:
        path = os.path.join(folder, CONSTITUTION_FILE)
        if os.path.lexists(path):
            return path
        if folder == root or os.path.dirname(folder) == folder:
            return ""
        folder = os.path.dirname(folder)


def folder_of(path: str) -> str:
    """The folder that a constitution is for."""
    return os.path.dirname(os.path.dirname(path))


def parse_constitution(path: str, data: bytes) -> tuple[Rule, ...]:
    """The rows that hold something: one for each pattern, numbered by their invariant from 1. Raises ConfigError naming
    file and field."""
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES} bytes; a constitution is not")
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
