"""The launcher's eyes and hands: who descends from whom, and never a signal to the wrong process."""

import ast
import os
import signal
import subprocess
import sys
import time

import pytest

from codewhale.process import launcher
from support.patience import HANG

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_descendants_are_found_however_deep() -> None:
    command = "sh -c 'sleep 600 & wait' & wait"
    top = subprocess.Popen(["sh", "-c", command], start_new_session=True)
    try:
        deadline = time.monotonic() + HANG
        while len(launcher.descendants(top.pid)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert top.pid in launcher.descendants(os.getpid())
    finally:
        os.killpg(top.pid, signal.SIGKILL)
        top.wait()


def test_g6_a_signal_reaches_only_the_process_that_began_then() -> None:
    child = subprocess.Popen(["sleep", "600"])
    state = launcher.stat(child.pid)
    assert state is not None
    launcher.send(child.pid, state[0] - 1, signal.SIGKILL)
    launcher.send(child.pid, state[0] + 1, signal.SIGKILL)
    time.sleep(0.05)
    assert child.poll() is None
    launcher.send(child.pid, state[0], signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    launcher.send(child.pid, state[0], signal.SIGKILL)


def test_what_is_gone_has_no_state() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert launcher.stat(child.pid) is None and launcher.children(child.pid) == []


def test_it_starts_without_a_package_around_it_and_imports_little() -> None:
    script = f"import sys; exec(open({launcher.__file__!r}).read(), {{'__name__': 'it'}}); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    heavy = {"enum", "subprocess", "asyncio", "json", "re", "signal", "contextlib", "site", "codewhale"}
    assert not heavy & set(ast.literal_eval(done.stdout))


def test_a_tree_is_looked_at_only_where_the_machine_has_more_than_it_may() -> None:
    found = launcher.machine()
    assert found is not None and found[0] > 1 and found[1] > 1_000_000
    # Large enough that the kernel's count of its memory, kept by processor and summed up late, cannot still be nothing.
    held = "import sys; kept = b'x' * (64 << 20); print(len(kept), flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    try:
        assert child.stdout.readline().strip() == str(64 << 20).encode()
        free = launcher.TreeLimits(10**9, 10**18)
        assert free.crossed(os.getpid()) == "" and free.next == 0.0
        assert launcher.TreeLimits(0, 1).crossed(os.getpid()) == "memory"
        assert launcher.TreeLimits(0, 0).crossed(os.getpid()) == ""
    finally:
        child.kill()
        child.communicate()


def test_looks_follow_growth_and_are_rare_without_it() -> None:
    children = [subprocess.Popen(["sleep", "600"])]
    try:
        # What other tests of this process left running is counted too.
        bounds = launcher.TreeLimits(len(launcher.descendants(os.getpid())), 0)
        assert bounds.crossed(os.getpid()) == ""
        assert bounds.next > time.monotonic()
        children += [subprocess.Popen(["sleep", "600"]) for _ in range(20)]
        bounds.seen = (0, 0)
        assert bounds.crossed(os.getpid()) == "processes"
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_the_more_runs_on_a_machine_the_more_seldom_it_is_asked() -> None:
    bounds = launcher.TreeLimits(10**9, 0)
    assert bounds.crossed(os.getpid()) == ""
    found = launcher.machine()
    assert found is not None and launcher.TICK <= bounds.pause <= launcher.TICK * max(1, found[0] / 100)
