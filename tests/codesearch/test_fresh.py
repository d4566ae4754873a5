"""What is seen of a tree's changes."""

import os
import time
from pathlib import Path

from codewhale.codesearch import fresh
from codewhale.codesearch.store import Stamp
from support.codetree import git


def settled(folder: Path) -> None:
    """Give everything in a folder times of an hour ago."""
    then = time.time_ns() - 3600 * 10**9
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, ns=(then, then))


def stamp(path: Path) -> Stamp:
    at = path.lstat()
    return Stamp(at.st_size, at.st_mtime_ns, at.st_ctime_ns)


async def test_only_what_comes_or_goes_moves_a_tree(tmp_path: Path) -> None:
    (tmp_path / "a" / "empty").mkdir(parents=True)
    (tmp_path / "a" / "x.py").write_text("1")
    settled(tmp_path)
    root = str(tmp_path)
    listed = await fresh.listed(root)
    assert listed.files == ["a/x.py"] and not fresh.has_moved(root, listed.watched)
    assert fresh.Watched.unpacked(listed.watched.packed()) == listed.watched
    (tmp_path / "a" / "x.py").write_text("2")
    assert not fresh.has_moved(root, listed.watched)
    (tmp_path / "a" / "empty" / "y.py").write_text("3")
    assert fresh.has_moved(root, listed.watched)


async def test_a_folder_changed_just_now_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1")
    listed = await fresh.listed(str(tmp_path))
    assert fresh.has_moved(str(tmp_path), listed.watched)


async def test_git_events_move_a_tree(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1")
    git(tmp_path, "init", "-q")
    settled(tmp_path)
    listed = await fresh.listed(str(tmp_path))
    assert not fresh.has_moved(str(tmp_path), listed.watched)
    git(tmp_path, "switch", "-q", "-c", "other")
    assert fresh.has_moved(str(tmp_path), listed.watched)


async def test_dependencies_are_not_entered(tmp_path: Path) -> None:
    for name in ("node_modules/deep/a.js", "src/a.js", "src/a.min.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    listed = await fresh.listed(str(tmp_path))
    assert listed.files == ["src/a.js"] and listed.left_out == {"by name": 1}
    assert "node_modules/deep" not in listed.watched.folders


def test_changed_files(tmp_path: Path) -> None:
    for number in range(2500):
        (tmp_path / f"{number}").write_text("x")
    stamps = {f"{number}": stamp(tmp_path / f"{number}") for number in range(2500)}
    assert fresh.changed_files(str(tmp_path), stamps) == []
    (tmp_path / "3").write_text("longer")
    (tmp_path / "2400").unlink()
    assert fresh.changed_files(str(tmp_path), stamps) == ["3", "2400"]


def test_nonsense_is_not_decoded() -> None:
    assert fresh.Watched.unpacked(None) is None and fresh.Watched.unpacked(b"\xc1nonsense") is None


async def test_few_files_among_many_ignored_ones_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1")
    assert (await fresh.listed(str(tmp_path))).left_out == {}
    for number in range(12):
        (tmp_path / f"y{number}.py").write_text("1")
    (tmp_path / ".gitignore").write_text("y*\n")
    listed = await fresh.listed(str(tmp_path))
    assert listed.left_out == {"ignored": 12}
    said = fresh.too_few(len(listed.files), b'{"ignored":12}')
    assert said.startswith("only 2 files are in the index and 12 are ignored") and "ignore rule" in said
    for files, told in ((5, b'{"ignored":12}'), (2, b'{"ignored":9}'), (2, b"{}"), (2, None), (2, b"[")):
        assert fresh.too_few(files, told) == ""
