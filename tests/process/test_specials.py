"""Pipes and devices in the place of what git reads: it is told which, at once, and nothing waits on them."""

import os
from pathlib import Path

import pytest

from codewhale.process.repository import find_repository, refuse_specials
from codewhale.protocol.errors import ToolError
from codewhale.workspace.git import git
from support.patience import Moment
from support.repos import make_repo, raw_git

AT_ONCE = (
    ".git/config", ".git/HEAD", ".git/index", ".git/packed-refs", ".git/info/exclude", ".git/info/attributes",
    ".gitignore", ".gitattributes", ".git/config.worktree", ".gitmodules",
)  # fmt: skip
LATER = ("sub/.gitignore", "sub/.gitattributes", ".git/refs/heads/main")
READS = (("status",), ("ls-files", "-z", "--cached", "--others", "--exclude-standard"), ("log", "-1"), ("diff",))


def placed(repo: Path, name: str) -> Path:
    """A pipe in the place of a file."""
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("name", [*AT_ONCE, *LATER])
async def test_git_ends_and_the_pipe_is_named(name: str, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n", "sub/b.txt": "two\n"})
    path = placed(repo, name)
    for args in READS:
        began = Moment()
        try:
            assert not (await git(args, str(repo))).timed_out  # it has no need of that file
        except ToolError as error:
            assert str(path) in error.message or "not inside" in error.message
        assert not began.hung, args


@pytest.mark.parametrize("text", ["[include]\n path = ../pipe\n", "[include]\n path = more\n",
                                  "[core]\n excludesFile = pipe\n", "[core]\n attributesFile = {}/pipe\n"])  # fmt: skip
async def test_a_pipe_that_the_configuration_names_is_found(text: str, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    (repo / ".git" / "more").write_text("[include]\n path = ../pipe\n")
    with open(repo / ".git" / "config", "a") as file:
        file.write(text.format(repo))
    path = placed(repo, "pipe")
    with pytest.raises(ToolError, match="wait for it forever") as refused:
        await git(("status",), str(repo))
    assert str(path) in refused.value.message.replace(".git/../", "")


async def test_ordinary_repositories_have_none(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\n"})
    raw_git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    placed(repo, "pipe")
    for place in (repo, tmp_path / "tree"):
        found = find_repository(str(place))
        assert found is not None
        await refuse_specials(found)
        assert (await git(("status",), str(place))).exit_code == 0
