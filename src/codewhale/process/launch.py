"""Every child process of the product starts here: its environment, its limits, its output, and its end.

A supervised command runs under the launcher program, which owns its whole tree; a short harness-chosen program (git,
rg) runs directly in a session of its own. Waiting is always on process exit and a short grace, never on a pipe's end.
"""

import asyncio
import errno
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from codewhale.process.command import Ceiling, Completed, Launch, SandboxProfile, hide_own
from codewhale.process.confinement import Confined, confine
from codewhale.process.streams import EarlyOutput, HeadTail, PipeReader, PipeWriter
from codewhale.process.supervisor import Direct, Supervised
from codewhale.protocol.errors import ToolError

if TYPE_CHECKING:
    from subprocess import Popen

    from codewhale.process.sandbox.watch import CommandWatch

__all__ = ("Ceiling", "Child", "Completed", "Launch", "SandboxProfile", "run", "settle", "start")

GRACE = 0.15
KILL_SECONDS = 1.7

OnOutput = Callable[[str, bytes], None]


def _spawn(
    argv: Sequence[str], confined: Confined, stdio: tuple[int, int, int], inherited: Sequence[int]
) -> "Popen[bytes]":
    import subprocess

    hide_own()
    launch = confined.launch
    return subprocess.Popen(
        argv,
        cwd=launch.cwd,
        env=confined.env,
        stdin=stdio[0],
        stdout=stdio[1],
        stderr=stdio[2],
        pass_fds=inherited,
        start_new_session=not launch.foreground,
        process_group=0 if launch.foreground else None,
    )


class Child:
    """A running command. Made by `start`."""

    def __init__(self, asked: Launch, confined: Confined, on_output: OnOutput) -> None:
        self.pid = 0
        self.leftovers = 0
        self.confined = confined.mechanism
        self._launch = launch = confined.launch
        self._asked = asked
        self._hold = confined
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._begun = time.monotonic()
        tail = launch.output_limit // 3
        self._kept = {stream: HeadTail(launch.output_limit - tail, tail) for stream in ("stdout", "stderr")}
        self._early = EarlyOutput(self._take, watch=bool(confined.mechanism))
        self._readers: list[PipeReader] = []
        self._stdin: PipeWriter | None = None
        self._owner: Supervised | Direct | None = None
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._started.add_done_callback(lambda started: started.cancelled() or started.exception())
        self._done: asyncio.Future[Completed] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._code: int | None = None
        self._exited_after: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._finishing: asyncio.TimerHandle | None = None
        self._killing: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._timed_out = self._killed = False
        self._over = ""

    async def begin(self) -> None:
        self._launched()
        if self._hold.watch is not None:
            follow = self._hold.watch.follow(self._gone, self._done, self._tell)
            self._watching = self._loop.create_task(follow)
        await asyncio.shield(self._started)
        self._feed()

    def _launched(self) -> None:
        ends = _Ends(self._launch)
        try:
            self._begin(ends)
        except BaseException:
            ends.close_ours()
            raise
        finally:
            ends.close_theirs()
        self._attach(ends)

    def _feed(self) -> None:
        if self._launch.stdin and self._stdin is not None:
            self._stdin.feed(self._launch.stdin, then_close=not self._launch.keep_stdin)

    def _begin(self, ends: "_Ends") -> None:
        launch = self._launch

        def spawn(argv: Sequence[str], inherited: Sequence[int]) -> "Popen[bytes]":
            return _spawn(argv, self._hold, ends.theirs, inherited)

        if launch.supervised:
            ceiling = launch.ceiling
            options = (int(launch.tty), ceiling.processes, ceiling.memory, ceiling.file_size)
            supervised = Supervised(self._report)
            supervised.start(spawn, launch.argv, options, self._hold.words)
            self._owner = supervised
        else:
            direct = Direct(self._report)
            direct.start(spawn, launch.argv, self._hold.words)
            self._owner = direct

    def _attach(self, ends: "_Ends") -> None:
        for stream, fd in ends.outputs.items():
            self._readers.append(PipeReader(fd, self._heard(stream), self._advance, stream))
        if ends.stdin is not None:
            self._stdin = PipeWriter(ends.stdin, end=b"\x04" if self._launch.tty else None)

    def _heard(self, stream: str) -> Callable[[bytes], None]:
        return lambda data: self._early.feed(stream, data)

    def _take(self, stream: str, data: bytes) -> None:
        self._kept[stream].feed(data)
        self._on_output(stream, data)

    def _report(self, word: str, *rest: str) -> None:
        if word == "started":
            self.pid = int(rest[0])
            if self._launch.seconds is not None:
                self._timer = self._loop.call_later(self._launch.seconds, self._time_out)
            if not self._started.done():
                self._started.set_result(None)
        elif word == "failed" and not self._started.done():
            self._started.set_exception(OSError(int(rest[0]), os.strerror(int(rest[0])), self._launch.argv[0]))
        elif word == "exit":
            self._exited(int(rest[0]), int(rest[1]))
        elif word == "left":
            self.leftovers = int(rest[0])
        elif word == "over":
            self._over = rest[0]
        elif word == "gone":
            self._tree_gone()

    def _exited(self, code: int | None, left: int) -> None:
        self._code = code
        self.leftovers = left
        self._exited_after = time.monotonic() - self._begun
        if self._timer is not None:
            self._timer.cancel()
        if not self._ordered:
            self._finish_soon()

    @property
    def _ordered(self) -> bool:
        """Whether the tree is being ended: then the result waits for that."""
        return self._timed_out or self._killed or bool(self._over)

    def _tree_gone(self) -> None:
        if self._never_began():
            self._killing = self._loop.create_task(self._launch_again())
            return
        if not self._started.done():
            self._started.set_exception(OSError(errno.ECHILD, "the launcher died", self._launch.argv[0]))
        if self._exited_after is None:
            self._exited(None, 0)
        self.leftovers = 0
        self._gone.set_result(None)
        self._advance()
        self._finish_soon()

    def _finish_soon(self) -> None:
        self._finishing = self._loop.call_later(GRACE, self._finish)

    def _never_began(self) -> bool:
        """Whether the sandbox could not lay out its view, because something on the machine went away just then."""
        for reader in self._readers:
            reader.drain()
        return self._code == 1 and self._early.complained and not self._ordered

    async def _launch_again(self) -> None:
        """Once more, with the view as the machine is now; what the sandbox says then is the last word."""
        if self._finishing is not None:
            self._finishing.cancel()
        self._close()
        self._readers, self._stdin = [], None
        complaint, self._early = self._early, EarlyOutput(self._take, watch=False)
        self._exited_after = None
        try:
            self._hold = await confine(self._asked, self._hold.watch)
            if self._ordered:
                return self._tree_gone()
            self._launch = self._hold.launch
            self._launched()
        except (OSError, ToolError):
            complaint.end()
            self._exited(1, 0)
            return self._tree_gone()
        self._code = None
        self._feed()
        return None

    def _advance(self) -> None:
        """Finished early when there is nothing left to wait for."""
        if self._gone.done() and not any(reader.open for reader in self._readers):
            self._finish()

    def _finish(self) -> None:
        for reader in self._readers:
            reader.drain()
        if self._gone.done():
            self._close()
        if self._done.done() or self._looking is not None:
            return
        if self._hold.watch is None:
            self._complete()
        else:
            self._looking = self._loop.create_task(self._look(self._hold.watch))

    async def _look(self, watch: "CommandWatch") -> None:
        await watch.look(self._gone, self._tell)
        self._complete()

    def _complete(self) -> None:
        self._early.end()
        self._done.set_result(self._completed())

    def _tell(self, text: str) -> None:
        self._early.feed(
            "stdout" if self._launch.merge or self._launch.tty else "stderr", text.encode("utf-8", "replace")
        )

    def _completed(self) -> Completed:
        stdout, stdout_gap = self._kept["stdout"].kept()
        stderr, stderr_gap = self._kept["stderr"].kept()
        return Completed(
            exit_code=self._code,
            stdout=stdout,
            stderr=stderr,
            stdout_total=self._kept["stdout"].total,
            stderr_total=self._kept["stderr"].total,
            timed_out=self._timed_out,
            killed=self._killed,
            seconds=self._exited_after or 0.0,
            leftovers=self.leftovers,
            stdout_gap=stdout_gap,
            stderr_gap=stderr_gap,
            over=self._over,
            confined=self.confined,
        )

    def _time_out(self) -> None:
        if self._exited_after is None and not self._killed:
            self._timed_out = True
            self._killing = self._loop.create_task(self._end())

    def _close(self) -> None:
        for reader in self._readers:
            reader.close()
        if self._stdin is not None:
            self._stdin.close()

    async def write(self, data: bytes) -> None:
        """Write to its standard input as fast as it reads. Raises BrokenPipeError when that is closed."""
        if self._stdin is None:
            raise BrokenPipeError("standard input was never open")
        await self._stdin.write(data)

    def hold(self, stream: str, held: bool) -> None:
        """Read no more of what it writes to a stream, until that is let go: then it waits."""
        for reader in self._readers:
            if reader.stream == stream:
                reader.hold(held)

    async def close_stdin(self) -> None:
        """End its input (^D on a pseudo-terminal)."""
        if self._stdin is not None:
            await self._stdin.finish()

    async def wait(self) -> Completed:
        """The end of the command itself; what it left behind may still run. Cancelling this stops the waiting alone."""
        return await asyncio.shield(self._done)

    async def ended(self) -> None:
        await asyncio.shield(self._gone)
        if self._watching is not None:
            await asyncio.shield(self._watching)

    async def kill(self) -> None:
        """End the whole tree: gone within two seconds. Does nothing to what is gone already."""
        if self._exited_after is None and not self._timed_out:
            self._killed = True
        await self._end()

    async def _end(self) -> None:
        if self._owner is not None and not self._gone.done():
            self._owner.kill()
            await asyncio.wait((self._gone,), timeout=KILL_SECONDS)
        if self._owner is not None and not self._gone.done():
            self._owner.force()
            await asyncio.wait((self._gone,), timeout=0.3)
        if not self._gone.done():
            self._finish()
            self._close()
        elif self._watching is not None:
            await asyncio.shield(self._watching)


class _Ends:
    """Both ends of a child's three streams: `theirs` goes to the child, the rest stays here."""

    def __init__(self, launch: Launch) -> None:
        self.outputs: dict[str, int] = {}
        self.stdin: int | None = None
        self._opened: list[int] = []
        if launch.attached:
            self.theirs = (0, 1, 2)
        elif launch.tty:
            self.theirs = self._terminal()
        else:
            self.theirs = self._pipes(launch)

    def _terminal(self) -> tuple[int, int, int]:
        import termios

        master, slave = os.openpty()
        termios.tcsetwinsize(slave, (40, 120))
        self.outputs["stdout"] = master
        self.stdin = os.dup(master)
        self._opened = [slave]
        return slave, slave, slave

    def _pipes(self, launch: Launch) -> tuple[int, int, int]:
        if launch.stdin or launch.keep_stdin:
            stdin, self.stdin = os.pipe()
        else:
            stdin = os.open(os.devnull, os.O_RDONLY)
        self.outputs["stdout"], stdout = os.pipe()
        self._opened = [stdin, stdout]
        if launch.merge:
            return stdin, stdout, stdout
        self.outputs["stderr"], stderr = os.pipe()
        self._opened.append(stderr)
        return stdin, stdout, stderr

    def close_theirs(self) -> None:
        for fd in self._opened:
            os.close(fd)

    def close_ours(self) -> None:
        for fd in (*self.outputs.values(), *(() if self.stdin is None else (self.stdin,))):
            os.close(fd)


async def run(launch: Launch) -> Completed:
    """Run to the end. What the command leaves running is counted and ended too: nobody could own it afterwards.

    On cancellation the whole tree is gone before CancelledError leaves. Raises OSError as the system says it (ENOENT:
    no such program or directory), ToolError not_available for a profile this machine cannot give, ValueError for one
    that there is not.
    """
    child = await start(launch)
    try:
        return await child.wait()
    finally:
        await settle(child.kill())


async def start(launch: Launch, on_output: OnOutput | None = None) -> Child:
    """Start and return at once; `on_output(stream, data)` sees every byte, stream being "stdout" or "stderr".

    Raises like `run`. The caller must `kill()` the child or await `ended()`.
    """
    confined = await confine(launch)
    child = Child(launch, confined, on_output or _unheard)
    try:
        await child.begin()
    except BaseException:
        if confined.watch is not None:
            confined.watch.leave()
        await settle(child.kill())
        raise
    return child


async def settle(work: Awaitable[None]) -> None:
    """Await to the end whatever cancellations arrive meanwhile, then let the first of them out."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is not None:
        raise cancelled
    task.result()


def _unheard(stream: str, data: bytes) -> None:
    pass
