"""What is seen of a tree's changes."""

import os
import shutil
import time
from pathlib import Path

import pytest

from codewhale.codesearch import scan
from codewhale.codesearch.model import Stamp
from support.codetree import git


def settled(folder: Path) -> None:
    """Give everything in a folder times of an hour ago."""
    then = time.time_ns() - 3600 * 10**9
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, ns=(then, then))


def stamp(path: Path) -> Stamp:
    at = path.lstat()
    return Stamp(at.st_size, at.st_mtime_ns, at.st_ctime_ns)


def changed(root: str, stamps: dict[str, Stamp]) -> list[str]:
    return scan.changes(root, stamps, None)[0]


def has_moved(root: str, watched: scan.FolderTimes) -> bool:
    return scan.changes(root, {}, watched)[1]


async def test_only_what_comes_or_goes_moves_a_tree(tmp_path: Path) -> None:
    (tmp_path / "a" / "empty").mkdir(parents=True)
    (tmp_path / "a" / "x.py").write_text("1")
    settled(tmp_path)
    root = str(tmp_path)
    listed = await scan.list_tree(root)
    assert scan.changes(root, {}, None) == ([], True)
    assert listed.files == ["a/x.py"] and not has_moved(root, listed.watched)
    assert scan.FolderTimes.unpacked(listed.watched.packed()) == listed.watched
    (tmp_path / "a" / "x.py").write_text("2")
    assert not has_moved(root, listed.watched)
    (tmp_path / "a" / "empty" / "y.py").write_text("3")
    assert has_moved(root, listed.watched)


async def test_a_folder_changed_just_now_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1")
    listed = await scan.list_tree(str(tmp_path))
    assert has_moved(str(tmp_path), listed.watched)


async def test_git_events_move_a_tree(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1")
    git(tmp_path, "init", "-q")
    settled(tmp_path)
    listed = await scan.list_tree(str(tmp_path))
    assert not has_moved(str(tmp_path), listed.watched)
    git(tmp_path, "switch", "-q", "-c", "other")
    assert has_moved(str(tmp_path), listed.watched)


async def test_dependencies_are_not_entered(tmp_path: Path) -> None:
    for name in ("node_modules/deep/a.js", "src/a.js", "src/a.min.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    listed = await scan.list_tree(str(tmp_path))
    assert listed.files == ["src/a.js"] and listed.left_out == {"by name": 1}
    assert "node_modules/deep" not in listed.watched.folders


def known(root: Path, *names: str) -> dict[str, Stamp]:
    """The stamps that files have now."""
    return {name: stamp(root / name) for name in names}


def test_changed_files(tmp_path: Path) -> None:
    names = [f"{number}" for number in range(2500)]
    for name in names:
        (tmp_path / name).write_text("x")
    stamps = known(tmp_path, *names)
    assert changed(str(tmp_path), stamps) == []
    (tmp_path / "3").write_text("longer")
    (tmp_path / "2400").unlink()
    assert changed(str(tmp_path), stamps) == ["3", "2400"]


def test_what_took_the_place_of_a_file_is_seen(tmp_path: Path) -> None:
    names = [f"{what}.py" for what in ("kept", "same", "link", "pipe", "folder", "gone")] + ["名前 \n\udcff.py"]
    for name in names:
        (tmp_path / name).write_text("x = 1\n")
    settled(tmp_path)
    stamps, at = known(tmp_path, *names), (tmp_path / "same.py").stat()
    for name in names[1:]:
        (tmp_path / name).unlink()
    (tmp_path / "same.py").write_text("y = 2\n")
    (tmp_path / "link.py").symlink_to("kept.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / names[-1]).write_text("z = 3\n")
    for name in ("same.py", "pipe.py", "folder.py", names[-1]):
        os.utime(tmp_path / name, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert changed(str(tmp_path), stamps) == names[1:]


def test_a_stamp_that_is_not_trusted_counts_as_changed(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1")
    at = stamp(tmp_path / "x.py")
    assert changed(str(tmp_path), {"x.py": Stamp(at.size, at.mtime_ns, 0)}) == ["x.py"]


@pytest.mark.parametrize("what", ["gone", "link", "file", "pipe", "other", "closed"])
async def test_what_took_the_place_of_a_folder_is_seen(tmp_path: Path, what: str) -> None:
    root, aside = tmp_path / "tree", tmp_path / "aside"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "x.py").write_text("1")
    settled(root)
    folder, times = root / "a" / "b", (root / "a").stat()
    listed, stamps = await scan.list_tree(str(root)), known(root, "a/b/x.py")
    assert not has_moved(str(root), listed.watched) and changed(str(root), stamps) == []
    if what == "closed":
        folder.chmod(0)
        if os.access(folder, os.R_OK):
            pytest.skip("this person may read everything")
        assert changed(str(root), stamps) == ["a/b/x.py"]
        folder.chmod(0o700)
        return
    shutil.move(folder, aside)
    if what == "link":
        folder.symlink_to(aside)
    elif what == "file":
        folder.write_text("1")
    elif what == "pipe":
        os.mkfifo(folder)
    elif what == "other":
        folder.mkdir()
    os.utime(root / "a", ns=(times.st_atime_ns, times.st_mtime_ns))  # only the folder itself tells
    assert has_moved(str(root), listed.watched)
    assert changed(str(root), stamps) == ([] if what == "link" else ["a/b/x.py"])


async def test_a_root_that_is_gone_is_said(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    settled(root)
    listed = await scan.list_tree(str(root))
    root.rmdir()
    with pytest.raises(FileNotFoundError):
        scan.changes(str(root), {}, listed.watched)


def test_nonsense_is_not_decoded() -> None:
    assert scan.FolderTimes.unpacked(None) is None and scan.FolderTimes.unpacked(b"\xc1nonsense") is None


async def test_few_files_among_many_ignored_ones_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("1")
    assert (await scan.list_tree(str(tmp_path))).left_out == {}
    for number in range(12):
        (tmp_path / f"y{number}.py").write_text("1")
    (tmp_path / ".gitignore").write_text("y*\n")
    listed = await scan.list_tree(str(tmp_path))
    assert listed.left_out == {"ignored": 12}
    said = scan.too_few(len(listed.files), b'{"ignored":12}')
    assert said.startswith("only 2 files are in the index and 12 are ignored") and "ignore rule" in said
    for files, told in ((5, b'{"ignored":12}'), (2, b'{"ignored":9}'), (2, b"{}"), (2, None), (2, b"[")):
        assert scan.too_few(files, told) == ""
