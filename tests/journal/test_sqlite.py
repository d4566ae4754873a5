"""The journal's file: who may open it, what becomes of a damaged one, and many processes at once."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from codewhale.journal.database import VERSION
from codewhale.journal.model import JournalDamaged, JournalError, JournalUnavailable, NewRun
from codewhale.journal.place import Presence, file_system
from codewhale.journal.sqlite import SqliteJournal
from codewhale.lib.clock import rfc3339
from support.patience import HANG

CLAIMER = """
import sys
from codewhale.journal.sqlite import SqliteJournal
journal = SqliteJournal(sys.argv[1])
print("open", flush=True)
while (taken := journal.runs.claim("task", sys.argv[2], 600)) is not None:
    journal.ledger.intend(taken[1], "call", {})
    journal.runs.end(taken[1], "completed", {"by": sys.argv[2]})
    print(taken[0].id, flush=True)
"""


def filled(home: Path, count: int = 60) -> None:
    journal = SqliteJournal(str(home))
    for number in range(count):
        journal.runs.add(NewRun(f"task_{number:04}", "task", {"prompt": f"number {number} " * 30}))
    journal.close()


def test_three_processes_claim_each_run_once(tmp_path: Path) -> None:
    filled(tmp_path)
    command = [sys.executable, "-c", CLAIMER, str(tmp_path)]
    started = [subprocess.Popen([*command, f"w{one}"], stdout=subprocess.PIPE, text=True) for one in range(3)]
    done = [line for one in started for line in one.communicate(timeout=120)[0].split() if line != "open"]
    assert [one.returncode for one in started] == [0, 0, 0]
    assert sorted(done) == [f"task_{number:04}" for number in range(60)]


def test_what_was_on_disk_survives_a_kill(tmp_path: Path) -> None:
    filled(tmp_path)
    started = subprocess.Popen([sys.executable, "-c", CLAIMER, str(tmp_path), "w"], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    done = [started.stdout.readline().strip() for _ in range(8)][1:]
    started.send_signal(signal.SIGKILL)
    started.communicate(timeout=60)
    journal = SqliteJournal(str(tmp_path))
    assert journal.doubt == "unclean"
    ended = {run.id for run in journal.runs.rows("task", ("completed",), 100)}
    assert set(done) <= ended and sum(journal.runs.counts("task").values()) == 60
    journal.trusted()
    journal.close()
    again = SqliteJournal(str(tmp_path))
    assert again.doubt == ""
    again.close()


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_file_opens_or_is_set_aside(tmp_path: Path, seed: int) -> None:
    filled(tmp_path)
    dice, path = random.Random(seed), tmp_path / "journal" / "journal.sqlite3"
    data = bytearray(path.read_bytes())
    if seed % 2:
        del data[dice.randrange(len(data)) :]
    else:
        for _ in range(dice.choice((1, 40))):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)
    journal = SqliteJournal(str(tmp_path))
    assert journal.doubt
    runs = journal.runs.rows("task")
    if journal.doubt.startswith("damaged"):
        aside = Path(journal.doubt.removeprefix("damaged: "))
        assert runs == () and (aside / path.name).read_bytes() == bytes(data)
    else:
        assert all(run.data["prompt"] == f"number {int(run.id[5:])} " * 30 for run in runs)
    journal.runs.add(NewRun("after", "task"))
    journal.close()


def test_its_clock_is_never_behind_the_one_that_sessions_are_told_by(tmp_path: Path) -> None:
    journal = SqliteJournal(str(tmp_path))
    for _ in range(2_000):
        before = rfc3339(time.time())
        assert before <= rfc3339(journal.now())
    journal.close()


def test_a_file_is_not_set_aside_under_another_process(tmp_path: Path) -> None:
    filled(tmp_path)
    one, other = SqliteJournal(str(tmp_path)), SqliteJournal(str(tmp_path))
    with pytest.raises(JournalDamaged, match="other"):
        one.renew()
    other.close()
    assert os.path.isdir(one.renew()) and one.runs.rows("task") == ()
    one.close()


@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe"])
def test_what_is_no_file_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    SqliteJournal(str(tmp_path)).close()
    path, other = tmp_path / "journal" / "journal.sqlite3", tmp_path / "other"
    path.rename(tmp_path / "former" if kind == "dangling" else other)
    before = sorted(tmp_path.iterdir())
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            path.symlink_to(other)
    with pytest.raises(JournalUnavailable, match="Move it away"):
        SqliteJournal(str(tmp_path))
    assert sorted(tmp_path.iterdir()) == before
    path.rmdir() if kind == "folder" else path.unlink()
    SqliteJournal(str(tmp_path)).close()


def test_a_file_that_was_emptied_is_damage_and_an_empty_one_after_a_crash_is_none(tmp_path: Path) -> None:
    SqliteJournal(str(tmp_path)).close()
    folder = tmp_path / "journal"
    (folder / "journal.sqlite3").write_bytes(b"")
    journal = SqliteJournal(str(tmp_path))
    assert journal.doubt.startswith("damaged")
    journal.close()
    (folder / "closed.json").unlink()  # as where it was being made
    (folder / "journal.sqlite3").write_bytes(b"")
    journal = SqliteJournal(str(tmp_path))
    assert journal.doubt == "unclean"
    journal.close()


def test_a_file_that_was_emptied_after_a_crash_is_damage_too(tmp_path: Path) -> None:
    made = "import os, sys\nfrom codewhale.journal.sqlite import SqliteJournal\njournal = SqliteJournal(sys.argv[1])\n"
    for left, doubt in ((None, "unclean"), (b"", "damaged")):
        subprocess.run(
            [sys.executable, "-c", made + "os.kill(os.getpid(), 9)", str(tmp_path)], timeout=HANG, check=False
        )
        if left is not None:
            for path in (tmp_path / "journal").glob("journal.sqlite3*"):
                path.write_bytes(left)
        journal = SqliteJournal(str(tmp_path))
        assert journal.doubt.startswith(doubt)
        journal.close()


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    path = tmp_path / "journal" / "journal.sqlite3"
    journal = SqliteJournal(str(tmp_path))
    with journal._database.write() as base:
        base.execute(f"PRAGMA user_version = {VERSION + 1}")
    journal.close()
    before = path.read_bytes()
    with pytest.raises(JournalUnavailable, match="newer"):
        SqliteJournal(str(tmp_path))
    assert path.read_bytes() == before


def test_a_network_file_system_is_refused_with_the_reason(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    share = tmp_path / "a share"
    share.mkdir()
    named = str(share).replace(" ", "\\040")
    mounts.write_text(
        "1 0 0:1 / / rw - ext4 /dev/x rw\n"
        f"2 1 0:2 / {named} rw,relatime shared:1 - nfs4 server:/x rw\n"
        f"3 1 0:3 / {named}more rw - tmpfs tmpfs rw\n"
    )
    assert file_system(str(share / "home"), str(mounts)) == "nfs4"
    assert file_system(str(tmp_path), str(mounts)) == "ext4"
    with pytest.raises(JournalUnavailable, match=r"network file system \(nfs4\).*CODEWHALE_HOME"):
        SqliteJournal(str(share / "home"), mounts=str(mounts))
    assert not (share / "home").exists()
    SqliteJournal(str(tmp_path / "home"), mounts=str(mounts)).close()


def test_a_write_ahead_log_that_is_gone_is_told(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", CLAIMER.replace("while", "journal.runs.add(__import__('codewhale.journal.model', "
        "fromlist=['x']).NewRun('one', 'task'))\nprint('added', flush=True)\nimport time; time.sleep(600)\nwhile"),
         str(tmp_path), "w"], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert started.stdout is not None
    assert [started.stdout.readline().strip() for _ in range(2)] == ["open", "added"]
    started.kill()
    started.communicate(timeout=60)
    folder = tmp_path / "journal"
    shutil.move(folder / "journal.sqlite3-wal", folder / "elsewhere")
    journal = SqliteJournal(str(tmp_path))
    assert journal.doubt and journal.runs.rows("task") == ()
    journal.close()


@contextmanager
def descriptors(spare: int) -> Iterator[None]:
    """Meanwhile no more than so many files can be opened."""
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 16, hard))
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(spare):
            os.close(held.pop())
        yield
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def test_a_process_without_descriptors_takes_no_file_for_damaged(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    refused = 0
    for spare in range(8):
        with descriptors(spare), suppress(JournalError):
            refused += 1
            journal = SqliteJournal(str(tmp_path))
            refused -= 1
            assert len(journal.runs.rows("task")) == 3
            journal.runs.add(NewRun("task_0000", "task"))
            journal.close()
    assert refused >= 2
    journal = SqliteJournal(str(tmp_path))
    assert len(journal.runs.rows("task")) == 3 and not list((tmp_path / "journal").glob("damaged-*"))
    journal.close()


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    home = tmp_path / "small"
    home.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(home)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted")
    try:
        filled(home, 3)
        fill = home / "fill"
        with suppress(OSError), open(fill, "wb", 0) as file:
            while True:
                file.write(b"x" * 4096)
        with pytest.raises(JournalError, match="disk is full") as caught:
            SqliteJournal(str(home)).runs.add(NewRun("more", "task", {"prompt": "x" * 100_000}))
        assert not isinstance(caught.value, JournalDamaged)
        fill.unlink()
        journal = SqliteJournal(str(home))
        assert len(journal.runs.rows("task")) == 3
        journal.close()
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


def test_whoever_asked_whether_it_is_alone_is_still_there(tmp_path: Path) -> None:
    path = str(tmp_path / "open")
    one, other = Presence(path), Presence(path)
    assert (one.first, other.first, one.alone()) == (True, False, False)
    other.release()
    third = Presence(path)
    assert not third.first and not third.alone()
    one.release()
    assert third.alone()
    third.release()
