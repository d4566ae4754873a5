"""--worktree: a checkout of its own for a session, kept while it holds something, whoever is killed when."""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codewhale.app.checkouts import hold, worktrees
from codewhale.cli.offline.worktrees import finish, kept_for, open_worktree
from codewhale.protocol.errors import ConfigError, SessionBusyError
from support.machine import MAKES_FILES
from support.program import codewhale_program, scripted

KILLS = int(os.environ.get("CODEWHALE_KILLS", "10"))
DONE = json.dumps({"text": "Done."})


def wrote(path: str, text: str = "made\n") -> str:
    """A turn that writes a file."""
    return json.dumps({"calls": [{"name": "write_file", "arguments": {"path": path, "content": text}}]})


def git(folder: Path | str, *args: str) -> str:
    """What git says."""
    words = ("git", "-c", "user.name=T", "-c", "user.email=t@localhost", "-C", str(folder), *args)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def tree_of(folder: Path) -> dict[str, bytes]:
    """Every file of a checkout, and its HEAD."""
    tops = [path for path in folder.iterdir() if path.name != ".git"]
    files = [path for top in tops for path in (top, *top.rglob("*")) if path.is_file()]
    head = {"HEAD": git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD").encode()}
    return {str(path.relative_to(folder)): path.read_bytes() for path in files} | head


def test_a_run_with_changes_keeps_its_checkout_and_one_without_leaves_nothing(home: Path, git_workspace: Path) -> None:
    before = tree_of(git_workspace)
    scripted(home, wrote("new.txt"), DONE)
    done = codewhale_program(home, "exec", "-w", str(git_workspace), "--worktree", "topic", "Go")
    assert done.returncode == 0, done.stderr
    (tree,) = worktrees(str(home / "state"))
    assert (Path(tree.path) / "new.txt").read_text() == "made\n" and "kept (1 changed files)" in done.stderr
    assert tree_of(git_workspace) == before and git(tree.path, "branch", "--show-current") == "codewhale/topic"
    listed = codewhale_program(home, "worktree", "list")
    assert "topic" in listed.stdout and "1 changed files" in listed.stdout
    os.unlink(Path(tree.path) / "new.txt")
    scripted(home, DONE)
    again = codewhale_program(home, "exec", "-w", str(git_workspace), "--worktree", "topic", "Go")
    assert again.returncode == 0 and "topic removed" in again.stderr
    assert worktrees(str(home / "state")) == [] and not os.path.exists(tree.path)
    assert git(git_workspace, "branch", "--list", "codewhale/*") == ""
    assert git(git_workspace, "worktree", "list").count("\n") == 0


def test_without_a_name_each_run_has_one_of_its_own(home: Path, git_workspace: Path) -> None:
    (git_workspace / "sub").mkdir()
    (git_workspace / "sub" / "a").write_text("a")
    git(git_workspace, "add", "-A")
    git(git_workspace, "commit", "-q", "-m", "Sub")
    for number in range(2):
        scripted(home, wrote(f"{number}.txt"), DONE)
        done = codewhale_program(home, "exec", "-w", str(git_workspace / "sub"), "--worktree", "Do it")
        assert done.returncode == 0, done.stderr
    places = sorted(min(os.listdir(os.path.join(tree.path, "sub"))) for tree in worktrees(str(home / "state")))
    assert places == ["0.txt", "1.txt"]


@MAKES_FILES
def test_commands_work_and_commit_in_it(home: Path, git_workspace: Path) -> None:
    who = "-c user.name=T -c user.email=t@localhost"
    line = f"echo x > c.txt && git add -A && git {who} commit -qm Committed && cat $PWD/c.txt"
    scripted(home, json.dumps({"calls": [{"name": "exec_shell", "arguments": {"command": line}}]}), DONE)
    option = ("--auto", "--worktree=work", "--output-format", "json")
    done = codewhale_program(home, "exec", "-w", str(git_workspace), *option, "Go")
    assert json.loads(done.stdout)["tools"][0]["ok"], done.stdout
    assert git(git_workspace, "log", "--format=%s", "-1", "codewhale/work") == "Committed"
    assert "kept (1 commits that no other branch has)" in done.stderr


@pytest.mark.parametrize("name", ["../up", "a/b", "..", ".hidden", "-x", "a.lock", "x" * 65, "a b", "é"])
async def test_names_that_are_paths_or_options_are_refused(home: Path, git_workspace: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name"):
        await open_worktree(str(git_workspace), str(home), name)
    assert worktrees(str(home)) == []


async def test_no_repository_and_no_commit_are_said(home: Path, workspace: Path) -> None:
    with pytest.raises(ConfigError, match="not in a git repository"):
        await open_worktree(str(workspace), str(home))
    git(workspace, "init", "-q")
    with pytest.raises(ConfigError, match="no commit yet"):
        await open_worktree(str(workspace), str(home))


async def test_two_at_once_do_not_touch_each_other_or_the_main_checkout(home: Path, git_workspace: Path) -> None:
    before = tree_of(git_workspace)
    some = await asyncio.gather(*(open_worktree(str(git_workspace), str(home), name) for name in ("one", "two", "")))
    with pytest.raises(SessionBusyError, match="of worktree one is already open"):
        await open_worktree(str(git_workspace), str(home), "one")
    for number, held in enumerate(some):
        (Path(held.tree.path) / "README.md").write_text(f"{number}\n")
    git(some[0].tree.path, "commit", "-qam", "One")
    kept = [await finish(held) for held in some]
    assert kept == ["1 commits that no other branch has", "1 changed files", "1 changed files"]
    assert [(Path(held.tree.path) / "README.md").read_text() for held in some] == ["0\n", "1\n", "2\n"]
    assert tree_of(git_workspace) == before
    git(git_workspace, "merge", "-q", "codewhale/one")
    assert await finish(hold(some[0].tree)) == ""


async def test_what_holds_something_is_kept(home: Path, git_workspace: Path) -> None:
    (git_workspace / ".gitignore").write_text("*.log\n__pycache__/\n")
    git(git_workspace, "add", "-A")
    git(git_workspace, "commit", "-q", "-m", "Ignore")
    held = await open_worktree(str(git_workspace), str(home), "kept")
    place = Path(held.tree.path)
    (place / "__pycache__").mkdir()
    (place / "__pycache__" / "x.pyc").write_text("x")
    assert await kept_for(held.tree) == ""
    (place / "run.log").write_text("x")
    assert await kept_for(held.tree) == "1 files that git ignores"
    os.unlink(place / "run.log")
    git(place, "checkout", "-q", "--detach")
    assert "not on its branch" in await kept_for(held.tree)
    git(place, "checkout", "-q", "codewhale/kept")
    git(place, "commit", "-q", "--allow-empty", "-m", "Work")
    shutil.rmtree(place)
    assert await kept_for(held.tree) == "1 commits that no other branch has"
    assert await finish(held) and git(git_workspace, "branch", "--list", "codewhale/kept")


async def test_hooks_and_filters_of_the_repository_do_not_run(home: Path, git_workspace: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hook = git_workspace / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    (git_workspace / ".gitattributes").write_text("* filter=evil\n")
    git(git_workspace, "add", "-A")
    git(git_workspace, "commit", "-q", "-m", "Attributes")
    git(git_workspace, "config", "filter.evil.smudge", f"touch {mark}; cat")
    git(git_workspace, "config", "filter.evil.clean", f"touch {mark}; cat")
    held = await open_worktree(str(git_workspace), str(home), "safe")
    assert await finish(held) == "" and not mark.exists()


LOOP = """
import asyncio, sys
from pathlib import Path
from codewhale.cli.offline.worktrees import finish, open_worktree
async def main():
    number = 0
    while True:
        number += 1
        held = await open_worktree(sys.argv[1], sys.argv[2], f"{sys.argv[3]}-{number}")
        place = Path(held.tree.path)
        if number % 3 == 0:
            (place / "work.txt").write_text(held.tree.name)
            print(held.tree.name, flush=True)
        else:
            print("-", flush=True)
        await finish(held)
asyncio.run(main())
"""


def test_killed_at_any_moment_no_work_is_lost_and_the_next_one_tidies_up(home: Path, git_workspace: Path) -> None:
    for number in range(60):
        (git_workspace / f"f{number}").write_text(f"{number}\n" * 50)
    git(git_workspace, "add", "-A")
    git(git_workspace, "commit", "-q", "-m", "Files")
    before, chance, kept = tree_of(git_workspace), random.Random(7), set[str]()
    for number in range(KILLS):
        words = [sys.executable, "-c", LOOP, str(git_workspace), str(home), f"k{number}"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stdout is not None
            kept |= {process.stdout.readline().strip()}
            time.sleep(chance.random() * 0.6)
            os.killpg(process.pid, signal.SIGKILL)
            kept |= set(process.stdout.read().split())
        assert tree_of(git_workspace) == before
    held = asyncio.run(open_worktree(str(git_workspace), str(home), "last"))
    assert asyncio.run(finish(held)) == ""
    there = {tree.name: tree for tree in worktrees(str(home))}
    assert all(tree.state == "ready" for tree in there.values())
    for name in kept - {"-"}:
        assert (Path(there[name].path) / "work.txt").read_text() == name
    named = {line.split()[0] for line in git(git_workspace, "worktree", "list").splitlines()[1:]}
    assert named == {tree.path for tree in there.values()}
    assert git(git_workspace, "fsck", "--no-progress") == ""
