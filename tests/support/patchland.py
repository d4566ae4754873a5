"""Folders of files for patch tests: written, read back, diffed and patched by real git."""

import os
import subprocess
from pathlib import Path

from codewhale.process.artifacts import ArtifactStore
from codewhale.workspace.files import Workspace
from support.suites import suites

SUITES = suites()

Tree = dict[str, bytes]


def write_tree(root: Path, tree: Tree) -> None:
    """Make the files beneath `root`."""
    for name, data in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read_tree(root: Path) -> Tree:
    """Every regular file beneath `root` but git's own."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def workspace(root: Path, store: Path) -> Workspace:
    """A workspace whose former contents go to `store`."""
    root.mkdir(parents=True, exist_ok=True)
    return Workspace(str(root), ArtifactStore(str(store)))


def git(folder: Path, *args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git with no configuration but its own defaults."""
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }  # fmt: skip
    return subprocess.run(["git", *args], cwd=folder, input=stdin, capture_output=True, env=env, check=False)
