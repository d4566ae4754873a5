"""Commits as git tells them."""

from pathlib import Path

from codewhale.codesearch.history import head_commit, read_history
from support.codetree import git


def commit(root: Path, subject: str, **files: str) -> None:
    for name, text in files.items():
        (root / name.replace("__", "/").replace("_py", ".py")).parent.mkdir(exist_ok=True)
        (root / name.replace("__", "/").replace("_py", ".py")).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", subject)


async def test_commits_newest_first_with_their_paths(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "Open the harbour", a_py="1", sub__b_py="2")
    commit(tmp_path, "Nothing")
    commit(tmp_path, "Größe: \x07 ü", **{"a_py": "3"})
    found = await read_history(str(tmp_path)) or []
    assert [(c.subject, c.paths) for c in found] == [
        ("Größe: \x07 ü", ("a.py",)),
        ("Open the harbour", ("a.py", "sub/b.py")),
    ]
    assert found[0].sha == await head_commit(str(tmp_path)) and found[0].at > 1_600_000_000


async def test_paths_are_those_beneath_the_folder(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "One", a_py="1", sub__b_py="2")
    assert [c.paths for c in await read_history(str(tmp_path / "sub")) or []] == [("b.py",)]


async def test_merges_are_kept_for_what_they_say(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "One", a_py="1")
    git(tmp_path, "switch", "-q", "-c", "side")
    commit(tmp_path, "Two", b_py="1")
    git(tmp_path, "switch", "-q", "main")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "Merge pull request #7 from someone/side", "side")
    subjects = [c.subject for c in await read_history(str(tmp_path)) or []]
    assert "Merge pull request #7 from someone/side" in subjects


async def test_there_is_none_outside_a_repository_or_before_the_first_commit(tmp_path: Path) -> None:
    assert await read_history(str(tmp_path)) == [] and await head_commit(str(tmp_path)) == ""
    git(tmp_path, "init", "-q")
    assert await read_history(str(tmp_path)) is None and await head_commit(str(tmp_path)) == ""


async def test_a_repository_that_git_cannot_read_has_no_known_commit_rather_than_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "One", a_py="1")
    (tmp_path / ".git" / "config").write_text("[core\n")
    assert await head_commit(str(tmp_path)) is None and await read_history(str(tmp_path)) is None
