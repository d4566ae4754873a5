"""What tests of running things share: a call's surroundings, waiting on a condition, looking at processes."""

import asyncio
import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CallContext
from support.patience import HANG


def context(workspace: Path, session: str = "one", progress: Callable[[str], None] = lambda line: None) -> CallContext:
    """A call in `session`."""
    return CallContext("call_1", session, str(workspace), Mode.YOLO, progress, lambda: False)


def answers(*programs: str) -> bool:
    """Whether each program is there and really runs: some are only a shim that has nothing behind it."""
    return all(
        shutil.which(name) is not None
        and subprocess.run([name, "--version"], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
        for name in programs
    )


class LoopTime:
    """The time of the running loop, which a test moves on: what was to happen by then happens at once."""

    def __init__(self) -> None:
        loop, self._ahead = asyncio.get_running_loop(), 0.0
        real = loop.time
        loop.time = lambda: real() + self._ahead  # type: ignore[method-assign]

    def move(self, seconds: float) -> None:
        """Let so much time have passed."""
        self._ahead += seconds


async def eventually(condition: Callable[[], object], seconds: float = HANG) -> None:
    """Return as soon as the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        await asyncio.sleep(0.01)


def running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def commands(*argv: str) -> list[int]:
    """The processes that were started with exactly these words, seen from outside whatever holds them."""
    wanted = "".join(f"{word}\0" for word in argv).encode()
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{number}/cmdline").read_bytes() == wanted:
                found.append(int(number))
    return found


def odd_seconds() -> str:
    """About a minute, as no other test says it: what sleeps for so long can be told apart."""
    return f"60.{random.randrange(10**12):012}"


def pids(*files: Path) -> list[int]:
    """The numbers written to these files; one that is not written yet is left out."""
    texts = [file.read_text() for file in files if file.exists()]
    return [int(text) for text in texts if text.strip()]


def program(folder: Path, name: str, text: str) -> Path:
    """An executable script."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def open_files() -> int:
    """Descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))
