"""Copies of workspaces."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from codewhale.workspace import walk
from codewhale.workspace.walk import WorkspaceTooLargeError, copy_workspace


def test_a_copy_holds_what_git_does_not_ignore_and_the_repository(tmp_path: Path) -> None:
    root, target = tmp_path / "root", tmp_path / "target"
    (root / "sub").mkdir(parents=True)
    target.mkdir()
    (root / "sub" / "a.txt").write_text("a")
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("x")
    os.symlink("sub/a.txt", root / "link")
    os.symlink("/etc/hostname", root / "out")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / ".git" / "hooks").mkdir(exist_ok=True)
    (root / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\n")
    assert asyncio.run(copy_workspace(str(root), str(target))) > 3
    assert (target / "sub" / "a.txt").read_text() == "a"
    assert os.readlink(target / "link") == "sub/a.txt"
    assert os.readlink(target / "out") == "/etc/hostname"
    assert not (target / "x.log").exists()
    assert not (target / ".git" / "hooks").exists()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=target, capture_output=True, check=True)
    assert b"sub/" in status.stdout


def test_bounds(tmp_path: Path) -> None:
    root, target = tmp_path / "root", tmp_path / "target"
    root.mkdir()
    target.mkdir()
    with (root / "sparse").open("wb") as file:
        file.truncate(walk.COPIED_BYTES + 1)
    with pytest.raises(WorkspaceTooLargeError, match="1024 MiB"):
        asyncio.run(copy_workspace(str(root), str(target)))
    assert list(target.iterdir()) == []
