"""Which workspaces are the same, with real repositories."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from codewhale.memory.places import NAME, GitAccess, Places, normalised, workspace_folder
from codewhale.memory.service import Memory
from codewhale.process.repository import config_entries, find_repository
from codewhale.workspace.git import first_commits
from support.patience import HANG

REMOTE = "https://example.org/o/project.git"


def git(folder: Path, *args: str) -> str:
    words = ("git", "-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always", *args)
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, timeout=HANG).stdout.strip()


def repository(path: Path, remote: str = REMOTE, words: str = "Begin") -> Path:
    path.mkdir()
    git(path, "init", "-q", "--template=", "-b", "main")
    git(path, "commit", "-q", "--allow-empty", "-m", words)
    if remote:
        git(path, "remote", "add", "origin", remote)
    return path


class Asked:
    """Git, and how often it was asked."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, path: str) -> tuple[str, ...]:
        self.paths.append(path)
        return first_commits(path)


def facts(tmp_path: Path, asked: Asked | None = None) -> Memory:
    """As a new process has them."""
    git = GitAccess(find_repository, config_entries, asked or Asked())
    places = Places(str(tmp_path / "home" / "memory"), git)
    return Memory(str(tmp_path / "home"), places.folder, placing=places.remember)


def texts(tmp_path: Path, workspace: Path) -> list[str]:
    return [fact.text for fact in facts(tmp_path).facts(str(workspace))]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository in which a fact was stored."""
    path = repository(tmp_path / "project")
    facts(tmp_path).add(str(path), "port 5433", "workspace")
    return path


@pytest.mark.parametrize(
    "url",
    [
        "git@Example.ORG:o/project.git",
        "ssh://git@example.org:2222/o/project/",
        "https://me:s3cret@example.org//o/project",
    ],
)
def test_a_clone_has_the_memory_of_its_repository(tmp_path: Path, project: Path, url: str) -> None:
    git(tmp_path, "clone", "-q", str(project), "clone")
    git(tmp_path / "clone", "commit", "-q", "--allow-empty", "-m", "More")
    assert texts(tmp_path, tmp_path / "clone") == ["port 5433"]
    git(tmp_path / "clone", "remote", "set-url", "origin", url)
    assert texts(tmp_path, tmp_path / "clone") == ["port 5433"]
    assert "s3cret" not in "".join(path.read_text() for path in (tmp_path / "home").rglob(NAME))


def test_a_worktree_a_folder_below_and_a_link_have_it_too(tmp_path: Path, project: Path) -> None:
    git(project, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "tree"))
    (project / "src").mkdir()
    (tmp_path / "link").symlink_to(project)
    for workspace in (tmp_path / "tree", project / "src", tmp_path / "link", tmp_path / "link" / "src"):
        assert texts(tmp_path, workspace) == ["port 5433"]


@pytest.mark.parametrize("other", ["fork", "unrelated", "no remote"])
def test_another_remote_or_another_beginning_is_another_workspace(tmp_path: Path, project: Path, other: str) -> None:
    path = tmp_path / "other"
    if other == "unrelated":
        repository(path, words="Another beginning")
    else:
        git(tmp_path, "clone", "-q", str(project), "other")
        git(path, "remote", "remove", "origin")
    if other == "fork":
        git(path, "remote", "add", "origin", "https://example.org/me/project.git")
    assert texts(tmp_path, path) == []
    facts(tmp_path).add(str(path), "its own", "workspace")
    assert texts(tmp_path, path) == ["its own"] and texts(tmp_path, project) == ["port 5433"]


def test_a_path_as_remote_leads_to_the_remote_of_that_repository(tmp_path: Path) -> None:
    upstream = repository(tmp_path / "up", remote="")
    git(tmp_path, "clone", "-q", "--bare", "up", "bare.git")
    git(tmp_path, "clone", "-q", "bare.git", "one")
    facts(tmp_path).add(str(upstream), "tabs", "workspace")
    git(tmp_path / "one", "remote", "set-url", "origin", "../bare.git")
    assert texts(tmp_path, tmp_path / "one") == ["tabs"]
    git(tmp_path / "one", "remote", "set-url", "origin", f"file://{tmp_path}/gone.git")
    assert texts(tmp_path, tmp_path / "one") == ["tabs"]


def test_a_shallow_clone_is_known_by_its_remote_alone_where_one_has_it(tmp_path: Path, project: Path) -> None:
    git(project, "commit", "-q", "--allow-empty", "-m", "Second")
    for name in ("shallow", "another"):
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", name)
        git(tmp_path / name, "remote", "set-url", "origin", REMOTE)
    assert texts(tmp_path, tmp_path / "shallow") == ["port 5433"]
    facts(tmp_path).add(str(repository(tmp_path / "rewritten", words="Anew")), "of the new history", "workspace")
    assert texts(tmp_path, tmp_path / "shallow") == ["port 5433"], "it was seen before"
    assert texts(tmp_path, tmp_path / "another") == []


def test_a_full_clone_takes_over_from_a_shallow_one(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    git(project, "commit", "-q", "--allow-empty", "-m", "Second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", "shallow")
    git(tmp_path / "shallow", "remote", "set-url", "origin", REMOTE)
    facts(tmp_path).add(str(tmp_path / "shallow"), "port 5433", "workspace")
    assert texts(tmp_path, project) == ["port 5433"]
    (record,) = (tmp_path / "home").rglob(NAME)
    assert json.loads(record.read_text())["commit"] == git(project, "rev-list", "--max-parents=0", "HEAD")


def test_a_folder_that_becomes_a_repository_keeps_its_memory(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    facts(tmp_path).add(str(folder), "tabs", "workspace")
    git(folder, "init", "-q", "--template=")
    assert texts(tmp_path, folder) == ["tabs"]
    git(folder, "commit", "-q", "--allow-empty", "-m", "Begin")
    git(folder, "remote", "add", "origin", REMOTE)
    facts(tmp_path).add(str(folder), "spaces", "workspace")
    git(tmp_path, "clone", "-q", str(folder), "clone")
    assert texts(tmp_path, tmp_path / "clone") == ["tabs", "spaces"]


def test_folders_without_a_repository_are_known_by_their_real_path(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        facts(tmp_path).add(str(tmp_path / name), name, "workspace")
    (tmp_path / "link").symlink_to("one")
    assert texts(tmp_path, tmp_path / "link") == ["one"]
    assert workspace_folder(str(tmp_path / "link")) == workspace_folder(str(tmp_path / "one"))


def test_another_repository_at_a_known_path_is_another_workspace(tmp_path: Path, project: Path) -> None:
    project.rename(tmp_path / "moved")
    repository(tmp_path / "project", remote="https://example.org/o/other")
    assert texts(tmp_path, tmp_path / "project") == [] and texts(tmp_path, tmp_path / "moved") == ["port 5433"]


def test_git_is_asked_only_where_a_repository_may_be_a_known_one(tmp_path: Path) -> None:
    one, other = repository(tmp_path / "one"), repository(tmp_path / "other", remote="https://example.org/o/other")
    asked = Asked()
    memory = facts(tmp_path, asked)
    assert memory.facts(str(one)) == () and asked.paths == []
    memory.add(str(one), "port 5433", "workspace")
    assert asked.paths == [str(one)]
    memory.add(str(one), "tabs", "workspace")
    assert len(facts(tmp_path, asked).facts(str(one))) == 2 and facts(tmp_path, asked).facts(str(other)) == ()
    assert asked.paths == [str(one)]
    git(tmp_path, "clone", "-q", str(one), "clone")
    memory = facts(tmp_path, asked)
    assert [len(memory.facts(str(tmp_path / "clone"))) for _ in range(3)] == [2, 2, 2]
    assert len(facts(tmp_path, asked).facts(str(tmp_path / "clone"))) == 2
    assert asked.paths == [str(one), str(tmp_path / "clone")]


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"paths": 1}', b"\xff", b"{" * 5000, b"x" * 100_000])
def test_a_damaged_record_loses_no_facts(tmp_path: Path, project: Path, damage: bytes) -> None:
    (record,) = (tmp_path / "home").rglob(NAME)
    record.write_bytes(damage)
    assert texts(tmp_path, project) == ["port 5433"]
    assert list(json.loads(record.read_text())["paths"]) == [str(project)]


def test_a_path_that_is_no_text_can_be_remembered(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/w\xff"
    os.mkdir(folder)
    facts(tmp_path).add(os.fsdecode(folder), "tabs", "workspace")
    assert texts(tmp_path, Path(os.fsdecode(folder))) == ["tabs"]


def test_only_so_many_paths_are_remembered(tmp_path: Path, project: Path) -> None:
    for number in range(25):
        git(project, "worktree", "add", "-q", "--detach", str(tmp_path / f"tree{number}"))
        assert texts(tmp_path, tmp_path / f"tree{number}") == ["port 5433"]
    (record,) = (tmp_path / "home").rglob(NAME)
    assert list(json.loads(record.read_text())["paths"]) == [str(tmp_path / f"tree{number}") for number in range(5, 25)]


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("https://GitHub.com/o/r.git/", "github.com/o/r"),
        ("git@github.com:o/r", "github.com/o/r"),
        ("github.com:/o//r.git", "github.com/o/r"),
        ("ssh://git@github.com:22/o/r.git?x=1#f", "github.com/o/r"),
        ("git://github.com./o/r", "github.com/o/r"),
        ("https://token@h/o/a%20b", "h/o/a b"),
        ("https://u:p%40ss@[::1]:8080/r.git", "::1/r"),
        ("me@[::1]:r.git", "::1/r"),
        ("https://host/", ""),
        ("https://[bad/x", ""),
        ("/srv/r.git", ""),
        ("../r", ""),
        ("file:///srv/r.git", ""),
        ("C:/r", ""),
        ("ext::sh -c touch% x", ""),
        ("", ""),
    ],
)
def test_an_address_is_the_same_however_it_is_written(url: str, remote: str) -> None:
    assert normalised(url) == remote
