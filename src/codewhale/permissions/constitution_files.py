"""Where the constitutions of a workspace lie. A start asks for them; what reads one is loaded where there is one."""

import os

from codewhale.process.repository import find_repository

CONSTITUTION_FILE = os.path.join(".codewhale", "constitution.json")


def constitution_files(workspace: str) -> list[tuple[str, str]]:
    """The constitutions that are there from the workspace up to the root of its repository, the nearest first, then
    those of the checkout that a linked worktree belongs to; each with where the workspace lies below its folder."""
    folder = os.path.realpath(workspace)
    repository = find_repository(folder, real=True)
    root = repository.root if repository is not None else folder  # real, as it is `folder` or above it
    roots = [root]
    if repository is not None and repository.common != repository.gitdir:
        common = os.path.realpath(repository.common)
        roots += [os.path.dirname(common)] if common != os.path.realpath(repository.gitdir) else []
    parts = [part for part in folder[len(root) :].split(os.sep) if part]
    files = [
        (os.path.join(top, *parts[:depth], CONSTITUTION_FILE), "/".join(parts[depth:]))
        for top in roots
        for depth in range(len(parts), -1, -1)
    ]
    return [(path, inside) for path, inside in files if os.path.lexists(path)]


def find_constitution(workspace: str) -> str:
    """The nearest one, "" where there is none."""
    return next((path for path, _ in constitution_files(workspace)), "")
