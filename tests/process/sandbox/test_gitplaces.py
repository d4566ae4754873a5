"""What steers git at one place, told from what every repository has."""

from pathlib import Path

import pytest

from codewhale.process.sandbox.gitfiles import arms_of, existing_arms, harmless
from support.repos import make_repo, raw_git


def whats(place: Path, root: Path) -> list[str]:
    return [arm.what for arm in arms_of(str(place), str(root))]


def test_what_git_makes_itself_is_nothing(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a": "a\n"})
    raw_git(repo, "worktree", "add", "-q", "tree")
    raw_git(tmp_path, "clone", "-q", "repo", "copy")
    raw_git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "copy"), "lib")
    for place in ("repo/.git", "repo/.git/worktrees/tree", "repo/tree/.git", "copy/.git", "repo/lib/.git"):
        assert whats(tmp_path / place, tmp_path) == [], place


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("config", "[core]\n fsmonitor = x\n", "core.fsmonitor"), ("config.worktree", "[alias]\n a = !b", "alias.a"),
        ("hooks/pre-commit", "x", "hook"), ("commondir", "../../other", "leads elsewhere"),
        ("info/attributes", "* filter=x", "attributes"),
        ("objects/info/alternates", "/elsewhere/objects", "objects of another repository"),
    ],
)  # fmt: skip
def test_each_arm_is_told(name: str, text: str, what: str, tmp_path: Path) -> None:
    git = make_repo(tmp_path / "repo", {"a": "a\n"}) / ".git"
    (git / name).parent.mkdir(parents=True, exist_ok=True)
    (git / name).write_text(text)
    assert whats(git, tmp_path) == [what] and str(git / name).startswith(tuple(existing_arms(str(git))))


def test_a_pointer_outside_counts_where_it_is_not_named_back(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a": "a\n"})
    raw_git(repo, "worktree", "add", "-q", str(tmp_path / "space" / "tree"))
    (tmp_path / "space" / "file").mkdir()
    (tmp_path / "space" / "file" / ".git").write_text(f"gitdir: {repo}/.git\n")
    assert whats(tmp_path / "space" / "tree" / ".git", tmp_path / "space") == []
    assert whats(tmp_path / "space" / "file" / ".git", tmp_path / "space") == ["leads elsewhere"]


def test_the_rest_of_a_configuration_stays(tmp_path: Path) -> None:
    text = b'[core]\n bare = false\n fsmonitor = x\n[remote "a\\"b"]\n url = "x;y"\n[alias]\n a = !b\n'
    (tmp_path / "config").write_bytes(harmless(text))
    told = raw_git(tmp_path, "config", "-l", "-f", "config").decode().splitlines()
    assert told == ["core.bare=false", 'remote.a"b.url=x;y'] and harmless(b"[broken") == b""
