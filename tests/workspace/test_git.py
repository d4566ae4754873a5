"""The hardened git: nothing a repository says runs, whatever is asked of it."""

import os
from pathlib import Path

import pytest

from codewhale.process.programs import find_program
from codewhale.process.repository import find_root
from codewhale.protocol.errors import ToolError
from codewhale.workspace.git import git, head_ref
from support.patience import HANG
from support.repos import TRAPS, Trap, commit, lay, make_repo, raw_git

READS = (
    ("status", "--porcelain=v1", "--branch"),
    ("diff",),
    ("diff", "--cached"),
    ("diff-index", "-p", "HEAD"),
    ("diff-files", "-p"),
    ("log", "-3", "-p"),
    ("log", "--format=%G? %s"),
    ("show", "HEAD"),
    ("show", "HEAD:a.txt"),
    ("blame", "a.txt"),
    ("blame", "HEAD", "--", "a.txt"),
    ("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
    ("ls-files", "-m"),
    ("cat-file", "-p", "HEAD"),
    ("check-ignore", "a.txt"),
    ("hash-object", "a.txt"),
)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "PWNED"


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
async def test_no_setting_of_a_repository_runs_a_program(trap: Trap, tmp_path: Path, marker: Path) -> None:
    repo = lay(trap, tmp_path / "repo", marker)
    for args in READS:
        if "%G?" in " ".join(args):
            continue  # asks for signatures itself; see below
        (repo / "a.txt").touch()
        done = await git(args, str(repo), seconds=HANG)
        assert not marker.exists(), args
        assert not done.timed_out


@pytest.mark.parametrize("trap", [trap for trap in TRAPS if trap.falls], ids=lambda trap: trap.name)
def test_every_trap_works_on_plain_git(trap: Trap, tmp_path: Path, marker: Path) -> None:
    repo = lay(trap, tmp_path / "repo", marker)
    raw_git(repo, *trap.falls, check=False)
    assert marker.exists()


async def test_asking_for_signatures_runs_no_verifier_of_the_repository(tmp_path: Path, marker: Path) -> None:
    repo = lay(next(trap for trap in TRAPS if trap.name == "gpg"), tmp_path / "repo", marker)
    done = await git(("log", "-1", "--format=%G? %s"), str(repo))
    assert not marker.exists() and b"Begin" in done.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("diff", "--textconv"),
        ("diff", "--textcon"),
        ("diff", "--ext-diff"),
        ("log", "--output=/tmp/x"),
        ("log", "--outp=/tmp/x"),
        ("cat-file", "--filters", "HEAD:a.txt"),
        ("cat-file", "--fi", "HEAD:a.txt"),
        ("log", "--show-signature"),
        ("diff", "--no-index", "/etc/passwd", "/dev/null"),
        ("blame", "--contents=/etc/passwd", "a.txt"),
        ("blame", "--contents", "/etc/passwd", "a.txt"),
        ("ls-files", "--recurse-submodules"),
        ("-c", "alias.x=!id", "x"),
        ("--exec-path=/tmp", "status"),
        ("fetch", "--upload-pack=id", "."),
        ("config", "user.name", "x"),
        ("commit", "-m", "x"),
        ("st",),
        ("log", "a\0b"),
        (),
    ],
)
async def test_dangerous_words_are_refused(git_workspace: Path, args: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"git|NUL"):
        await git(args, str(git_workspace))


async def test_what_follows_the_end_of_options_is_never_an_option(git_workspace: Path) -> None:
    target = git_workspace / "out"
    done = await git(("show", "--end-of-options", f"--output={target}"), str(git_workspace))
    assert done.exit_code != 0 and not target.exists()


async def test_the_environment_names_no_program(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = lay(TRAPS[0], tmp_path / "repo", marker)
    payload = str(tmp_path / "payload")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND"):
        monkeypatch.setenv(name, payload)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.external")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", payload)
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    done = await git(("diff",), str(repo))
    assert done.exit_code == 0 and b"+TWO" in done.stdout and not marker.exists()


async def test_git_is_never_taken_from_the_workspace(
    tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = lay(TRAPS[0], tmp_path / "repo", marker)
    (repo / "git").write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    (repo / "git").chmod(0o755)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("PATH", ".:" + os.environ["PATH"])
    assert (await git(("status",), str(repo))).exit_code == 0
    assert not marker.exists()


async def test_without_git_it_says_so(git_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("git") is None
    with pytest.raises(ToolError) as raised:
        await git(("status",), str(git_workspace))
    assert raised.value.kind == "not_available" and "git" in raised.value.message


async def test_outside_a_repository_it_says_so(workspace: Path) -> None:
    with pytest.raises(ToolError) as raised:
        await git(("status",), str(workspace))
    assert raised.value.kind == "not_available"


async def test_a_work_tree_configured_elsewhere_is_not_looked_at(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    repo = make_repo(tmp_path / "repo", {"a.txt": "a\n"})
    raw_git(repo, "config", "core.worktree", str(outside))
    done = await git(("ls-files", "--others", "--cached"), str(repo))
    assert done.stdout == b"a.txt\n"


async def test_reading_leaves_the_repository_as_it_was(git_workspace: Path) -> None:
    os.utime(git_workspace / "README.md", (1, 1))
    before = {path: path.stat().st_mtime_ns for path in (git_workspace / ".git").rglob("*")}
    for args in (("status",), ("diff",), ("log",), ("show",)):
        await git(args, str(git_workspace))
    assert {path: path.stat().st_mtime_ns for path in (git_workspace / ".git").rglob("*")} == before


async def test_too_many_or_unnameable_filters_are_refused(git_workspace: Path) -> None:
    config = git_workspace / ".git" / "config"
    original = config.read_text()
    for extra in ('[filter "a=b"]\n\tclean = id\n', "".join(f'[filter "f{n}"]\n\tclean = id\n' for n in range(99))):
        config.write_text(original + extra)
        with pytest.raises(ToolError):
            await git(("status",), str(git_workspace))


async def test_a_config_that_is_no_file_does_not_hang(git_workspace: Path) -> None:
    config = git_workspace / ".git" / "config"
    config.unlink()
    os.mkfifo(config)
    with pytest.raises(ToolError):
        await git(("status",), str(git_workspace), seconds=1)


@pytest.mark.parametrize("how", ["file", "link", "commondir"])
async def test_a_git_file_that_names_anothers_repository_tells_nothing_of_it(how: str, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other", {"secret.txt": "hunter2\n"})
    space = make_repo(tmp_path / "space", {"a": "a\n"}) if how == "commondir" else tmp_path / "space"
    space.mkdir(exist_ok=True)
    if how == "file":
        (space / ".git").write_text(f"gitdir: {other}/.git\n")
    elif how == "link":
        (space / ".git").symlink_to(other / ".git")
    else:
        (space / ".git" / "commondir").write_text(f"{other}/.git\n")
    for args in (("log", "-p"), ("show", "HEAD:secret.txt"), ("diff",), ("status",)):
        with pytest.raises(ToolError, match="does not point back to it"):
            await git(args, str(space))
    assert await head_ref(str(space)) is None


async def test_work_trees_that_name_each_other_go_on(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"a": "a\n"})
    lib = make_repo(tmp_path / "lib", {"b": "b\n"})
    raw_git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(lib), "lib")
    raw_git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    raw_git(repo, "worktree", "add", "-q", str(repo / "inner"))
    for place in (repo, repo / "lib", tmp_path / "tree", repo / "inner"):
        assert (await git(("log", "-1"), str(place))).exit_code == 0


async def test_head_is_told_in_every_kind_of_work_tree(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"sub/a.txt": "a\n"})
    sha = raw_git(repo, "rev-parse", "HEAD").decode().strip()
    raw_git(repo, "worktree", "add", "-q", "-b", "other/topic", str(tmp_path / "tree"))
    assert await head_ref(str(repo)) == "main"
    assert await head_ref(str(repo / "sub")) == "main"
    assert await head_ref(str(tmp_path / "tree")) == "other/topic"
    raw_git(repo, "checkout", "-q", "--detach")
    assert await head_ref(str(repo)) == sha
    assert await head_ref(str(tmp_path)) is None
    assert find_root(str(tmp_path / "tree")) == str(tmp_path / "tree")
    status = await git(("status", "--short", "--branch"), str(tmp_path / "tree"))
    assert status.stdout.startswith(b"## other/topic")


async def test_names_come_as_they_are_and_cannot_reach_a_terminal(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"é\x1b[31m.txt": "a\n", "$(touch PWNED).txt": "b\n"})
    commit(repo, {"b.txt": "b"}, "Größe")
    done = await git(("ls-files",), str(repo))
    assert '"é\\033[31m.txt"'.encode() in done.stdout and b"\x1b" not in done.stdout
    assert "Größe".encode() in (await git(("log",), str(repo))).stdout
    assert not (repo / "PWNED").exists()
