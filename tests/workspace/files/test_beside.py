"""Places beside the workspace through their own roots: what a grant of one file or one folder opens, and no more."""

import os
from pathlib import Path

import pytest

from codewhale.lib.beneath import PathRefused
from codewhale.workspace.files.beside import WiderRoot, walked


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder beside the workspace with two files."""
    folder = tmp_path / "beside"
    folder.mkdir()
    (tmp_path / "workspace").mkdir()
    for name in ("one.txt", "two.txt"):
        (folder / name).write_text(name)
    return folder


def read(root: WiderRoot, path: str) -> bytes:
    """What stands at a path."""
    with os.fdopen(root.open(root.resolve(path), os.O_RDONLY, links=False), "rb") as file:
        return file.read()


def test_one_file_is_opened_and_nothing_beside_it(tmp_path: Path, beside: Path) -> None:
    root = WiderRoot(str(tmp_path / "workspace"), (str(beside / "one.txt"),))
    assert read(root, "../beside/one.txt") == b"one.txt"
    with pytest.raises(PathRefused):
        root.relative(str(beside / "two.txt"))


def test_a_file_that_became_a_link_since_leads_nowhere_else(tmp_path: Path, beside: Path) -> None:
    name = str(beside / "one.txt")
    root = WiderRoot(str(tmp_path / "workspace"), (name,))
    os.unlink(name)
    os.symlink("two.txt", name)
    with pytest.raises(PathRefused):
        read(root, name)
    with pytest.raises((PathRefused, OSError)):
        root.open(name, os.O_RDONLY, links=False)


def test_a_folder_opens_all_in_it_and_no_link_out_of_it(tmp_path: Path, beside: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", beside / "out")
    root = WiderRoot(str(tmp_path / "workspace"), (str(beside),))
    assert read(root, str(beside / "two.txt")) == b"two.txt"
    for path in (beside / "out", beside / ".." / "secret", tmp_path / "beside-not" / ".." / "secret"):
        with pytest.raises(PathRefused):
            root.relative(str(path))


def test_a_walk_begins_at_the_place_or_in_the_workspace(tmp_path: Path, beside: Path) -> None:
    space = str(tmp_path / "workspace")
    allowed = (f"read:{beside}", "cache:npm")
    assert walked(space, None, allowed) == (space, None)
    assert walked(space, "src", allowed) == (space, "src")
    assert walked(space, str(beside), allowed) == (str(beside), ".")
    assert walked(space, str(tmp_path), allowed) == (space, str(tmp_path))
    assert walked(space, str(beside / "one.txt"), (f"read:{beside}/one.txt",)) == (str(beside), "one.txt")
