"""Only regular files are read, whole or not at all, and no descriptor is left open."""

import os
from pathlib import Path

from codewhale.lib.bounded import read_regular


def read(path: Path, limit: int = 10) -> bytes | None:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return read_regular(fd, limit)
    finally:
        assert not os.path.exists(f"/proc/self/fd/{fd}")


def test_small_regular_files_come_whole(tmp_path: Path) -> None:
    for data in (b"", b"x", b"x" * 10):
        (tmp_path / "file").write_bytes(data)
        assert read(tmp_path / "file") == data
    (tmp_path / "file").write_bytes(b"x" * 11)
    assert read(tmp_path / "file") is None
    (tmp_path / "file").write_bytes(b"x" * 300_000)
    assert read(tmp_path / "file", 300_000) == b"x" * 300_000


def test_everything_else_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "sparse", Path("/dev/zero")):
        assert read(path) is None


def test_a_file_without_a_size_is_bounded_as_well() -> None:
    assert read(Path("/proc/self/status"), 1 << 20) is not None
    assert read(Path("/proc/self/status"), 10) is None
