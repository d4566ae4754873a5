"""Which branches a line of git may add commits to, where real repositories stand."""

from pathlib import Path

import pytest

from codewhale.permissions.branches import ANY, moved_branches
from codewhale.permissions.shell.judge import ShellContext, analyse
from support.repos import make_repo, raw_git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository on main, with one worktree on the branch topic and one folder in it on none."""
    root = make_repo(tmp_path / "repo", {"a": "1\n", "sub/b": "2\n"})
    raw_git(root, "branch", "-M", "main")
    raw_git(root, "worktree", "add", "-q", str(tmp_path / "topic"), "-b", "topic")
    raw_git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "loose"))
    return root


def moved(line: str, folder: Path, typed: bool = False) -> set[str]:
    judged = analyse(line, ShellContext(str(folder), str(folder), home=str(folder / "nobody")))
    return set() if judged.verdict == "allow" else moved_branches(line, judged.commands, str(folder), typed)


ADDS = [
    "git commit -m x", "git  'com'mit -m x", "/usr/bin/git commit", "git -c user.name=x commit", "git merge topic",
    "git rebase topic", "git reset --hard HEAD~1", "git cherry-pick abc", "git revert abc", "git am x", "git pull",
    "git -C sub commit", "cd sub && git commit", "(cd sub; git commit)", "git --git-dir=.git commit", "git push",
    "git push origin", "git push origin HEAD", "git push -u origin @", "git push -o x origin", "true; git commit",
    "bash -c 'git commit'", "echo 'git commit' | sh", "timeout 5 git commit", "git-commit -m x", "git push --tags",
    "python3 -c \"import os; os.system('git commit')\"", "git branch -m other", "git update-ref HEAD abc",
    "env A=b git commit", "git --no-pager commit", "nohup git commit &", "git commit 2>&1 | tail -1",
    "git push --repo origin", "git merge --ff-only topic",
]  # fmt: skip
NAMES = [
    "git push origin main", "git push origin HEAD:main", "git push origin +x:refs/heads/main", "git push origin :main",
    "git push --delete origin main", "git push origin x:heads/main", "git push -f https://h/x.git topic:main",
    "git branch -f main abc", "git branch -D main", "git branch --del main", "git branch -M topic main",
    "git update-ref refs/heads/main abc", "git checkout -B main", "git checkout -fBmain", "git switch -C main",
    "git switch --force-c=main", "git worktree add -B main ../x", "git fetch origin x:main", "git rebase topic main",
    "git symbolic-ref refs/heads/main refs/heads/x", "cd ../topic && git push origin 'ma'in",
]  # fmt: skip
UNKNOWN = [
    "git push origin $B", "git push --all", "git push --mirror", "git push origin ':'", "git ci -m x",
    "git -c alias.x=commit x", "git switch topic && git commit", "cd $D && git commit",
    "git push origin 'refs/heads/*'",
    "GIT_DIR=../x git commit", "env -C ../topic git commit", "$(which git) push origin $B", "git update-ref --stdin",
    "git worktree add wt main && cd wt && git commit", "find . -exec git commit ;", "echo x | xargs git push origin",
    "git submodule foreach 'git push'", "gh pr merge 4", "git subtree push", "git send-pack x", "git $X",
    "f(){ cd ../topic; git commit; }; f", "git -c push.default=matching push", "git bisect run git push",
    "git rebase -x 'git push' topic", "sudo git commit",
]  # fmt: skip
NOTHING = [
    "git status && make", "git add -A", "git stash", "git switch topic", "git checkout -b new", "git fetch",
    "git push origin topic", "git push origin main:topic", "git branch new", "git branch -d topic", "git tag v1",
    "git reset", "git reset -- a", "git reset HEAD", "cd ../topic && git commit", "git -C ../topic commit",
    "cd ../loose && git commit", "git worktree add ../y -b y", "git config a.b c", "make main", "echo git commit",
    "git -C ../topic push", "git checkout -- a && git -C ../topic commit", "git log main", "gh pr create",
    "git clean -n && git push -o ci.skip origin topic", "cd ../topic && git commit 2>&1 | tail -1",
]  # fmt: skip


@pytest.mark.parametrize("line", [*ADDS, *NAMES])
def test_what_adds_to_a_branch_names_it(line: str, repo: Path) -> None:
    assert moved(line, repo) & {"main", ANY}


@pytest.mark.parametrize("line", UNKNOWN)
def test_what_cannot_be_told_counts_as_any_branch(line: str, repo: Path) -> None:
    assert ANY in moved(line, repo.parent / "topic" if "../" not in line else repo)


@pytest.mark.parametrize("line", NOTHING)
def test_what_adds_to_another_branch_or_to_none_does_not_name_it(line: str, repo: Path) -> None:
    assert not moved(line, repo) & {"main", ANY}


def test_a_line_for_a_running_program_runs_nobody_knows_where(repo: Path) -> None:
    assert moved("git commit", repo.parent / "topic", typed=True) == {ANY}
    assert moved("git push origin topic", repo.parent / "topic", typed=True) <= {"topic", "origin", ANY}


def test_settings_that_send_a_push_elsewhere_and_a_rebase_under_way_count(repo: Path) -> None:
    topic = repo.parent / "topic"
    assert ANY not in moved("git push origin topic", topic)
    raw_git(repo, "config", "remote.origin.push", "topic:main")
    assert ANY in moved("git push origin topic", topic) and ANY in moved("git push", topic)
    state = repo / ".git" / "worktrees" / "loose" / "rebase-merge"
    state.mkdir()
    (state / "head-name").write_text("refs/heads/main\n")
    assert moved("git rebase --continue", repo.parent / "loose") == {"main"}
