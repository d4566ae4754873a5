"""What held commands leave in a workspace for a person's plain git, under each mechanism that this machine has."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.process.confinement import BUBBLEWRAP, CHOICE, LANDLOCK, sandbox
from codewhale.process.launch import Launch, run, start
from support.plantings import lay_repositories, line, person_looks
from support.repos import raw_git
from support.running import eventually

# One of each kind; `make escapes` tries all of them, as root and as an ordinary user.
SOME = (
    "a new repository as a gitlink", "a worktree's commondir", "a submodule's .git file", "a submodule's commondir",
    "a nested repository's settings", "a nested repository's hooks", "a link to a repository", "a bare repository",
    "a nested repository moved and replaced", "a folder closed to its owner", "a new entry among worktrees",
    "settings that are included", "hooks taken from a folder", "time put back",
)  # fmt: skip


@pytest.fixture(params=[BUBBLEWRAP, LANDLOCK])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each mechanism, where it is to be had."""
    monkeypatch.setenv(CHOICE, request.param)
    sandbox.cache_clear()
    if sandbox().mechanism != request.param:
        pytest.skip(f"{request.param} holds nothing on this machine")
    yield request.param
    sandbox.cache_clear()


def held(name: str, workspace: Path, mark: Path, profile: str = "workspace-write") -> Launch:
    """A planting as a command."""
    return Launch(("/bin/bash", "-c", line(name, workspace, mark)), str(workspace), profile=profile, seconds=60)


@pytest.mark.parametrize("name", SOME, ids=lambda name: name.replace(" ", "-"))
async def test_a7_nothing_that_a_command_leaves_makes_plain_git_run_things(
    name: str, mechanism: str, tmp_path: Path
) -> None:
    workspace, mark = tmp_path / "workspace", tmp_path / "PWNED"
    lay_repositories(workspace)
    done = await run(held(name, workspace, mark))
    assert done.confined == mechanism
    assert person_looks(workspace, mark) == "", (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("name", SOME[::3], ids=lambda name: name.replace(" ", "-"))
async def test_each_of_them_works_where_nothing_holds_it(name: str, tmp_path: Path) -> None:
    workspace, mark = tmp_path / "workspace", tmp_path / "PWNED"
    lay_repositories(workspace)
    await run(held(name, workspace, mark, "none"))
    assert person_looks(workspace, mark)


async def test_what_was_left_is_set_aside_and_said(mechanism: str, tmp_path: Path) -> None:
    workspace, mark = tmp_path / "workspace", tmp_path / "PWNED"
    (workspace / "sub").mkdir(parents=True)
    text = "cd sub; git init -q new; git -C new config user.name Me; git -C new config core.fsmonitor x; echo done"
    files = "mkdir -p new/.git/objects new/.git/refs; echo 'ref: refs/heads/main' > new/.git/HEAD; printf "
    files += "'[user]\\n name = Me\\n[core]\\n fsmonitor = x\\n' > new/.git/config; echo done"
    text = f"cd sub; {files}" if mechanism == LANDLOCK else text
    done = await run(Launch(("/bin/bash", "-c", text), str(workspace), profile="workspace-write"))
    assert done.exit_code == 0 and done.stdout == b"done\n"
    assert b"sub/new/.git/config (core.fsmonitor): moved to config.set-aside" in done.stderr
    git = workspace / "sub" / "new" / ".git"
    assert "fsmonitor" in (git / "config.set-aside").read_text() and "fsmonitor" not in (git / "config").read_text()
    assert (
        raw_git(workspace / "sub" / "new", "config", "user.name", check=False).strip() == b"Test" and not mark.exists()
    )


async def test_what_a_long_command_leaves_does_not_wait_for_its_end(mechanism: str, tmp_path: Path) -> None:
    (tmp_path / "workspace" / "sub").mkdir(parents=True)
    workspace, heard = tmp_path / "workspace", bytearray()
    text = "cd sub; mkdir -p n/.git/objects n/.git/refs; echo 'ref: x' > n/.git/HEAD; echo '[alias] x=!y' "
    text += "> n/.git/config; read x"
    child = await start(
        Launch(("/bin/bash", "-c", text), str(workspace), profile="workspace-write", keep_stdin=True),
        lambda stream, data: heard.extend(data),
    )
    try:
        await eventually(lambda: b"alias.x" in heard)
        assert (workspace / "sub" / "n" / ".git" / "config.set-aside").exists() and child.pid
    finally:
        await child.kill()


async def test_ordinary_work_with_repositories_goes_on(tmp_path: Path) -> None:
    if sandbox().mechanism != BUBBLEWRAP:
        pytest.skip("only bubblewrap lets git work at the top of the workspace")
    workspace = tmp_path / "workspace"
    lay_repositories(workspace)
    text = """set -e
        who='-c user.name=a -c user.email=a@b'
        git init -q new; echo a > new/a; git -C new add a; git -C new $who commit -qm x; git -C new config user.name Me
        git clone -q new cloned; git clone -q --bare new b.git; mv new moved; git -C moved log --oneline
        git worktree add -q second; git -C second $who commit -q --allow-empty -m y; git worktree remove second
        git -C dep $who commit -q --allow-empty -m z; git -C lib status --short; git add -A; echo done"""
    done = await run(Launch(("/bin/bash", "-c", text), str(workspace), profile="workspace-write", seconds=60))
    assert done.stdout.endswith(b"done\n") and b"codewhale:" not in done.stderr, done.stderr


async def test_b7_a_home_folder_that_is_the_workspace_keeps_its_names(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for folder in (".ssh", "project", "bin"):
        (home / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    names = (".ssh/authorized_keys", ".bash_login", ".config/autostart/x", ".netrc", ".gitconfig", ".profile", "bin/ls",
             ".unheard-of", ".local/bin/ls", ".pam_environment", ".vimrc", "Library/x", ".project/x")  # fmt: skip
    text = "; ".join(f"mkdir -p $(dirname {name}); echo x > {name}; mv project/x {name}" for name in names)
    for space in (home, tmp_path):
        await run(Launch(("/bin/sh", "-c", f"cd {home}; {text}"), str(space), profile="workspace-write"))
        assert [name for name in names if (home / name).exists()] == []
    done = await run(Launch(("/bin/sh", "-c", "echo x > project/x"), str(home), profile="workspace-write"))
    assert (home / "project" / "x").exists() == (mechanism == BUBBLEWRAP), done.stderr
