import os
import subprocess
import sys

from msgspec.structs import replace

from codewhale.lib import process


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
