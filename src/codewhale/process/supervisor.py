"""Who owns a child process: the launcher program with its whole tree, or the harness itself for a short program.

An owner says what happens through `report(word, *numbers)`: started PID, failed ERRNO, exit CODE LEFT, left LEFT,
over WHAT, and at last gone.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from codewhale.process import launcher
from codewhale.process.itself import interpreter

if TYPE_CHECKING:
    from subprocess import Popen

Report = Callable[..., None]
TERM_SECONDS = 0.3
DYING_SECONDS = 0.1
Spawn = Callable[[Sequence[str], Sequence[int]], "Popen[bytes]"]


def _program() -> str:
    """The launcher's path, compiled where the interpreter has kept it so: a few milliseconds less for every command."""
    compiled = launcher.__spec__.cached if launcher.__spec__ is not None else None
    with contextlib.suppress(OSError):
        if compiled is not None and os.stat(compiled).st_mtime >= os.stat(launcher.__file__).st_mtime:
            return compiled
    return launcher.__file__


class Supervised:
    """Owned by the launcher program: the tree ends with the order, or with the harness."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._process: Popen[bytes] | None = None
        self._control = -1
        self._status = self._began = -1
        self._buffer = b""
        self._lines: list[list[str]] = []
        self._problem: str | None = None
        self._told = False
        self._command = (0, 0)
        self._pause = 0.001
        self._words: list[str] = []
        self._namespace = self._ended = False

    def start(self, spawn: Spawn, argv: Sequence[str], options: Sequence[int], words: Sequence[str] = ()) -> None:
        """Start the launcher with `spawn(argv, inherited fds)`; `options` are its tty flag and three ceilings, `words`
        what a sandbox needs. Raises OSError for a bad working directory."""
        control, self._control = os.pipe()
        self._status, status = os.pipe()
        self._began, began = os.pipe()
        theirs = (control, status, began)
        self._words = list(words)
        self._namespace = "inits=1" in words
        head = (interpreter(), "-I", "-S", _program())
        try:
            self._process = spawn((*head, *map(str, (*theirs, *options, len(words))), *words, *argv), theirs)
        except BaseException:
            for fd in (self._control, self._status, self._began):
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        for fd in (self._status, self._began):
            os.set_blocking(fd, False)
        self._loop.add_reader(self._began, self._begin)
        self._loop.add_reader(self._status, self._read)

    def _begin(self) -> None:
        """The exec pipe has an errno or is closed: the command has begun, or cannot."""
        with contextlib.suppress(BlockingIOError):
            self._problem = os.read(self._began, 16).decode()
            self._loop.remove_reader(self._began)
            os.close(self._began)
            self._pass_on()

    def _read(self) -> None:
        try:
            data = os.read(self._status, 4096)
        except BlockingIOError:
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        self._lines += [line.decode().split() for line in lines]
        if self._problem is None:
            self._begin()
        self._pass_on()
        if not data:
            self._loop.remove_reader(self._status)
            os.close(self._status)
            self._close_control()
            self._reap()

    def _pass_on(self) -> None:
        """Report what is known, the beginning before all else."""
        if self._lines and self._lines[0][0] == "forked":
            _, command, started = self._lines.pop(0)
            self._command = (int(command), int(started))
        if self._problem is None or not self._command[0]:
            return
        if not self._told:
            self._told = True
            self._report(*(("failed", self._problem) if self._problem else ("started", str(self._command[0]))))
        while self._lines:
            self._report(*self._lines.pop(0))

    def _reap(self) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._pause = min(self._pause * 2, 0.1)
            self._loop.call_later(self._pause, self._reap)
            return
        if self._problem is None:
            self._problem = ""
            self._loop.remove_reader(self._began)
            os.close(self._began)
        if self._process.returncode and not self._ended:
            self._kill_session()
            self._loop.call_later(DYING_SECONDS, self._tidy)
        else:
            self._report("gone")

    def _tidy(self) -> None:
        """Give back the names that a launcher held which was killed itself: what could have used them is gone."""
        with contextlib.suppress(OSError):
            hold = launcher.Hold(self._words)
            hold.release()
            os.close(hold.lock)
        self._report("gone")

    def _close_control(self) -> None:
        if self._control >= 0:
            os.close(self._control)
            self._control = -1

    def kill(self) -> None:
        """Order the launcher to end the tree; woken first, should the command have stopped it."""
        if self._control < 0 or self._process is None:
            return
        with contextlib.suppress(OSError):
            os.write(self._control, b"K")
        self._process.send_signal(signal.SIGCONT)

    def force(self) -> None:
        """The launcher did not answer: end it, and the command's session, directly. The one of a sandbox may be left to
        itself: nothing in there can reach it, and when that is gone it gives back what it holds."""
        if self._process is not None and self._namespace:
            launcher.kill_inits(self._process.pid)
        elif self._process is not None:
            self._force(self._process)

    def _force(self, process: "Popen[bytes]") -> None:
        launcher.freeze(process.pid)
        tree = launcher.descendants(process.pid)
        self._ended = bool(tree)
        for pid, (started, _) in tree.items():
            launcher.send(pid, started, signal.SIGKILL)
        process.kill()
        if not tree:
            self._kill_session()

    def _kill_session(self) -> None:
        """Without a launcher: the command's own session is what can still be told apart."""
        command, started = self._command
        state = launcher.stat(command) if command else None
        if not command or (state is not None and state[0] != started):
            return
        for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
            state = launcher.stat(int(name)) if name.isdigit() else None
            if state is not None and state[1] == command and state[0] >= started:
                launcher.send(int(name), state[0], signal.SIGKILL)


class Direct:
    """Owned by the harness: one program in a session of its own, ended with its process group."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._process: Popen[bytes] | None = None
        self._watch = -1
        self._killed = False

    def start(self, spawn: Spawn, argv: Sequence[str], words: Sequence[str] = ()) -> None:
        """Start the program, with what its sandbox needs of `words`. Raises OSError as the system says it."""
        hold = launcher.Hold([word for word in words if word.startswith(("filter=", "mask="))])
        if not hold.filter:
            return self.watch(spawn(argv, ()))
        fd = os.memfd_create("filter")
        try:
            os.write(fd, hold.filter)
            os.lseek(fd, 0, os.SEEK_SET)
            self.watch(spawn(hold.fill(list(argv), fd), (fd,)))
        finally:
            os.close(fd)

    def watch(self, process: "Popen[bytes]", pidfd: bool = True) -> None:
        """Own a started process; `pidfd` False looks at it now and then, as where the kernel cannot tell."""
        self._process = process
        self._loop.call_soon(self._report, "started", str(process.pid))
        try:
            self._watch = os.pidfd_open(process.pid) if pidfd else -1
        except (AttributeError, OSError):
            self._watch = -1
        if self._watch < 0:
            self._poll(0.001)
        else:
            self._loop.add_reader(self._watch, self._exited)

    def _poll(self, pause: float) -> None:
        assert self._process is not None
        if pause <= 0.001 or self._process.poll() is None:
            self._loop.call_later(pause, self._poll, min(pause * 1.5, 0.05))
        else:
            self._end()

    def _exited(self) -> None:
        self._loop.remove_reader(self._watch)
        os.close(self._watch)
        if self._killed:
            self._signal(signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        assert self._process is not None
        self._report("exit", str(self._process.wait()), "0")
        self._report("gone")

    def kill(self) -> None:
        """TERM to its group now, KILL a moment later."""
        if not self._killed:
            self._killed = True
            self._signal(signal.SIGTERM)
            self._loop.call_later(TERM_SECONDS, self.force)

    def force(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        """Only while the program is not yet collected: until then its pid and group are its own."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)
