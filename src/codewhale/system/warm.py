"""The harness's end of the fork server: a launcher forked from a warm interpreter begins in a tenth of the time that a
new one takes. Where it cannot be had, or is not up yet, launchers are started as ever."""

import asyncio
import functools
import marshal
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from types import ModuleType

from codewhale.system import forkserver, launcher
from codewhale.system.owners import Process, Spawn

BLOCK = 4096
END_SECONDS = 1.0
WANTED = 2


class Forked:
    """A launcher that the fork server has forked, or is about to: `pid` is 0 until it says which."""

    def __init__(self) -> None:
        self.pid = 0
        self.since = 0
        self.returncode: int | None = None
        self.alone = False

    def poll(self) -> int | None:
        """How it ended, once the fork server has collected it; 1 where that is gone itself."""
        if self.returncode is None and self.alone:
            state = launcher.stat(self.pid) if self.pid else None
            if state is None or state[0] != self.since or not state[3]:
                self.returncode = 1
        return self.returncode

    def wait(self) -> int:
        """How it ended; -1 while that is not known."""
        return -1 if self.returncode is None else self.returncode

    def kill(self) -> None:
        """KILL, unless it is gone."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int, /) -> None:
        """Signal, unless it is gone or not known yet."""
        if self.pid and self.returncode is None:
            launcher.send(self.pid, self.since, number)


class Warm:
    """A fork server of this process, started when first asked for and ended with `aclose`."""

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._process: Process | None = None
        self._asked: deque[Forked] = deque()
        self._running: dict[int, Forked] = {}
        self._up = False
        self._wanted = 0
        self._closed = not (sys.platform == "linux" and hasattr(os, "memfd_create"))

    @property
    def ready(self) -> bool:
        """Whether it can be asked now."""
        return self._channel is not None and self._up

    def open(self, spawn: Spawn) -> None:
        """Start it by `spawn(argv, inherited)` when it is wanted for the second time: one command alone is quicker
        without. It is ready a moment later. Nothing happens where it runs, or where there is none."""
        self._wanted += 1
        if self._closed or self._channel is not None or self._wanted < WANTED:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            head = (sys.executable, "-I", "-S", _file(forkserver))
            self._process = spawn((*head, str(theirs.fileno()), _file(launcher)), (theirs.fileno(),))
        except OSError:
            self._closed = True
            ours.close()
            return
        finally:
            theirs.close()
        ours.setblocking(False)
        self._channel = ours
        asyncio.get_running_loop().add_reader(ours.fileno(), self._read)

    def fork(
        self, arguments: Sequence[str], fds: Sequence[int], folder: str, environment: Mapping[str, str]
    ) -> Forked | None:
        """A launcher with these arguments (the first name `fds[3:]`) and `fds[:3]` for its streams; None when none can
        be had. Raises ValueError for what no program can be given, as starting one does."""
        if self._channel is None or not self.ready:
            return None
        words = [_word(word) for word in arguments]
        pairs = [_pair(name, value) for name, value in environment.items()]
        payload = os.memfd_create("launch")
        try:
            with open(payload, "wb", closefd=False) as file:
                file.write(marshal.dumps((_word(folder), pairs, words)))
            os.lseek(payload, 0, os.SEEK_SET)
            socket.send_fds(self._channel, [b"f"], [payload, *fds])
        except OSError:
            return None
        finally:
            os.close(payload)
        asked = Forked()
        self._asked.append(asked)
        return asked

    def _read(self) -> None:
        assert self._channel is not None
        try:
            data = self._channel.recv(BLOCK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        word, *numbers = data.decode().split()
        if word == "ready":
            self._up = True
        elif word == "forked" and self._asked:
            self._forked(self._asked.popleft(), int(numbers[0]), int(numbers[1]))
        elif word == "gone" and (ended := self._running.pop(int(numbers[0]), None)) is not None:
            ended.returncode = int(numbers[1])

    def _forked(self, launched: Forked, pid: int, since: int) -> None:
        launched.pid, launched.since = pid, since
        if pid:
            self._running[pid] = launched
        else:
            launched.returncode = 1

    def _lost(self) -> None:
        """Nobody forks any more, and nobody tells of those that were forked."""
        self._closed, self._up = True, False
        for launched in (*self._asked, *self._running.values()):
            launched.alone = True
        self._asked.clear()
        self._running.clear()
        if self._channel is not None:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._channel.close()
            self._channel = None

    async def aclose(self) -> None:
        """End it. Launchers that still run go on."""
        self._lost()
        process, self._process = self._process, None
        if process is None:
            return
        ended = asyncio.create_task(asyncio.to_thread(process.wait))
        if not (await asyncio.wait({ended}, timeout=END_SECONDS))[0]:
            process.kill()
        await ended


@functools.lru_cache(maxsize=512)
def _pair(name: str, value: str) -> tuple[bytes, bytes]:
    return _word(name), _word(value)


def _word(text: str) -> bytes:
    """As programs are given it. Raises ValueError."""
    word = os.fsencode(text)
    if b"\0" in word:
        raise ValueError("embedded null byte")
    return word


def _file(module: ModuleType) -> str:
    """A module's file, compiled where the interpreter has kept it so."""
    compiled = module.__spec__.cached if module.__spec__ is not None else None
    return compiled if compiled is not None and os.path.exists(compiled) else str(module.__file__)
