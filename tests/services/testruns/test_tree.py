"""The hash of a workspace's contents: what changes it and what does not."""

import os
import subprocess
from pathlib import Path

from codewhale.services.testruns import tree
from codewhale.services.testruns.tree import tree_hash


async def digest(folder: Path) -> str:
    found = await tree_hash(str(folder))
    assert len(found.sha256) == 64
    return found.sha256


async def test_contents_names_modes_and_links_count(git_workspace: Path) -> None:
    seen = [await digest(git_workspace)]
    (git_workspace / "new.txt").write_text("a")
    seen.append(await digest(git_workspace))
    (git_workspace / "new.txt").write_text("b")
    seen.append(await digest(git_workspace))
    (git_workspace / "new.txt").rename(git_workspace / "other.txt")
    seen.append(await digest(git_workspace))
    (git_workspace / "other.txt").chmod(0o755)
    seen.append(await digest(git_workspace))
    (git_workspace / "link").symlink_to("README.md")
    seen.append(await digest(git_workspace))
    (git_workspace / "README.md").unlink()
    seen.append(await digest(git_workspace))
    assert len(set(seen)) == len(seen)


async def test_touching_committing_and_ignored_files_do_not_count(git_workspace: Path) -> None:
    (git_workspace / ".gitignore").write_text("build/\n")
    before = await digest(git_workspace)
    index = (git_workspace / ".git" / "index").read_bytes()
    os.utime(git_workspace / "README.md", (1, 1))
    (git_workspace / "build").mkdir()
    (git_workspace / "build" / "out").write_text("x")
    (git_workspace / "__pycache__").mkdir()
    (git_workspace / "__pycache__" / "a.pyc").write_text("x")
    assert await digest(git_workspace) == before
    assert (git_workspace / ".git" / "index").read_bytes() == index
    subprocess.run(["git", "add", "-A"], cwd=git_workspace, check=True)  # noqa: ASYNC221
    (git_workspace / "__pycache__" / "a.pyc").unlink()
    assert await digest(git_workspace) == before


async def test_it_does_not_depend_on_a_repository(workspace: Path, git_workspace: Path) -> None:
    copy = workspace.parent / "copy"
    copy.mkdir()
    (copy / "README.md").write_text("# Sample\n")
    assert await digest(copy) == await digest(git_workspace)


async def test_special_files_are_passed_over(workspace: Path) -> None:
    (workspace / "a").write_text("a")
    before = await digest(workspace)
    os.mkfifo(workspace / "pipe")
    assert await digest(workspace) == before


async def test_too_much_has_no_hash(workspace: Path) -> None:
    with (workspace / "huge").open("wb") as file:
        file.truncate(tree.MOST_BYTES + 1)
    assert (await tree_hash(str(workspace))).sha256 == ""
