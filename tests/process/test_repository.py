"""Repositories are found from plain files, and what only looks like one is passed over."""

import os
from pathlib import Path

import pytest

from codewhale.process.repository import find_repository, find_root, read_head, read_small
from support.repos import make_repo, raw_git


def test_a_folder_that_only_looks_like_a_repository_is_passed_over(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"sub/a.txt": "a\n"})
    (repo / "sub" / ".git").mkdir()
    assert find_root(str(repo / "sub")) == str(repo)
    (repo / "sub" / ".git").rmdir()
    (repo / "sub" / ".git").write_text("gitdir: /nonexistent\n")
    assert find_root(str(repo / "sub")) == str(repo)
    os.remove(repo / "sub" / ".git")
    os.mkfifo(repo / "sub" / ".git")
    assert find_root(str(repo / "sub")) == str(repo)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_repository_another_user_planted_above_is_passed_over(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "shared", {"mine/a.txt": "a\n"})
    os.chown(repo / ".git", 12345, 12345)
    assert find_root(str(repo / "mine")) is None
    assert find_repository(str(repo)) is not None


def test_head_is_read_without_git(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": ""})
    raw_git(repo, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "tree"))
    for folder, head in ((repo, "main"), (tmp_path / "tree", "topic")):
        found = find_repository(str(folder))
        assert found is not None and read_head(found) == head and found.common == str(repo / ".git")
    found = find_repository(str(repo))
    assert found is not None
    for odd in ("ref: refs/heads/.invalid", "", "nonsense"):
        (repo / ".git" / "HEAD").write_text(odd)
        assert read_head(found) is None


def test_only_small_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * ((1 << 20) + 1))
    (tmp_path / "small").write_bytes(b"x")
    assert [read_small(str(tmp_path / name)) for name in ("pipe", "large", "small", "absent")] == [
        None,
        None,
        b"x",
        None,
    ]
    assert read_small("/dev/zero") is None and read_small(str(tmp_path)) is None
