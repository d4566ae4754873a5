"""The private folder."""

import os
import stat
from pathlib import Path

import pytest

from codewhale.display.attachments import Folder


def test_it_is_the_same_by_every_way_and_private(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "link").symlink_to(work)
    here = Folder(str(tmp_path / "home"), str(work))
    assert Folder(str(tmp_path / "home"), str(tmp_path / "link")).root == here.root
    made = here.make("drafts")
    assert stat.S_IMODE(os.stat(made).st_mode) == 0o700 and stat.S_IMODE(os.stat(here.root).st_mode) == 0o700


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    here = Folder(str(tmp_path), str(tmp_path))
    here.make()
    os.mkfifo(here.path("pipe"))
    os.symlink("/etc/passwd", here.path("link"))
    Path(here.path("large")).write_bytes(b"x" * 11)
    assert [here.read(10, name) for name in ("pipe", "link", "large", "none")] == [b""] * 4
    assert here.read(11, "large") == b"x" * 11


def test_one_at_a_time(tmp_path: Path) -> None:
    import fcntl

    here = Folder(str(tmp_path), str(tmp_path))
    with here.alone():
        fd = os.open(here.path("lock"), os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)
    with here.alone():
        pass
