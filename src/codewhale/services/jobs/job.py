"""One job: what it was told to do, what it prints to each of its readers, and how it ends.

Each reader (the session's model, a person) has a cursor of its own, so none can take output from another.
"""

import asyncio
import contextlib
from collections.abc import Callable

from msgspec import Struct

from codewhale.lib.clock import Clock
from codewhale.lib.ids import short_id
from codewhale.process.launch import Child, Completed
from codewhale.process.launcher import stat
from codewhale.process.streams import OutputDigest, whole_characters
from codewhale.protocol.events import Event, JobEnded, JobOutput, JobStarted
from codewhale.services.jobs.log import JobLog

HEAD = 22_000
TAIL = 8_000
LINES = 80
RECENT = 8_000
UNFINISHED = 16_384
FEED_SECONDS = 0.1
STALE = "Stale"

Listener = Callable[[str, Event], None]


class JobSpec(Struct, frozen=True):
    """A command to start: `argv` runs `command` in `cwd` (absolute); `shown_cwd` is what people read. `stdin` is
    written first; the input of a `background` or `interactive` job then stays open, of others it is closed. `profile`
    and `allowances` are what it may touch of the machine and `workspace` (absolute; "" is `cwd`), `env` what is added
    to its environment, `task_id` the durable task it works for, `tree` the hash of the workspace it began with."""

    command: str
    argv: tuple[str, ...]
    cwd: str
    shown_cwd: str = "."
    call_id: str = ""
    background: bool = False
    seconds: float | None = None
    stdin: bytes = b""
    tty: bool = False
    interactive: bool = False
    merge: bool = False
    profile: str = "none"
    allowances: tuple[str, ...] = ()
    workspace: str = ""
    env: dict[str, str] = {}
    task_id: str = ""
    tree: str = ""


class JobView(Struct, frozen=True):
    """A job as it stands. `status` is Running, Completed, Failed, Killed or TimedOut, or Stale for one of an earlier
    process; a job runs until its last process is gone, so `exit_code` may be known while `leftovers` still run.
    `exit_code` is None when a signal of ours ended it; `over` names the ceiling it crossed, if any. `confined` is the
    mechanism that holds it to its `profile` and `allowances`, "" for none."""

    id: str
    command: str
    cwd: str
    status: str
    exit_code: int | None
    seconds: float
    leftovers: int
    pid: int
    stdout_total: int
    stderr_total: int
    exited: bool
    over: str = ""
    profile: str = "none"
    allowances: tuple[str, ...] = ()
    confined: str = ""
    task_id: str = ""


class JobInput(Struct, frozen=True):
    """What to write to a job, whether its input ends there, and how long to wait for what it answers."""

    data: bytes = b""
    close: bool = False
    seconds: float = 1.0


class JobReading(Struct, frozen=True):
    """What a reader had not yet read, the omitted middles counted in bytes, and how the job stands now."""

    job: JobView
    stdout: str
    stderr: str
    stdout_omitted: int = 0
    stderr_omitted: int = 0


class JobStream:
    """One stream of a job: all of it in brief, and in brief what each reader has not read."""

    def __init__(self) -> None:
        self.whole = _brief()
        self._unread: dict[str, OutputDigest] = {}
        self._begun = b""

    def feed(self, data: bytes) -> bytes:
        """Take what came; returns it in whole characters: the bytes of an unfinished one wait for the rest."""
        data = self._begun + data
        end = whole_characters(data)
        data, self._begun = data[:end], data[end:]
        self._take(data)
        return data

    def end(self) -> None:
        """Nothing more comes: an unfinished character is taken as it is."""
        self._take(self._begun)
        self._begun = b""

    def _take(self, data: bytes) -> None:
        self.whole.feed(data)
        for unread in self._unread.values():
            unread.feed(data)

    def read(self, reader: str) -> tuple[str, int]:
        """(what the reader had not read, bytes left out of it)."""
        text, omitted = self._unread.get(reader, self.whole).text()
        self._unread[reader] = _brief()
        return text, omitted

    def waiting(self, reader: str) -> bool:
        return self._unread.get(reader, self.whole).total > 0


def _brief() -> OutputDigest:
    return OutputDigest(HEAD, TAIL, LINES)


class Job:
    """A job's state; everything that may change it runs on the event loop."""

    def __init__(self, session: str, spec: JobSpec, log: JobLog, clock: Clock, listener: Listener) -> None:
        self.id = short_id("shell")
        self.session = session
        self.spec = spec
        self.log = log
        self.streams = {"stdout": JobStream(), "stderr": JobStream()}
        self.recent = bytearray()
        self.completed: Completed | None = None
        self.announced = False
        self.killed = False
        self.unfinished = b""
        self.ended_at: float | None = None
        self.told_exit: set[str] = set()
        self.changed = asyncio.Event()
        self.child: Child | None = None
        self.following: asyncio.Task[None] | None = None
        self._clock = clock
        self._listener = listener
        self._begun = clock.monotonic()
        self._since = 0
        self._feed = bytearray()
        self._feeding: asyncio.TimerHandle | None = None

    def begin(self, child: Child) -> None:
        self.child = child
        state = stat(child.pid)
        self._since = state[0] if state is not None else 0
        self.following = asyncio.create_task(self._follow(child))
        if self.spec.background or self.spec.interactive:
            self.announce()

    def output(self, stream: str, data: bytes) -> None:
        self.log.feed(data)
        text = self.streams[stream].feed(data)
        for latest in (self.recent, self._feed):
            latest += text[-RECENT:]
            del latest[:-RECENT]
        self._tell_soon()
        self.wake()

    def _tell_soon(self) -> None:
        """What came before the job was announced is told with what comes after."""
        if self.announced and self._feed and self._feeding is None:
            self._feeding = asyncio.get_running_loop().call_later(FEED_SECONDS, self._tell_output)

    def _tell_output(self) -> None:
        self._feeding = None
        text = bytes(self._feed).decode("utf-8", "replace")
        self._feed.clear()
        if text:
            self._listener(self.session, JobOutput(self.id, text))

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def announce(self, *, told: bool = False) -> None:
        """From here on this is a job that people and programs hear of; `told` when they have its output so far."""
        if not self.announced:
            self.announced = True
            if told:
                self._feed.clear()
            spec = self.spec
            self._listener(
                self.session,
                JobStarted(
                    job_id=self.id,
                    command=spec.command,
                    cwd=spec.shown_cwd,
                    call_id=spec.call_id,
                    task_id=spec.task_id,
                    pid=self.child.pid if self.child is not None else 0,
                    since=self._since,
                    interactive=spec.interactive,
                ),
            )
            self._tell_soon()

    async def _follow(self, child: Child) -> None:
        """From start to the end of the last process."""
        done = await child.wait()
        if done.leftovers:
            self.completed = done
            self.wake()
        await child.ended()
        self.completed = done
        self.ended_at = self._clock.monotonic()
        for stream in self.streams.values():
            stream.end()
        if self.announced:
            if self._feeding is not None:
                self._feeding.cancel()
            self._tell_output()
            view = self.view()
            self._listener(self.session, JobEnded(self.id, view.status, view.exit_code, view.seconds))
        self.wake()

    @property
    def status(self) -> str:
        done = self.completed
        if done is None or self.ended_at is None:
            return "Running"
        if done.timed_out:
            return "TimedOut"
        if done.killed or self.killed:
            return "Killed"
        return "Completed" if done.exit_code == 0 else "Failed"

    def typed(self, data: bytes) -> None:
        """Keep what stands behind the last end of a line; one behind a backslash ends none."""
        text = (self.unfinished + data).replace(b"\r", b"\n")
        end = text.rfind(b"\n")
        while end > 0 and text[end - 1 : end] == b"\\":
            end = text.rfind(b"\n", 0, end)
        self.unfinished = text[end + 1 :][-UNFINISHED:]

    def view(self) -> JobView:
        done = self.completed
        end = self.ended_at if self.ended_at is not None else self._clock.monotonic()
        code = None if done is None or done.timed_out or done.killed else done.exit_code
        return JobView(
            id=self.id,
            command=self.spec.command,
            cwd=self.spec.shown_cwd,
            status=self.status,
            exit_code=128 - code if code is not None and code < 0 else code,
            seconds=done.seconds if done is not None and not done.leftovers else end - self._begun,
            leftovers=self.child.leftovers if self.child is not None else 0,
            pid=self.child.pid if self.child is not None else 0,
            stdout_total=self.streams["stdout"].whole.total,
            stderr_total=self.streams["stderr"].whole.total,
            exited=done is not None,
            over=done.over if done is not None else "",
            profile=self.spec.profile,
            allowances=self.spec.allowances,
            confined=self.child.confined if self.child is not None else "",
            task_id=self.spec.task_id,
        )

    def whole(self) -> JobReading:
        """All of it in brief, whoever has read what."""
        (out, out_omitted), (err, err_omitted) = (self.streams[name].whole.text() for name in ("stdout", "stderr"))
        return JobReading(self.view(), out, err, out_omitted, err_omitted)

    def read(self, reader: str) -> JobReading:
        if self.completed is not None:
            self.told_exit.add(reader)
        out, out_omitted = self.streams["stdout"].read(reader)
        err, err_omitted = self.streams["stderr"].read(reader)
        return JobReading(self.view(), out, err, out_omitted, err_omitted)

    def size(self) -> int:
        return sum(stream.whole.total for stream in self.streams.values())

    def waiting(self, reader: str) -> bool:
        return any(stream.waiting(reader) for stream in self.streams.values())

    def news(self, reader: str) -> bool:
        """Whether it is over, or its command has exited and the reader does not know."""
        return self.ended_at is not None or (self.completed is not None and reader not in self.told_exit)

    async def until(self, condition: Callable[[], bool], seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    await self.changed.wait()

    async def kill(self) -> None:
        if self.child is not None and self.following is not None and self.ended_at is None:
            self.killed = True
            await self.child.kill()
            await asyncio.wait((self.following,), timeout=1.0)
