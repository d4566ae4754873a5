"""`codewhale trust`: what a project may say, looked at, trusted as it is, and no longer trusted."""

import os
from collections.abc import Iterable, Sequence

from msgspec import Struct

from codewhale.permissions.trust import PROJECT_FILES, ProjectFile, TrustStore
from codewhale.process.sandbox.profiles import beneath
from codewhale.protocol.errors import ConfigError
from codewhale.skills.places import project_texts


class TrustRow(Struct, frozen=True):
    """A row of a listing. `state` is trusted, changed, new, or gone for a trusted file that is no longer there; `at` is
    when it was trusted, "" for never; `changed` names what it uses that is not as it was, `problem` why it cannot be
    trusted."""

    path: str
    state: str
    sha256: str
    at: str
    changed: tuple[str, ...] = ()
    problem: str = ""


def listed(home: str, workspace: str, every: bool = False) -> list[TrustRow]:
    """The project files of a workspace and how they stand; with `every` also what is trusted elsewhere. Raises
    ConfigError."""
    store = TrustStore(home)
    rows = store.all()
    found = {item.path: item for item in store.survey(workspace, project_texts(workspace))}
    elsewhere = [path for path in rows if every and path not in found]
    found |= {path: item for path in elsewhere if (item := store.standing(path)) is not None}
    listing = [
        TrustRow(path, item.state, item.sha256, rows[path].at if path in rows else "", item.changed, item.problem)
        for path, item in found.items()
    ]
    listing += [TrustRow(path, "gone", rows[path].sha256, rows[path].at) for path in elsewhere if path not in found]
    return sorted(listing, key=lambda row: row.path)


def waiting(home: str, workspace: str, names: Sequence[str]) -> list[ProjectFile]:
    """The project files that may be trusted anew: the named ones, all without names. Raises ConfigError for a name that
    is no project file, and for one that cannot be trusted."""
    found = {item.path: item for item in TrustStore(home).survey(workspace, project_texts(workspace))}
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
    paths = [os.path.join(root, name) for name in names or (path for path in store.all() if beneath(path, root))]
    return [path for path in dict.fromkeys(paths) if store.remove(os.path.normpath(path))]


def _one(found: dict[str, ProjectFile], workspace: str, name: str) -> ProjectFile:
    item = found.get(os.path.normpath(os.path.join(os.path.realpath(workspace), name)))
    if item is None:
        there = ", ".join(found) or f"none; possible are {', '.join(PROJECT_FILES)}"
        raise ConfigError(f"{name} is not a project file that can be trusted; this workspace has {there}")
    return item
