import asyncio
import errno
import os
import stat
from pathlib import Path

import msgspec
import pytest

from codewhale.lib.files import FileOps
from codewhale.protocol.errors import SessionBusyError, SessionError, StorageFullError
from codewhale.protocol.events import TextStreamed, TurnFinished, TurnStarted, UnknownEvent
from codewhale.session.log import SessionLog
from codewhale.session.reserve import Reserve
from codewhale.session.store import SessionStore
from support.patience import HANG
from support.storage import OPENED, FailingOps, HandClock, events, new_log, said


def reopen(log: SessionLog) -> SessionLog:
    log.close()
    return SessionLog(os.path.dirname(log.path), HandClock())


def test_what_is_appended_is_read_back_in_order(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    first = log.append([TurnStarted(1), said("one \u2028\x85\u2029 line é 中文 😀")])
    second = log.append([UnknownEvent("zork", msgspec.Raw(b'{"type":"zork","a":[1]}'))])
    assert [envelope.seq for envelope in first + second] == [2, 3, 4]
    read = list(log.read())
    assert events(read)[:3] == [(1, OPENED), *events(first)]
    assert bytes(read[3].event.raw) == b'{"type":"zork","a":[1]}'  # type: ignore[union-attr]
    assert [envelope.seq for envelope in log.read(3)] == [3, 4]
    again = reopen(log)
    assert events(again.read())[:3] == events(read)[:3]
    assert (again.seq, again.damage) == (4, type(log.damage)())
    assert [record.type for record in again.read_raw(2)] == ["turn_started", "message_added", "zork"]
    again.close()


def test_a_lone_surrogate_kills_no_append_and_memory_tells_what_disk_tells(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    (envelope,) = log.append([said("a\ud83db")])
    assert events([envelope]) == events(log.read(2))
    log.close()


def test_ephemeral_events_are_not_for_the_log(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    with pytest.raises(ValueError):
        log.append([said("x"), TextStreamed("y")])
    assert log.seq == 1
    log.close()


def test_expected_seq_and_fence_are_checked(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append([said("a")], expected_seq=1, fence=log.fence)
    with pytest.raises(SessionError, match="at seq 2, not 1"):
        log.append([said("b")], expected_seq=1)
    old = log.fence
    log = reopen(log)
    assert log.fence == old + 1
    with pytest.raises(SessionError, match="opened again"):
        log.append([said("b")], fence=old)
    assert log.seq == 2
    log.close()
    with pytest.raises(SessionError, match="closed"):
        log.append([said("c")])


def test_a_torn_end_moves_to_the_sidecar(tmp_path: Path) -> None:
    log = new_log(tmp_path, 3)
    log.close()
    whole = Path(log.path).read_bytes()
    Path(log.path).write_bytes(whole + b'{"crc":"0000')
    again = reopen(log)
    assert (again.seq, again.damage.cut_bytes) == (4, 12)
    assert Path(log.path).read_bytes() == whole
    sidecar = Path(log.path + ".corrupt")
    assert sidecar.read_bytes() == b'{"crc":"0000'
    assert stat.S_IMODE(sidecar.stat().st_mode) == 0o600
    again.append([said("goes on")])
    assert [envelope.seq for envelope in reopen(again).read()] == [1, 2, 3, 4, 5]


def test_a_missing_last_line_end_is_put_back(tmp_path: Path) -> None:
    log = new_log(tmp_path, 3)
    log.close()
    whole = Path(log.path).read_bytes()
    Path(log.path).write_bytes(whole[:-1])
    again = reopen(log)
    again.append([said("goes on")])
    assert (again.seq, again.damage.cut_bytes) == (5, 0)
    assert [envelope.seq for envelope in again.read()] == [1, 2, 3, 4, 5]
    again.close()


def test_a_newer_format_is_refused_and_left_untouched(tmp_path: Path) -> None:
    log = new_log(tmp_path, 1)
    log.close()
    data = b'{"v":2,"newer":"form"}\n{"crc":"torn'
    Path(log.path).write_bytes(data)
    with pytest.raises(SessionError, match="newer CodeWhale"):
        reopen(log)
    assert Path(log.path).read_bytes() == data
    assert not os.path.exists(log.path + ".corrupt")


async def test_barriers_that_meet_share_their_syncs(tmp_path: Path) -> None:
    ops = Counting()
    log = new_log(tmp_path, ops=ops)
    await log.barrier()
    ops.syncs = 0

    async def write(number: int) -> None:
        log.append([said(str(number))])
        await log.barrier()

    await asyncio.gather(*(write(number) for number in range(50)))
    assert 1 <= ops.syncs <= 2
    await log.barrier()
    assert ops.syncs <= 2
    log.close()


async def test_sync_soon_covers_what_came_while_it_ran(tmp_path: Path) -> None:
    ops = Counting()
    log = new_log(tmp_path, ops=ops)
    log.sync_soon()
    log.append([said("while it runs")])
    log.sync_soon()
    async with asyncio.timeout(HANG):
        while ops.syncs < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    log.close()


async def test_a_failed_sync_shows_at_the_next_barrier_and_stops_the_log(tmp_path: Path) -> None:
    ops = Counting()
    log = new_log(tmp_path, 1, ops=ops)
    ops.failing = True
    log.sync_soon()
    with pytest.raises(SessionError, match="Input/output"):
        await log.barrier()
    ops.failing = False
    with pytest.raises(SessionError):
        log.append([said("x")])
    with pytest.raises(SessionError):
        log.close()
    again = SessionLog(os.path.dirname(log.path), HandClock())
    assert again.seq == 2
    again.append([said("x")])
    await again.barrier()
    again.close()


async def test_a_cancelled_barrier_leaves_the_sync_to_the_others(tmp_path: Path) -> None:
    log = new_log(tmp_path, 1)
    waiting = [asyncio.ensure_future(log.barrier()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert done[1:] == [None, None]
    log.close()


async def test_a_log_taken_over_takes_no_more_acknowledgements(tmp_path: Path) -> None:
    log = new_log(tmp_path, 1)
    await log.barrier()
    os.unlink(os.path.join(os.path.dirname(log.path), "lock"))
    other = SessionLog(os.path.dirname(log.path), HandClock())
    log.append([said("late")])
    with pytest.raises(SessionError, match="another process has opened the session"):
        await log.barrier()
    other.close()


class Counting(FileOps):
    """Counts the syncs of files; fails them on demand."""

    def __init__(self) -> None:
        self.syncs = 0
        self.failing = False

    def fsync(self, fd: int) -> None:
        self.syncs += 1
        if self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().fsync(fd)


def test_one_session_one_holder(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    with pytest.raises(SessionBusyError, match="already open in this process"):
        SessionLog(os.path.dirname(log.path), HandClock())
    log.close()
    log.close()
    reopen(log).close()


def test_a_full_disk_at_each_of_the_first_300_writes(tmp_path: Path) -> None:
    """The refused append leaves nothing behind, what was there stays, and the turn's closing record fits."""
    reserve = tmp_path / "sessions" / ".reserve"
    for at in range(2, 302):
        ops = FailingOps(at, taken=(0, 1, 50, 5000)[at % 4], lasting=True)
        log = SessionStore(str(tmp_path), HandClock(), ops=ops).create(OPENED)
        Reserve(str(reserve)).fill()
        kept = events(log.read())
        with pytest.raises(StorageFullError, match="Free some space"):
            for number in range(300):
                kept += events(log.append([said(f"{at}.{number}"), said("twin")][: 1 + number % 2]))
        assert ops.failed
        assert not reserve.exists()
        ops.space = True
        kept += events(log.append([TurnFinished(1, "infra")]))
        assert events(log.read()) == kept
        assert Path(log.path).read_bytes().count(b"\n") == log.seq == len(kept)
        log.close()


def test_a_disk_too_full_to_begin_leaves_no_session(tmp_path: Path) -> None:
    store = SessionStore(str(tmp_path), HandClock(), ops=FailingOps(1, taken=10, lasting=True))
    with pytest.raises(StorageFullError):
        store.create(OPENED)
    assert store.summaries() == []
    assert os.listdir(tmp_path / "sessions") == []


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS, errno.EDQUOT, errno.EMFILE])
def test_other_failures_are_told_and_leave_nothing_behind(tmp_path: Path, code: int) -> None:
    ops = FailingOps(3, code, taken=10)
    log = new_log(tmp_path, 1, ops=ops)
    size = os.path.getsize(log.path)
    with pytest.raises(StorageFullError if code == errno.EDQUOT else SessionError):
        log.append([said("refused")])
    assert os.path.getsize(log.path) == size
    log.append([said("accepted")])
    assert log.seq == 3
    log.close()


def test_where_even_the_cut_fails_the_next_append_cuts_first(tmp_path: Path) -> None:
    ops = NoTruncate(3, errno.EIO, taken=10)
    log = new_log(tmp_path, 1, ops=ops)
    for _ in range(2):
        with pytest.raises(SessionError):
            log.append([said("refused")])
    ops.repaired = True
    log.append([said("accepted")])
    again = reopen(log)
    assert (again.seq, again.damage.cut_bytes, again.damage.skipped_lines) == (3, 0, 0)
    again.close()


class NoTruncate(FailingOps):
    """Cannot truncate either, until it is repaired."""

    repaired = False

    def truncate(self, fd: int, size: int) -> None:
        if not self.repaired:
            raise OSError(errno.EIO, "no")
        super().truncate(fd, size)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs a kernel that allocates ahead")
def test_the_reserve_takes_real_room(tmp_path: Path) -> None:
    new_log(tmp_path).close()
    reserve = tmp_path / "sessions" / ".reserve"
    assert reserve.stat().st_blocks * 512 >= 1 << 20


def test_ten_thousand_messages_are_read_again(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    body = "a line of ordinary text, " * 40
    for _ in range(10_000):
        log.append([said(body)])
    log.close()
    again = reopen(log)
    assert sum(1 for _ in again.read()) == 10_001
    again.close()
