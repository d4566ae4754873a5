"""Versions of sources: what changes them, what is never followed or waited for, and how much is looked at."""

import os
from pathlib import Path

import pytest

from codewhale.memory import manifest
from codewhale.memory.manifest import Progress, StoppedError, read_version


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with two files."""
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "deep" / "b.txt").write_text("two\n")
    return folder


def test_a_copy_elsewhere_is_the_same_version_and_every_change_another(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (copy / "deep").mkdir(parents=True)
    (copy / "deep" / "b.txt").write_text("two\n")
    (copy / "a.txt").write_text("one\n")
    first = read_version(str(data))[0]
    assert (first.files, first.bytes, first.limit) == (2, 8, "")
    assert read_version(str(copy))[0].sha256 == first.sha256
    met = {first.sha256}
    (copy / "a.txt").write_text("ONE\n")
    met.add(read_version(str(copy))[0].sha256)
    (copy / "a.txt").rename(copy / "c.txt")
    met.add(read_version(str(copy))[0].sha256)
    (copy / "empty").mkdir()
    met.add(read_version(str(copy))[0].sha256)
    (copy / "link").symlink_to("c.txt")
    met.add(read_version(str(copy))[0].sha256)
    assert len(met) == 5


def test_what_has_not_changed_is_not_hashed_again(data: Path) -> None:
    first = read_version(str(data))[0]
    hashed: list[int] = []

    def stopped() -> bool:
        hashed.append(1)
        return False

    assert read_version(str(data), first, Progress(stopped))[0] is first
    looked = len(hashed)
    assert read_version(str(data), None, Progress(stopped))[0] == first and len(hashed) > 2 * looked


def test_nothing_is_followed_or_waited_for(data: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "big.txt").write_text("x" * 1000)
    (data / "out").symlink_to(outer)
    (data / "file").symlink_to(outer / "big.txt")
    (data / "loop").symlink_to(data)
    os.mkfifo(data / "pipe")
    version, entries = read_version(str(data), seconds=20.0)
    kinds = {entry.name: entry.kind for entry in entries}
    assert {kinds["out"], kinds["file"], kinds["loop"]} == {"link"} and kinds["pipe"] == "other"
    assert (version.files, version.bytes) == (2, 8)
    with pytest.raises(OSError, match="neither a folder nor a regular file"):
        read_version(str(data / "pipe"))


def test_beyond_the_bounds_names_sizes_and_times_are_compared_and_it_is_said(tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    first = many / "0"
    first.write_text("x")
    for number in range(1, manifest.MOST_FILES + 2):
        os.link(first, many / str(number))
    version, _ = read_version(str(many))
    assert version.files == manifest.MOST_FILES + 2 and version.sha256 == "" and version.id == version.times
    assert "20,000 files" in version.limit
    os.utime(first, ns=(0, 5))
    assert read_version(str(many))[0].times != version.times


def test_a_large_file_that_is_all_hole_is_not_hashed(tmp_path: Path) -> None:
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(manifest.MOST_BYTES + 1)
    version, _ = read_version(str(tmp_path / "hole"))
    assert version.sha256 == "" and "2 GiB" in version.limit


def test_a_look_ends_in_its_time_and_when_nobody_waits(data: Path) -> None:
    assert "were looked at" in read_version(str(data), seconds=-1.0)[0].limit
    with pytest.raises(StoppedError):
        read_version(str(data), None, Progress(lambda: True))


def test_more_names_than_are_looked_at_end_the_look(tmp_path: Path) -> None:
    for folder in range(110):
        place = tmp_path / "wide" / f"{folder:03}"
        place.mkdir(parents=True)
        (place / "0").touch()
        for number in range(1, 1000):
            os.link(place / "0", place / str(number))
    version, entries = read_version(str(tmp_path / "wide"))
    assert len(entries) == manifest.MOST_NAMES and "100,000 names" in version.limit and not version.sha256


def test_odd_names_count(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "odd")
    os.mkdir(folder)
    for name in (b"new\nline", b"\xff\xfe", b"\x1b[2J", b"ends. ", b"C:x"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"x")
    version, entries = read_version(str(tmp_path / "odd"))
    assert version.sha256 and len(entries) == 5
    assert {entry.kind for entry in entries} == {"file", "unread"}  # the last two can be read by no tool either
