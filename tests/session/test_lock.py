import os
import stat
from pathlib import Path

import msgspec
import pytest

from codewhale.lib.process import ProcessMark, mark
from codewhale.protocol.errors import SessionBusyError
from codewhale.session.lock import Holder, SessionLock, is_held
from support.patience import Moment
from support.storage import child, new_log


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


def test_held_until_released_with_a_growing_fence(path: str) -> None:
    first = SessionLock(path, "s")
    assert (first.fence, first.held(), is_held(path)) == (1, True, True)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with pytest.raises(SessionBusyError, match="already open in this process"):
        SessionLock(path, "s")
    first.release()
    first.release()
    assert not is_held(path)
    second = SessionLock(path, "s")
    assert second.fence == 2
    second.release()


def test_a_mark_left_by_a_dead_process_holds_nobody_off(path: str) -> None:
    for dead in (ProcessMark(2**22 - 1, "1", mark().boot, mark().space), ProcessMark(1, "0", "another boot")):
        Path(path).write_bytes(msgspec.json.encode(Holder(dead, 7)))
        os.utime(path)
        lock = SessionLock(path, "s")
        assert lock.fence == 8
        lock.release()


def test_a_live_mark_holds_even_where_the_file_system_does_not_lock(path: str) -> None:
    Path(path).write_bytes(msgspec.json.encode(Holder(mark(), 3)))
    with pytest.raises(SessionBusyError):
        SessionLock(path, "s")
    assert is_held(path)


def test_rubbish_in_the_file_is_no_holder(path: str) -> None:
    Path(path).write_bytes(b"\0\0\0\0")
    lock = SessionLock(path, "s")
    assert lock.fence == 1 and is_held(path)
    lock.release()
    assert not is_held(path)


HOLD = """
    log = store.open(arguments[0])
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    log.close()
"""


def test_a_second_process_is_told_who_holds_it(tmp_path: Path) -> None:
    log = new_log(tmp_path, 2)
    log.close()
    holder = child(HOLD, tmp_path, log.session)
    assert holder.stdout is not None
    pid = holder.stdout.readline().strip()
    folder = os.path.dirname(log.path)
    with pytest.raises(SessionBusyError, match=f"open in process {pid}"):
        SessionLock(os.path.join(folder, "lock"), log.session)
    holder.communicate("\n")
    lock = SessionLock(os.path.join(folder, "lock"), log.session)
    assert lock.fence == 3
    lock.release()


def test_a_killed_holder_is_succeeded_at_once(tmp_path: Path) -> None:
    log = new_log(tmp_path, 2)
    log.close()
    holder = child(HOLD, tmp_path, log.session)
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.kill()
    holder.communicate()
    began = Moment()
    lock = SessionLock(os.path.join(os.path.dirname(log.path), "lock"), log.session)
    assert not began.hung
    lock.release()


def test_a_killed_holder_that_nobody_has_collected_is_succeeded(tmp_path: Path) -> None:
    log = new_log(tmp_path, 2)
    log.close()
    holder = child(HOLD, tmp_path, log.session)
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    path = os.path.join(os.path.dirname(log.path), "lock")
    assert not is_held(path)
    SessionLock(path, log.session).release()
    holder.communicate()


LEAK = """
    log = store.open(arguments[0])
    lock = next(fd for fd in range(3, 64) if "lock" in os.path.basename(os.path.realpath(f"/proc/self/fd/{fd}")))
    os.set_inheritable(lock, True)
    import subprocess
    heir = subprocess.Popen(["sleep", "60"], close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print(heir.pid, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks the lock's descriptor up in /proc")
def test_a_dead_holders_child_that_keeps_the_lock_is_passed_by(tmp_path: Path) -> None:
    log = new_log(tmp_path, 2)
    log.close()
    holder = child(LEAK, tmp_path, log.session)
    assert holder.stdout is not None
    heir = int(holder.stdout.readline())
    try:
        holder.kill()
        holder.communicate()
        lock = SessionLock(os.path.join(os.path.dirname(log.path), "lock"), log.session)
        assert lock.fence == 3
        assert lock.held()
        lock.release()
    finally:
        os.kill(heir, 9)


RACE = """
    sys.stdin.readline()
    try:
        log = store.open(arguments[0])
        print("mine", log.fence, flush=True)
        sys.stdin.readline()
    except Exception as error:
        print(type(error).__name__, flush=True)
        sys.stdin.readline()
"""


def test_of_many_processes_one_gets_a_dead_holders_session(tmp_path: Path) -> None:
    log = new_log(tmp_path, 2)
    log.close()
    dead = ProcessMark(2**22 - 1, "1", mark().boot, mark().space)
    lock = Path(log.path).parent / "lock"
    lock.write_bytes(msgspec.json.encode(Holder(dead, 7)))
    racers = [child(RACE, tmp_path, log.session) for _ in range(6)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = sorted(racer.stdout.readline().strip() for racer in racers if racer.stdout is not None)
    for racer in racers:
        racer.communicate("\n")
    assert said == ["SessionBusyError"] * 5 + ["mine 8"]
