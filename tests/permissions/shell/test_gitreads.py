"""Whether git may do more than read in a folder, held against what git really does there."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codewhale.permissions.shell.reads import look_anew, why_more
from support.patience import HANG

COMMANDS = ("status", "diff", "log", "show")


def why(folder: Path, command: str) -> str:
    """What is said of a command now."""
    look_anew()
    return why_more(str(folder), command)


def git(folder: Path, *words: str) -> None:
    """Run git, which must succeed."""
    name = ("-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(folder), *name, *words], check=True, capture_output=True)


def repository(folder: Path) -> Path:
    """A repository with a commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    (folder / "a").write_text("a\n")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "a")
    return folder


def fires(folder: Path, mark: Path) -> bool:
    """Whether one of the commands that read starts what was planted, which leaves a mark."""
    for command in (["status"], ["diff"], ["log", "-p", "-1"], ["show"], ["describe", "--always", "--dirty"]):
        subprocess.run(
            ["git", "-C", str(folder), *command], capture_output=True, timeout=HANG, stdin=subprocess.DEVNULL
        )
    return mark.exists()


def program(at: Path, mark: Path) -> str:
    """A program that leaves a mark and passes its input on."""
    at.write_text(f"#!/bin/sh\ntouch {mark}\nexec cat\n")
    at.chmod(0o755)
    return str(at)


def setting(name: str) -> Callable[[Path, str], Path]:
    """A repository of which a setting names the program."""

    def plant(folder: Path, run: str) -> Path:
        git(repository(folder), "config", name, run)
        (folder / ".gitattributes").write_text("* diff=d filter=d\n")
        (folder / "a").write_text("b\n")
        return folder

    return plant


def hook(folder: Path, run: str) -> Path:
    """A hook that is run when the index is written."""
    shutil.copy(run, repository(folder) / ".git" / "hooks" / "post-index-change")
    os.utime(folder / "a", (1, 1))
    return folder


def hook_elsewhere(folder: Path, run: str) -> Path:
    """The same in a folder of the work tree."""
    git(repository(folder), "config", "core.hooksPath", "h")
    (folder / "h").mkdir()
    shutil.copy(run, folder / "h" / "post-index-change")
    os.utime(folder / "a", (1, 1))
    return folder


def bare(folder: Path, run: str) -> Path:
    """The inside of a repository, as a folder of its own."""
    git(repository(folder), "config", "core.fsmonitor", run)
    git(folder, "config", "core.worktree", ".")
    shutil.copytree(folder / ".git", folder / "sub", dirs_exist_ok=True)
    git(folder, "config", "--unset", "core.fsmonitor")
    git(folder, "config", "--unset", "core.worktree")
    return folder / "sub"


def gitlink(folder: Path, run: str) -> Path:
    """A repository within that the index names."""
    inner = repository(repository(folder) / "inner")
    git(folder, "add", "inner")
    git(folder, "commit", "-qm", "inner")
    git(inner, "config", "core.fsmonitor", run)
    return folder


def submodule(folder: Path, run: str) -> Path:
    """A submodule, seen from within."""
    other = repository(folder.parent / "other")
    git(repository(folder), "submodule", "add", str(other), "sub")
    git(folder / "sub", "config", "core.fsmonitor", run)
    return folder / "sub"


def included(folder: Path, run: str) -> Path:
    """A setting in a file that the configuration includes."""
    (repository(folder) / "more").write_text(f"[core]\n\tfsmonitor = {run}\n")
    git(folder, "config", "include.path", "../more")
    return folder


PLANTED = {
    "fsmonitor": setting("core.fsmonitor"), "external": setting("diff.external"),
    "textconv": setting("diff.d.textconv"), "command": setting("diff.d.command"),
    "clean": setting("filter.d.clean"), "process": setting("filter.d.process"),
    "hook": hook, "hook elsewhere": hook_elsewhere, "bare": bare, "gitlink": gitlink, "submodule": submodule,
    "included": included,
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_what_git_would_start_is_seen_beforehand(tmp_path: Path, kind: str) -> None:
    mark = tmp_path / "mark"
    folder = PLANTED[kind](tmp_path / "w", program(tmp_path / "run", mark))
    mark.unlink(missing_ok=True)
    assert any(why(folder, command) for command in COMMANDS)
    assert fires(folder, mark), "nothing was planted"


def test_an_everyday_repository_is_only_read(tmp_path: Path) -> None:
    folder = repository(tmp_path / "w")
    git(folder, "remote", "add", "origin", "https://example.com/x.git")
    git(folder, "config", "alias.co", "checkout")
    git(folder, "config", "core.hooksPath", ".husky")
    git(folder, "worktree", "add", "-q", str(tmp_path / "tree"))
    (folder / "sub").mkdir()
    for place in (folder, folder / "sub", tmp_path / "tree", tmp_path):
        assert [why(place, command) for command in COMMANDS] == [""] * 4, place
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},absent")
    assert why(folder, "status") == ""


def test_a_file_of_the_size_of_a_mark_is_no_repository(tmp_path: Path) -> None:
    folder = repository(tmp_path / "w")
    for number in range(5):
        (folder / f"x{'y' * number}").write_bytes(b"z" * 0o160000)
    git(folder, "add", ".")
    assert why(folder, "status") == ""
    git(folder, "update-index", "--index-version", "4")
    assert why(folder, "status") != ""
    (folder / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\7" + b"\0\0\xe0\0" * 3)
    assert why(folder, "status") != ""
