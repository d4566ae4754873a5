"""A process that keeps exchanging a folder `d` with a symlink that leads out, as fast as it can."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from support.patience import HANG

_PROGRAM = """
import ctypes, os, sys
os.chdir(sys.argv[1])
os.symlink("../out", "link")
rename = ctypes.CDLL(None, use_errno=True).renameat2
print("ready", flush=True)
for _ in range(int(sys.argv[2])):
    if rename(-100, b"d", -100, b"link", 2):
        sys.exit(os.strerror(ctypes.get_errno()))
"""


def while_flipping(root: Path, flips: int, attempt: Callable[[int], None]) -> tuple[int, int]:
    """Call `attempt(n)` again and again until `d` in `root` was flipped `flips` times. Answers (attempts that
    went through, attempts refused); an attempt is refused when it raises."""
    argv = [sys.executable, "-c", _PROGRAM, str(root), str(flips)]
    done = tried = 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as flipper:
        assert flipper.stdout is not None and flipper.stdout.readline() == "ready\n"
        deadline = time.monotonic() + HANG
        while flipper.poll() is None:
            assert time.monotonic() < deadline
            tried += 1
            with contextlib.suppress(Exception):
                attempt(tried)
                done += 1
    assert flipper.returncode == 0
    return done, tried - done
