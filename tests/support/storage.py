"""What the tests of stores share: events to record, a clock that is moved by hand, file operations that fail on
demand or are recorded, and child processes that run a few lines against a home."""

import errno
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import codewhale
from codewhale.lib.files import FileOps
from codewhale.protocol.events import Event, MessageAdded, SessionOpened
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.modes import Mode
from codewhale.session.log import SessionLog
from codewhale.session.store import SessionStore

OPENED = SessionOpened(version=1, workspace="/w", mode=Mode.AGENT, provider="scripted", model="m")


class HandClock:
    """Stands still until it is moved."""

    def __init__(self, seconds: float = 1_000_000.0) -> None:
        self.seconds = seconds

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds


def said(text: str, role: str = "user") -> MessageAdded:
    """A message event."""
    return MessageAdded(Message(role, (Text(text),)))  # type: ignore[arg-type]


def new_log(home: Path, count: int = 0, ops: FileOps | None = None) -> SessionLog:
    """A held log of a new session with its opening and `count` messages."""
    store = SessionStore(str(home), HandClock(), ops=ops or FileOps())
    log = store.create(OPENED)
    for number in range(1, count + 1):
        log.append([said(f"message {number} é\u2028 {'x' * (number % 7)}")])
    return log


def events(envelopes: Iterable[object]) -> list[tuple[int, Event]]:
    """The seqs and events of envelopes."""
    return [(envelope.seq, envelope.event) for envelope in envelopes]  # type: ignore[attr-defined]


class QuickOps(FileOps):
    """The disk, with no wait for it."""

    def fsync(self, fd: int) -> None:
        pass

    def sync_dir(self, path: str) -> None:
        pass


class FailingOps(QuickOps):
    """The disk, but write number `at` (from 1) takes `taken` bytes and the next one raises `code`; with `lasting`
    every later one does too, until `space` is set."""

    def __init__(self, at: int, code: int = errno.ENOSPC, *, taken: int = 0, lasting: bool = False) -> None:
        self.at, self.code, self.taken, self.lasting = at, code, taken, lasting
        self.writes = 0
        self.failed = 0
        self.space = False

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self.writes += 1
        if self.space or self.writes < self.at or (self.writes > self.at and not self.lasting and self.failed):
            return super().write(fd, data)
        if self.writes == self.at and self.taken:
            return super().write(fd, data[: self.taken])
        self.failed += 1
        raise OSError(self.code, os.strerror(self.code))


def child(lines: str, home: Path, *arguments: str, failpoints: str = "") -> "subprocess.Popen[str]":
    """A process that runs `lines` with `store`, `home` and `arguments` set; what it prints is its stdout."""
    head = """
        import asyncio, os, sys, time
        from codewhale.lib.clock import SystemClock
        from codewhale.session.store import SessionStore
        from support.storage import OPENED, said
        home, arguments = sys.argv[1], sys.argv[2:]
        store = SessionStore(home, SystemClock())
    """
    roots = [str(Path(codewhale.__file__).parents[1]), str(Path(__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots), "CODEWHALE_FAILPOINTS": failpoints}
    code = textwrap.dedent(head) + textwrap.dedent(lines)
    argv = [sys.executable, "-c", code, str(home), *arguments]
    return subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
