"""`codewhale trust`: what a project may say, looked at, trusted as it is, and no longer trusted."""

import os
from collections.abc import Iterable, Sequence

from msgspec import Struct

from codewhale.permissions.trust import PROJECT_FILES, ProjectFile, TrustStore
from codewhale.protocol.errors import ConfigError
from codewhale.skills.rule_folders import rule_paths


class TrustRow(Struct, frozen=True):
    """A row of a listing. `state` is trusted, changed, new, or gone for a trusted file that is no longer there; `at` is
    when it was trusted, "" for never; `changed` names what it uses that is not as it was."""

    path: str
    state: str
    sha256: str
    at: str
    changed: tuple[str, ...] = ()


def listed(home: str, workspace: str, every: bool = False) -> list[TrustRow]:
    """The project files of a workspace and how they stand; with `every` also what is trusted elsewhere. Raises
    ConfigError."""
    store = TrustStore(home)
    rows = store.all()
    found = [
        TrustRow(item.path, item.state, item.sha256, rows[item.path].at if item.path in rows else "", item.changed)
        for item in store.survey(workspace, rule_paths(workspace))
    ]
    if every:
        seen = {row.path for row in found}
        folders = sorted({_folder(path) for path in rows if path not in seen})
        for folder in folders:
            found += [row for row in listed(home, folder) if row.path not in seen]
        seen = {row.path for row in found}
        found += [TrustRow(path, "gone", row.sha256, row.at) for path, row in rows.items() if path not in seen]
    return sorted(found, key=lambda row: row.path)


def waiting(home: str, workspace: str, names: Sequence[str]) -> list[ProjectFile]:
    """The project files that may be trusted anew: the named ones, all without names. Raises ConfigError for a name that
    is no project file, and for one that cannot be trusted."""
    found = {item.path: item for item in TrustStore(home).survey(workspace, rule_paths(workspace))}
    if not names:
        return [item for item in found.values() if item.state != "trusted"]
    return [_one(found, workspace, name) for name in names]


def trust(home: str, items: Iterable[ProjectFile]) -> None:
    """Trust files as they were surveyed. Raises ConfigError."""
    store = TrustStore(home)
    for item in items:
        store.add(item)


def forget(home: str, workspace: str, names: Sequence[str]) -> list[str]:
    """No longer trust the named files, without names all of a workspace's; those that were trusted. Raises
    ConfigError."""
    store, root = TrustStore(home), os.path.realpath(workspace)
    paths = [os.path.join(root, name) for name in (names or PROJECT_FILES)]
    return [path for path in dict.fromkeys(paths) if store.remove(os.path.normpath(path))]


def _one(found: dict[str, ProjectFile], workspace: str, name: str) -> ProjectFile:
    item = found.get(os.path.normpath(os.path.join(os.path.realpath(workspace), name)))
    if item is None:
        there = ", ".join(found) or f"none; possible are {', '.join(PROJECT_FILES)}"
        raise ConfigError(f"{name} is not a project file that can be trusted; this workspace has {there}")
    return item


def _folder(path: str) -> str:
    return os.path.dirname(os.path.dirname(path))
