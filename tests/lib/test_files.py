import os
import stat
from pathlib import Path

import pytest

from codewhale.lib.files import DISK, FileOps, atomic_write, private_dir, write_all
from support.storage import FailingOps


class Dribble(FileOps):
    """Takes two bytes a call."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return os.write(fd, data[:2])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o277])
def umask(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_and_directories_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    folder = private_dir(str(tmp_path / "home"))
    atomic_write(os.path.join(folder, "state.json"), b"{}")
    assert mode(tmp_path / "home") == 0o700
    assert mode(tmp_path / "home" / "state.json") == 0o600


def test_a_wider_directory_is_narrowed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    private_dir(str(tmp_path / "home"))
    assert mode(tmp_path / "home") == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory away needs root")
def test_a_directory_of_someone_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 4242, 4242)
    with pytest.raises(PermissionError, match="belongs to user 4242"):
        private_dir(str(tmp_path / "home"))


def test_a_file_where_the_directory_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("x")
    with pytest.raises(OSError):
        private_dir(str(tmp_path / "home"))


def test_replacing_leaves_one_file_with_all_the_bytes(tmp_path: Path) -> None:
    target = tmp_path / "a"
    atomic_write(str(target), b"one", mode=0o640)
    atomic_write(str(target), b"two" * 1000, mode=0o640)
    assert target.read_bytes() == b"two" * 1000
    assert mode(target) == 0o640
    assert os.listdir(tmp_path) == ["a"]


def test_a_failed_replacement_keeps_the_old_and_no_temporary(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with pytest.raises(OSError):
        atomic_write(str(target), b"new" * 1000, ops=FailingOps(1, taken=5, lasting=True))
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_at_the_target_is_replaced_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"keep")
    (tmp_path / "a").symlink_to(outside)
    atomic_write(str(tmp_path / "a"), b"new")
    assert outside.read_bytes() == b"keep"
    assert not (tmp_path / "a").is_symlink()


def test_short_writes_are_completed(tmp_path: Path) -> None:
    fd = DISK.open(str(tmp_path / "a"), os.O_WRONLY | os.O_CREAT)
    write_all(Dribble(), fd, b"abcdef")
    os.close(fd)
    assert (tmp_path / "a").read_bytes() == b"abcdef"


def test_a_folder_that_others_write_to_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(PermissionError, match="others write to"):
        private_dir(str(shared))
    assert shared.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="the top of the file system belongs to root")
@pytest.mark.parametrize("place", ["/", "/proc", "/usr"])
def test_a_folder_at_the_top_stays_as_it_is(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[object] = []
    monkeypatch.setattr(os, "chmod", lambda *arguments: changed.append(arguments))
    assert private_dir(place) == place and changed == []
