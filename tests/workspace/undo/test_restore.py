"""Writing back: only over what was looked at, through no link, whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from codewhale.lib.beneath import Root
from codewhale.workspace.undo.journal import FileState, blob_id
from codewhale.workspace.undo.restore import CHANGED, THROUGH_LINK, remove_empty, write_back

FILE = stat.S_IFREG | 0o644


def state(data: bytes, mode: int = FILE) -> FileState:
    return FileState(mode, blob_id(data), len(data))


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "root").mkdir()
    return Root(str(tmp_path / "root"))


def put(root: Root, path: str, data: bytes, mode: int = 0o644) -> Path:
    file = Path(root.path, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    file.chmod(mode)
    return file


def test_bytes_modes_links_and_absence(root: Root) -> None:
    file = put(root, "a", b"1")
    written = write_back(root, "a", state(b"1"), state(b"22", stat.S_IFREG | 0o750), b"22")
    assert written.reason == "" and written.before != written.after
    assert file.read_bytes() == b"22" and stat.S_IMODE(file.stat().st_mode) == 0o750
    assert not write_back(root, "a", state(b"22", stat.S_IFREG | 0o750), state(b"22"), None).reason
    assert stat.S_IMODE(file.stat().st_mode) == 0o644 and file.read_bytes() == b"22"
    link = state(b"else", stat.S_IFLNK | 0o777)
    assert not write_back(root, "a", state(b"22"), link, b"else").reason
    assert os.readlink(file) == "else"
    assert not write_back(root, "a", link, None, None).reason and not os.path.lexists(file)
    assert not write_back(root, "x/y/z", None, state(b"new"), b"new").reason
    assert Path(root.path, "x/y/z").read_bytes() == b"new"


def test_a_mode_that_is_not_known_is_that_of_the_file_or_of_any(root: Root) -> None:
    file = put(root, "a", b"1", 0o640)
    assert not write_back(root, "a", state(b"1", stat.S_IFREG | 0o640), state(b"2", stat.S_IFREG | 0o100), b"2").reason
    assert stat.S_IMODE(file.stat().st_mode) == 0o740
    assert not write_back(root, "b", None, state(b"2", stat.S_IFREG), b"2").reason
    assert stat.S_IMODE(Path(root.path, "b").stat().st_mode) == 0o644


def test_what_is_not_as_it_was_is_left(root: Root) -> None:
    file = put(root, "a", b"1")
    for now in (state(b"2"), state(b"1", stat.S_IFREG | 0o600), state(b"1", stat.S_IFLNK | 0o777), None):
        assert write_back(root, "a", now, state(b"3"), b"3").reason == CHANGED
    assert write_back(root, "gone", state(b"1"), state(b"3"), b"3").reason == CHANGED
    assert write_back(root, "deep/gone", state(b"1"), None, None).reason == CHANGED
    put(root, "folder/x", b"1")
    assert write_back(root, "folder", None, state(b"3"), b"3").reason == CHANGED
    assert file.read_bytes() == b"1" and sorted(os.listdir(root.path)) == ["a", "folder"]


def test_no_link_on_the_way_is_followed_and_nothing_is_left_behind(root: Root, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"1")
    os.symlink(outside, Path(root.path, "d"))
    os.symlink(outside / "x", Path(root.path, "x"))
    assert write_back(root, "d/x", state(b"1"), state(b"2"), b"2").reason == THROUGH_LINK
    assert write_back(root, "d/new", None, state(b"2"), b"2").reason == THROUGH_LINK
    assert write_back(root, "d/x", state(b"1"), None, None).reason
    assert write_back(root, "x", state(b"1"), state(b"2"), b"2").reason == CHANGED
    for path in ("../outside/x", "/etc/passwd", "a/../../outside/x"):
        assert write_back(root, path, state(b"1"), state(b"2"), b"2").reason
    assert (outside / "x").read_bytes() == b"1" and os.listdir(outside) == ["x"]
    assert sorted(os.listdir(root.path)) == ["d", "x"]


def test_empty_folders_go_up_to_the_first_that_is_not(root: Root) -> None:
    put(root, "a/keep", b"")
    os.makedirs(Path(root.path, "a/b/c"))
    remove_empty(root, "a/b/c")
    assert os.listdir(Path(root.path, "a")) == ["keep"]
    remove_empty(root, "a")
    remove_empty(root, "absent/folder")
    assert os.path.isdir(root.path)
