"""What is told of many paths at once."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.codesearch.looks import AT_ONCE, GONE, by_lstat, looker, mtimes, packed, row, rows


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_every_way_of_looking_tells_what_lstat_tells(tmp_path: Path, folder: int) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(b"x" * 5_000)
    (tmp_path / "link").symlink_to("inner/file")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    odd = os.fsdecode(b"odd \xff\n name")
    for name, at in (("old", -1_500_000_001), ("zero", 0), (odd, 4_500_000_000_999_999_999)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, ns=(0, at))
    there = ["inner", "inner/file", "link", "dangling", "pipe", "old", "zero", odd, "."]
    asked = [os.fsencode(name) for name in [*there, "never", "inner/file/beneath", "", "x" * 300]]
    expected = [
        row(at.st_size, at.st_ctime_ns, at.st_mtime_ns) for at in (os.lstat(tmp_path / name) for name in there)
    ] + [GONE] * 4
    for look in (looker(), by_lstat):
        assert list(rows(look(folder, asked))) == expected
        assert list(rows(look(folder, asked[:9]))) == expected[:9]
        assert look(folder, asked[:9]) == packed(expected[:9]) and look(folder, []) == b""


def test_as_many_as_may_be_are_told_apart(tmp_path: Path, folder: int) -> None:
    names = [f"{number}" for number in range(AT_ONCE)]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(b"x" * number)
    for look in (looker(), by_lstat):
        assert [told[0] for told in rows(look(folder, [name.encode() for name in names]))] == list(range(AT_ONCE))


def test_modification_times_alone() -> None:
    assert mtimes(packed([row(1, 2, 3_000_000_004), row(5, 6, 7)])) == b"".join(
        number.to_bytes(8, sys.byteorder) for number in (3, 0, 4, 7)
    )
