"""All that a job prints: kept to its bound, counted beyond, and gone with whoever kept it."""

import os
from pathlib import Path

import pytest

from codewhale.services.jobs.log import IN_MEMORY, JobLog, LogFolder
from support.running import open_files


def whole(log: JobLog) -> bytes:
    return b"".join(log.blocks())


def test_little_stays_in_memory(tmp_path: Path) -> None:
    before = open_files()
    log = JobLog(LogFolder(str(tmp_path)))
    log.feed(b"one\n")
    log.feed(b"two\n")
    assert whole(log) == b"one\ntwo\n" and log.kept == log.total == 8
    assert open_files() == before and list(tmp_path.iterdir()) == []


def test_much_goes_to_a_file_without_a_name(tmp_path: Path) -> None:
    before = open_files()
    log = JobLog(LogFolder(str(tmp_path)))
    said = b"".join(b"line %d\n" % number for number in range(40_000))
    for at in range(0, len(said), 10_000):
        log.feed(said[at : at + 10_000])
    assert whole(log) == said and log.whole and list(tmp_path.iterdir()) == [] and open_files() == before + 1
    assert b"".join(log.blocks(5, 5000, 7)) == said[5:5000]
    log.close()
    assert open_files() == before and whole(log) == b""


@pytest.mark.parametrize("most", [10, IN_MEMORY + 10, 300_000])
def test_the_rest_is_counted(tmp_path: Path, most: int) -> None:
    log = JobLog(LogFolder(str(tmp_path)), most)
    for number in range(100):
        log.feed(bytes([number]) * 10_000)
    assert log.kept == most == len(whole(log)) and log.total == 1_000_000 and not log.whole
    assert whole(log) == b"".join(bytes([number]) * 10_000 for number in range(100))[:most]


def test_all_logs_together_have_a_bound_and_one_that_goes_makes_room(tmp_path: Path) -> None:
    shelf = LogFolder(str(tmp_path), 100_000)
    first, second = JobLog(shelf), JobLog(shelf)
    first.feed(b"a" * 70_000)
    second.feed(b"b" * 70_000)
    assert (first.kept, second.kept, shelf.room) == (70_000, 30_000, 0)
    first.close()
    assert shelf.room == 70_000
    third = JobLog(shelf)
    third.feed(b"c" * 50_000)
    assert third.kept == 50_000 and shelf.room == 20_000


def test_a_disk_that_takes_nothing_ends_the_keeping_alone(tmp_path: Path) -> None:
    log = JobLog(LogFolder(str(tmp_path / "missing")))
    log.feed(b"x" * (IN_MEMORY + 1))
    log.feed(b"y")
    assert log.kept == IN_MEMORY + 1 == len(whole(log)) and log.total == IN_MEMORY + 2 and not log.whole


def test_reading_goes_on_while_more_comes(tmp_path: Path) -> None:
    log = JobLog(LogFolder(str(tmp_path)))
    log.feed(b"x" * 100_000)
    blocks = log.blocks(size=60_000)
    first = next(blocks)
    log.feed(b"y" * 100_000)
    assert first + b"".join(blocks) == b"x" * 100_000
    assert os.listdir(tmp_path) == []
