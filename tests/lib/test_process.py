import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from codewhale.lib import process
from support.patience import HANG


def test_this_process_is_alive() -> None:
    mark = process.mark()
    assert mark.pid == os.getpid()
    assert process.alive(mark) is True


def test_a_process_that_ended_is_not_alive_and_neither_is_its_successor_of_the_same_number() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = replace(process.mark(), pid=child.pid, start=process.start_time(child.pid))
    assert process.alive(mark) is True
    if mark.start:
        assert process.alive(replace(mark, start=mark.start + "1")) is False
    child.communicate(b"\n")
    assert process.alive(mark) is False


def test_another_boot_and_another_machine() -> None:
    mark = process.mark()
    assert process.alive(replace(mark, boot="earlier")) is False
    assert process.alive(replace(mark, space="elsewhere")) is None
    assert process.alive(process.ProcessMark()) is False


def test_a_killed_process_that_nobody_has_collected_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = replace(process.mark(), pid=child.pid, start=process.start_time(child.pid))
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.alive(mark) is False
    child.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_process_whose_first_thread_has_ended_is_alive_while_another_runs() -> None:
    lines = "import ctypes, threading; threading.Thread(target=input).start(); ctypes.CDLL(None).pthread_exit(None)"
    child = subprocess.Popen([sys.executable, "-c", lines], stdin=subprocess.PIPE)
    mark = replace(process.mark(), pid=child.pid, start=process.start_time(child.pid))
    deadline = time.monotonic() + HANG
    while b") Z " not in Path(f"/proc/{child.pid}/stat").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert process.alive(mark) is True
    child.kill()
    child.communicate()
