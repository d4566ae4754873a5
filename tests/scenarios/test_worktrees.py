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
from collections.abc import Callable
from pathlib import Path

import pytest

from codewhale.app.checkouts import HeldWorktree, Worktree, Worktrees, finish, hold
from codewhale.protocol.errors import ConfigError, SessionBusyError
from codewhale.workspace.checkout import CheckoutError
from support.machine import MAKES_FILES
from support.program import codewhale_program, scripted

LOCAL = ("-c", "protocol.file.allow=always")
KILLS = int(os.environ.get("CODEWHALE_KILLS", "10"))
DONE = json.dumps({"text": "Done."})


async def open_worktree(folder: Path, home: Path, name: str = "") -> HeldWorktree:
    return await Worktrees(str(home)).open(str(folder), name)


def worktrees(home: Path) -> list[Worktree]:
    return Worktrees(str(home)).all()


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
    (tree,) = worktrees(home / "state")
    assert (Path(tree.path) / "new.txt").read_text() == "made\n" and "kept (1 changed file)" in done.stderr
    assert tree_of(git_workspace) == before and git(tree.path, "branch", "--show-current") == "codewhale/topic"
    listed = codewhale_program(home, "worktree", "list")
    assert "topic" in listed.stdout and "1 changed file" in listed.stdout
    os.unlink(Path(tree.path) / "new.txt")
    scripted(home, DONE)
    again = codewhale_program(home, "exec", "-w", str(git_workspace), "--worktree", "topic", "Go")
    assert again.returncode == 0 and "topic removed: it had no changes" in again.stderr
    assert worktrees(home / "state") == [] and not os.path.exists(tree.path)
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
    places = sorted(min(os.listdir(os.path.join(tree.path, "sub"))) for tree in worktrees(home / "state"))
    assert places == ["0.txt", "1.txt"]


@pytest.mark.parametrize(
    ("words", "name", "prompt"),
    [
        (["--worktree", "topic", "Go"], "topic", "Go"),
        (["--worktree=topic", "Go"], "topic", "Go"),
        (["Go", "--worktree", "topic"], "topic", "Go"),
        (["--worktree", "topic", "--auto", "Go"], "topic", "Go"),
        (["--worktree", "--auto", "Go"], "", "Go"),
        (["--worktree", "Go"], "", "Go"),
        (["--worktree=topic"], "topic", ""),
        (["--worktree", "a b", "Go"], "a b", ""),
    ],
)
def test_a_name_that_follows_is_the_name_and_the_last_word_the_prompt(
    home: Path, git_workspace: Path, words: list[str], name: str, prompt: str
) -> None:
    scripted(home, DONE)
    done = codewhale_program(home, "exec", "-w", str(git_workspace), *words)
    if not prompt:
        assert done.returncode == 2 and ("PROMPT" in done.stderr or "cannot name" in done.stderr), done.stderr
        return
    assert done.returncode == 0 and f"worktree {name or 'w-'}" in done.stderr, done.stderr
    (session,) = codewhale_program(home, "sessions", "list", "--all").stdout.splitlines()
    assert session.endswith(prompt)


def test_help_says_what_a_word_behind_the_option_is(home: Path) -> None:
    told = " ".join(codewhale_program(home, "exec", "--help").stdout.split())
    assert "--worktree [NAME]" in told and "the last word is the PROMPT" in told


@MAKES_FILES
def test_commands_work_and_commit_in_it(home: Path, git_workspace: Path) -> None:
    who = "-c user.name=T -c user.email=t@localhost"
    line = f"echo x > c.txt && git add -A && git {who} commit -qm Committed && cat $PWD/c.txt"
    scripted(home, json.dumps({"calls": [{"name": "exec_shell", "arguments": {"command": line}}]}), DONE)
    option = ("--auto", "--worktree=work", "--output-format", "json")
    done = codewhale_program(home, "exec", "-w", str(git_workspace), *option, "Go")
    assert json.loads(done.stdout)["tools"][0]["ok"], done.stdout
    assert git(git_workspace, "log", "--format=%s", "-1", "codewhale/work") == "Committed"
    assert "kept (1 commit that no other branch has)" in done.stderr


@pytest.mark.parametrize("name", ["../up", "a/b", "..", ".hidden", "-x", "a.lock", "x" * 65, "a b", "é"])
async def test_names_that_are_paths_or_options_are_refused(home: Path, git_workspace: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a worktree"):
        await open_worktree(git_workspace, home, name)
    assert worktrees(home) == []


async def test_no_repository_and_no_commit_are_said(home: Path, workspace: Path) -> None:
    with pytest.raises(ConfigError, match="not in a git repository"):
        await open_worktree(workspace, home)
    git(workspace, "init", "-q")
    with pytest.raises(ConfigError, match="has no commits"):
        await open_worktree(workspace, home)


async def test_two_at_once_do_not_touch_each_other_or_the_main_checkout(home: Path, git_workspace: Path) -> None:
    before = tree_of(git_workspace)
    some = await asyncio.gather(*(open_worktree(git_workspace, home, name) for name in ("one", "two", "")))
    with pytest.raises(SessionBusyError, match="of worktree one is already open"):
        await open_worktree(git_workspace, home, "one")
    for number, held in enumerate(some):
        (Path(held.tree.path) / "README.md").write_text(f"{number}\n")
    git(some[0].tree.path, "commit", "-qam", "One")
    kept = [await finish(held) for held in some]
    assert kept == ["1 commit that no other branch has", "1 changed file", "1 changed file"]
    assert [(Path(held.tree.path) / "README.md").read_text() for held in some] == ["0\n", "1\n", "2\n"]
    assert tree_of(git_workspace) == before
    git(git_workspace, "merge", "-q", "codewhale/one")
    assert await finish(hold(some[0].tree)) == ""


async def test_what_holds_something_is_kept(home: Path, git_workspace: Path) -> None:
    (git_workspace / ".gitignore").write_text("*.log\n__pycache__/\n")
    git(git_workspace, "add", "-A")
    git(git_workspace, "commit", "-q", "-m", "Ignore")
    held = await open_worktree(git_workspace, home, "kept")
    place = Path(held.tree.path)
    (place / "__pycache__").mkdir()
    (place / "__pycache__" / "x.pyc").write_text("x")
    assert await held.tree.kept(held.tree.base) == ""
    (place / "run.log").write_text("x")
    assert await held.tree.kept(held.tree.base) == "1 file that git ignores"
    os.unlink(place / "run.log")
    git(place, "checkout", "-q", "--detach")
    assert "not on branch" in await held.tree.kept(held.tree.base)
    git(place, "checkout", "-q", "codewhale/kept")
    git(place, "commit", "-q", "--allow-empty", "-m", "Work")
    shutil.rmtree(place)
    assert await held.tree.kept(held.tree.base) == "1 commit that no other branch has"
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
    held = await open_worktree(git_workspace, home, "safe")
    assert await finish(held) == "" and not mark.exists()


async def used(held: HeldWorktree, work: Callable[[Path], object]) -> str:
    """What a worktree is kept for once that was done in it."""
    work(Path(held.tree.path))
    return await finish(held)


@pytest.fixture
def with_submodule(git_workspace: Path, tmp_path: Path) -> Path:
    """The workspace with a submodule at lib."""
    git(tmp_path, "clone", "-q", str(git_workspace), str(tmp_path / "lib"))
    git(git_workspace, *LOCAL, "submodule", "add", "-q", str(tmp_path / "lib"), "lib")
    git(git_workspace, "commit", "-q", "-m", "Lib")
    return git_workspace


async def test_work_in_a_submodule_is_kept(home: Path, with_submodule: Path) -> None:
    held = await open_worktree(with_submodule, home, "file")
    kept = await used(held, lambda place: (place / "lib" / "work.txt").write_text("mine\n"))
    assert kept == "1 path that git does not look at"
    assert (Path(held.tree.path) / "lib" / "work.txt").read_text() == "mine\n"
    again = await open_worktree(with_submodule, home, "checkout")
    assert await used(again, lambda place: git(place, *LOCAL, "submodule", "update", "-q", "--init"))
    assert (Path(again.tree.path) / "lib" / "README.md").exists()
    assert await finish(await open_worktree(with_submodule, home, "none")) == ""


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
async def test_a_change_that_git_was_told_to_pass_over_is_kept(home: Path, git_workspace: Path, flag: str) -> None:
    held = await open_worktree(git_workspace, home, "flag")

    def work(place: Path) -> None:
        git(place, "update-index", flag, "README.md")
        (place / "README.md").write_text("mine\n")

    assert await used(held, work) and (Path(held.tree.path) / "README.md").read_text() == "mine\n"


async def test_a_checkout_whose_folder_was_deleted_comes_back_with_its_commits(home: Path, git_workspace: Path) -> None:
    held = await open_worktree(git_workspace, home, "topic")
    assert await used(held, lambda place: git(place, "commit", "-q", "--allow-empty", "-m", "Work"))
    shutil.rmtree(held.tree.path)
    again = await open_worktree(git_workspace, home, "topic")
    assert git(again.tree.path, "log", "-1", "--format=%s") == "Work" and await again.tree.stands()
    shutil.rmtree(again.tree.path)
    again.lock.release()
    git(git_workspace, "update-ref", "-d", "refs/heads/codewhale/topic")
    last = await open_worktree(git_workspace, home, "topic")
    assert git(last.tree.path, "log", "-1", "--format=%s") == "Begin" and await finish(last) == ""


async def test_a_folder_that_is_no_checkout_any_more_is_said_and_left(home: Path, git_workspace: Path) -> None:
    held = await open_worktree(git_workspace, home, "topic")
    assert await used(held, lambda place: os.unlink(place / ".git"))
    (Path(held.tree.path) / "mine").write_text("mine\n")
    with pytest.raises(CheckoutError, match="no checkout any more"):
        await open_worktree(git_workspace, home, "topic")
    assert (Path(held.tree.path) / "mine").read_text() == "mine\n" and not held.tree.in_use


async def test_what_others_made_of_the_repository_stays(home: Path, git_workspace: Path, tmp_path: Path) -> None:
    git(git_workspace, "worktree", "add", "-q", "-b", "away", str(tmp_path / "unplugged"))
    shutil.rmtree(tmp_path / "unplugged")
    (git_workspace / "README.md").write_text("staged\n")
    git(git_workspace, "add", "-A")
    git(git_workspace, "stash", "-q")
    git(git_workspace, "stash", "apply", "-q", "--index")
    (git_workspace / "README.md").write_text("and more\n")
    asked = (("status", "--porcelain"), ("worktree", "list", "--porcelain"), ("for-each-ref",))
    before = [git(git_workspace, *words) for words in asked]
    held = await open_worktree(git_workspace, home, "topic")
    git(git_workspace, "worktree", "lock", held.tree.path)
    assert "locked" in await finish(held) and os.path.exists(held.tree.path)
    git(git_workspace, "worktree", "unlock", held.tree.path)
    assert await finish(hold(held.tree)) == ""
    assert [git(git_workspace, *words) for words in asked] == before


async def test_every_kind_of_checkout_can_have_one(home: Path, git_workspace: Path, tmp_path: Path) -> None:
    bare, linked, plain = tmp_path / "bare.git", tmp_path / "linked", tmp_path / "plain"
    git(tmp_path, "clone", "-q", "--bare", str(git_workspace), str(bare))
    git(bare, "worktree", "add", "-q", "-b", "linked", str(linked))
    git(git_workspace, "worktree", "add", "-q", "--detach", str(plain))
    with pytest.raises(CheckoutError, match="bare"):
        await open_worktree(bare, home)
    outer = await open_worktree(git_workspace, home, "outer")
    (git_workspace / "new").mkdir()
    for number, place in enumerate(
        (linked, plain, Path(outer.tree.path), git_workspace / "new", git_workspace / ".git")
    ):
        held = await open_worktree(place, home, f"of-{number}")
        assert held.tree.workspace == held.tree.path and tree_of(Path(held.tree.path))["README.md"]
        assert await finish(held) == ""
    assert git(plain, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD" and await finish(outer) == ""


LOOP = """
import asyncio, subprocess, sys
from pathlib import Path
from codewhale.app.checkouts import Worktrees, finish
async def main():
    number = 0
    while True:
        number += 1
        name = f"{sys.argv[3]}-{number}"
        print("made", name, flush=True)
        held = await Worktrees(sys.argv[2]).open(sys.argv[1], name)
        place = Path(held.tree.path)
        if number % 3:
            (place / "work.txt").write_text(name)
            print("wrote", name, flush=True)
        if number % 3 == 2:
            who = ("git", "-c", "user.name=T", "-c", "user.email=t@localhost", "-C", str(place))
            subprocess.run([*who, "add", "-A"], check=True)
            subprocess.run([*who, "commit", "-qm", "Work"], check=True)
        await finish(held)
asyncio.run(main())
"""


@pytest.mark.timeout(900 + 30 * KILLS)
def test_killed_at_any_moment_no_work_is_lost_and_the_next_one_tidies_up(home: Path, git_workspace: Path) -> None:
    for number in range(60):
        (git_workspace / f"f{number}").write_text(f"{number}\n" * 50)
    git(git_workspace, "add", "-A")
    git(git_workspace, "commit", "-q", "-m", "Files")
    before, chance, state = tree_of(git_workspace), random.Random(KILLS), home / "state"
    for number in range(KILLS):
        words = [sys.executable, "-c", LOOP, str(git_workspace), str(state), f"k{number}"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            time.sleep(chance.random() * chance.choice((0.2, 0.9)))
            chance.choice((os.kill, os.killpg))(process.pid, signal.SIGKILL)
            lines += process.stdout.readlines()
        steps = [line.split() for line in lines if line.endswith("\n")]
        last = steps[-1][1]
        listed = codewhale_program(home, "worktree", "list").stdout
        assert last in listed or not list(state.glob(f"worktrees/*/{last}*"))
        assert tree_of(git_workspace) == before and git(git_workspace, "fsck", "--no-progress", "--no-dangling") == ""
        held = asyncio.run(open_worktree(git_workspace, state, last))
        assert asyncio.run(held.tree.stands())
        kept = asyncio.run(finish(held))
        assert bool(kept) == os.path.exists(held.tree.path) and (kept or ["wrote", last] not in steps)
        assert not kept or int(last.partition("-")[2]) % 3, "nothing was ever written there"
        wrote_in = [name for step, name in steps if step == "wrote"]
        assert [(Path(held.tree.path).with_name(name) / "work.txt").read_text() for name in wrote_in] == wrote_in
    left = {tree.path for tree in worktrees(state)}
    assert all(tree.state == "ready" for tree in worktrees(state))
    named = {line.split()[0] for line in git(git_workspace, "worktree", "list").splitlines()[1:]}
    assert named == left == {str(path) for path in state.glob("worktrees/*/[!.]*[!.json]") if path.is_dir()}
    git_dirs = os.listdir(git_workspace / ".git" / "worktrees") if left else []
    assert sorted(git_dirs) == sorted(map(os.path.basename, left))


def test_what_a_killed_git_left_of_a_worktree_is_taken_away(home: Path, git_workspace: Path) -> None:
    state = home / "state"
    held = asyncio.run(open_worktree(git_workspace, state, "one"))
    held.lock.release()
    record = Path(f"{held.tree.path}.json")
    record.write_text(record.read_text().replace('"ready"', '"removing"'))
    shutil.rmtree(held.tree.path)
    entry = git_workspace / ".git" / "worktrees" / "one"
    (entry / "gitdir").unlink()
    asyncio.run(finish(asyncio.run(open_worktree(git_workspace, state, "two"))))
    assert not entry.exists() and not record.exists()


@pytest.mark.parametrize("kept", [True, False])
def test_a_branch_that_a_killed_git_left_locked_is_taken_away(home: Path, git_workspace: Path, kept: bool) -> None:
    state = home / "state"
    held = asyncio.run(open_worktree(git_workspace, state, "one"))
    held.lock.release()
    record = Path(f"{held.tree.path}.json")
    record.write_text(record.read_text().replace('"ready"', '"removing"' if kept else '"making"'))
    shutil.rmtree(held.tree.path)
    lock = git_workspace / ".git/refs/heads/codewhale/one.lock"
    lock.write_text("")
    os.utime(lock, (1, 1))
    again = asyncio.run(open_worktree(git_workspace, state, "one"))
    assert asyncio.run(again.tree.stands()) and asyncio.run(finish(again)) == ""
    assert not list((git_workspace / ".git/refs/heads").rglob("*.lock"))
