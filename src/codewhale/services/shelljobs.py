"""Shell jobs: commands that outlive the call that began them, owned by their session and dead with the process.

Each reader of a job (the session's model, a person) has a cursor of its own, so none can take output from another.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

from msgspec import Struct

from codewhale.lib.clock import Clock, SystemClock
from codewhale.lib.ids import short_id
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.events import Event, JobEnded, JobOutput, JobStarted
from codewhale.system.launch import Ceiling, Child, Completed, Launch, settle, start
from codewhale.system.output import Telling, whole_characters

HEAD = 22_000
TAIL = 8_000
LINES = 80
KEEP_SECONDS = 3600.0
KEEP_MOST = 128
RUNNING_MOST = 128
FEED_SECONDS = 0.1
PAUSE = 0.1
FEED_BYTES = 8_000
PROCESSES = 4096
MODEL = "model"
_CANCEL_ALL = NextCall("exec_shell_cancel", {"all": True})

Listener = Callable[[str, Event], None]


class JobSpec(Struct, frozen=True):
    """A command to start: `argv` runs `command` in `cwd` (absolute); `shown_cwd` is what people read. `stdin` is
    written first; a `background` job's input then stays open, a foreground one's is closed."""

    command: str
    argv: tuple[str, ...]
    cwd: str
    shown_cwd: str = "."
    call_id: str = ""
    background: bool = False
    seconds: float | None = None
    stdin: bytes = b""
    tty: bool = False
    merge: bool = False


class JobView(Struct, frozen=True):
    """A job as it stands. `status` is Running, Completed, Failed, Killed or TimedOut; a job runs until its last
    process is gone, so `exit_code` may be known while `leftovers` still run. `exit_code` is None when a signal of ours
    ended it; `over` names the ceiling it crossed, if any."""

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


class Input(Struct, frozen=True):
    """What to write to a job, whether its input ends there, and how long to wait for what it answers."""

    data: bytes = b""
    close: bool = False
    seconds: float = 1.0


class Reading(Struct, frozen=True):
    """What a reader had not yet read, the omitted middles counted in bytes, and how the job stands now."""

    job: JobView
    stdout: str
    stderr: str
    stdout_omitted: int = 0
    stderr_omitted: int = 0


class _Stream:
    """One stream of a job: all of it in brief, and in brief what each reader has not read."""

    def __init__(self) -> None:
        self.whole = _brief()
        self._unread: dict[str, Telling] = {}
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
        """Whether the reader has something to read."""
        return self._unread.get(reader, self.whole).total > 0


def _brief() -> Telling:
    return Telling(HEAD, TAIL, LINES)


class _Job:
    """A job's state; everything that may change it runs on the event loop."""

    def __init__(self, session: str, spec: JobSpec, clock: Clock, listener: Listener) -> None:
        self.id = short_id("shell")
        self.session = session
        self.spec = spec
        self.streams = {"stdout": _Stream(), "stderr": _Stream()}
        self.completed: Completed | None = None
        self.announced = False
        self.killed = False
        self.ended_at: float | None = None
        self.told_exit: set[str] = set()
        self.changed = asyncio.Event()
        self.child: Child | None = None
        self.following: asyncio.Task[None] | None = None
        self._clock = clock
        self._listener = listener
        self._begun = clock.monotonic()
        self._feed = bytearray()
        self._feeding: asyncio.TimerHandle | None = None

    def output(self, stream: str, data: bytes) -> None:
        """Bytes from the child."""
        text = self.streams[stream].feed(data)
        self._feed += text[-FEED_BYTES:]
        del self._feed[:-FEED_BYTES]
        self._tell_soon()
        self.wake()

    def _tell_soon(self) -> None:
        """What came before the job was announced is told with what comes after."""
        if self.announced and self._feed and self._feeding is None:
            self._feeding = asyncio.get_running_loop().call_later(FEED_SECONDS, self._tell_output)

    def _tell_output(self) -> None:
        self._feeding = None
        text = bytes(self._feed[-FEED_BYTES:]).decode("utf-8", "replace")
        self._feed.clear()
        if text:
            self._listener(self.session, JobOutput(self.id, text))

    def wake(self) -> None:
        """Let every waiter look again."""
        self.changed.set()
        self.changed = asyncio.Event()

    def announce(self, *, told: bool = False) -> None:
        """From here on this is a job that people and programs hear of; `told` when they have its output so far."""
        if not self.announced:
            self.announced = True
            if told:
                self._feed.clear()
            spec = self.spec
            self._listener(self.session, JobStarted(self.id, spec.command, spec.shown_cwd, spec.call_id))
            self._tell_soon()

    async def follow(self, child: Child) -> None:
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
        """The word for how it stands."""
        done = self.completed
        if done is None or self.ended_at is None:
            return "Running"
        if done.timed_out:
            return "TimedOut"
        if done.killed or self.killed:
            return "Killed"
        return "Completed" if done.exit_code == 0 else "Failed"

    def view(self) -> JobView:
        """How it stands."""
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
        )

    def read(self, reader: str) -> Reading:
        """What the reader has not read."""
        if self.completed is not None:
            self.told_exit.add(reader)
        out, out_omitted = self.streams["stdout"].read(reader)
        err, err_omitted = self.streams["stderr"].read(reader)
        return Reading(self.view(), out, err, out_omitted, err_omitted)

    def size(self) -> int:
        """Bytes printed so far."""
        return sum(stream.whole.total for stream in self.streams.values())

    def waiting(self, reader: str) -> bool:
        """Whether the reader has something to read."""
        return any(stream.waiting(reader) for stream in self.streams.values())

    def news(self, reader: str) -> bool:
        """Whether it is over, or its command has exited and the reader does not know."""
        return self.ended_at is not None or (self.completed is not None and reader not in self.told_exit)

    async def until(self, condition: Callable[[], bool], seconds: float | None) -> None:
        """Wait until the condition holds, at most so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not condition():
                    await self.changed.wait()

    async def kill(self) -> None:
        """End every process of it and wait until the job says so."""
        if self.child is not None and self.following is not None and self.ended_at is None:
            self.killed = True
            await self.child.kill()
            await asyncio.wait((self.following,), timeout=1.0)


class ShellJobs:
    """All jobs of all sessions. `listener(session, event)` hears of background jobs: started, output, ended."""

    def __init__(self, listener: Listener, clock: Clock | None = None) -> None:
        self._listener = listener
        self._clock = clock or SystemClock()
        self._jobs: dict[str, _Job] = {}
        self._closed = False

    async def start(self, session: str, spec: JobSpec) -> JobView:
        """Start a command. Raises OSError as the system says it, ToolError execution_failed when too many run."""
        self._evict()
        running = sum(1 for job in self._of(session) if job.ended_at is None)
        if self._closed or running >= RUNNING_MOST:
            why = "the session is closing" if self._closed else f"{running} jobs run already, the most there may be"
            raise ToolError("execution_failed", f"Nothing was started: {why}.", fix=_CANCEL_ALL)
        job = _Job(session, spec, self._clock, self._listener)
        job.child = await start(_launch(spec), job.output)
        self._jobs[job.id] = job
        job.following = asyncio.create_task(job.follow(job.child))
        if spec.background:
            job.announce()
        return job.view()

    def jobs(self, session: str) -> list[JobView]:
        """The session's background jobs, oldest first."""
        self._evict()
        return [job.view() for job in self._of(session) if job.announced]

    def view(self, session: str, job_id: str) -> JobView:
        """How a job stands. Raises KeyError for one this session does not have."""
        return self._job(session, job_id).view()

    def read(self, session: str, job_id: str, reader: str = MODEL) -> Reading:
        """What `reader` has not read yet. Raises KeyError."""
        return self._job(session, job_id).read(reader)

    async def wait(self, session: str, job_id: str, seconds: float | None, reader: str = MODEL) -> Reading:
        """Wait for its end (or for its command's exit, once), at most `seconds`, then read. Cancelling ends the
        waiting, never the job. Raises KeyError."""
        job = self._job(session, job_id)
        await job.until(lambda: job.news(reader), seconds)
        return job.read(reader)

    async def interact(self, session: str, job_id: str, write: Input, reader: str = MODEL) -> Reading:
        """Write to its input, then wait for the first new output and the pause after it, its end or the time, and
        read. Raises KeyError, BrokenPipeError when its input is closed."""
        job = self._job(session, job_id)
        if job.child is None or job.completed is not None:
            raise BrokenPipeError("the command has ended")
        deadline = asyncio.get_running_loop().time() + write.seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                if write.data:
                    await job.child.write(write.data)
                if write.close:
                    await job.child.close_stdin()
        await job.until(lambda: job.waiting(reader) or job.news(reader), _left(deadline))
        while (pause := min(PAUSE, _left(deadline))) > 0 and not job.news(reader):
            seen = job.size()
            await job.until(lambda seen=seen: job.size() != seen or job.news(reader), pause)  # type: ignore[misc]
            if job.size() == seen:
                break
        return job.read(reader)

    def keep(self, session: str, job_id: str) -> JobView:
        """A foreground command left processes behind: it is a background job from here on. Raises KeyError."""
        job = self._job(session, job_id)
        job.announce(told=True)
        return job.view()

    async def cancel(self, session: str, job_id: str) -> JobView:
        """End a job with all its processes. Raises KeyError."""
        job = self._job(session, job_id)
        if job.ended_at is None:
            await settle(job.kill())
        return job.view()

    async def cancel_all(self, session: str) -> list[JobView]:
        """End every running job of a session; those that ran, as they now stand."""
        return await self._end([job for job in self._of(session) if job.ended_at is None])

    async def aclose(self) -> list[JobView]:
        """End everything; the jobs that still ran."""
        self._closed = True
        return await self._end([job for job in self._jobs.values() if job.ended_at is None])

    async def _end(self, jobs: list[_Job]) -> list[JobView]:
        async def all_of_them() -> None:
            await asyncio.gather(*(job.kill() for job in jobs))

        await settle(all_of_them())
        return [job.view() for job in jobs]

    def _of(self, session: str) -> Iterator[_Job]:
        return (job for job in self._jobs.values() if job.session == session)

    def _job(self, session: str, job_id: str) -> _Job:
        job = self._jobs.get(job_id)
        if job is None or job.session != session:
            raise KeyError(job_id)
        return job

    def _evict(self) -> None:
        """Ended jobs go after an hour, and the oldest beyond 128."""
        ended = [job for job in self._jobs.values() if job.ended_at is not None]
        old = self._clock.monotonic() - KEEP_SECONDS
        for at, job in enumerate(ended):
            if (job.ended_at or 0.0) < old or at < len(ended) - KEEP_MOST:
                del self._jobs[job.id]


def _left(deadline: float) -> float:
    return max(0.0, deadline - asyncio.get_running_loop().time())


def _launch(spec: JobSpec) -> Launch:
    return Launch(
        argv=spec.argv,
        cwd=spec.cwd,
        stdin=spec.stdin,
        keep_stdin=spec.background and not spec.tty,
        seconds=spec.seconds,
        tty=spec.tty,
        merge=spec.merge,
        output_limit=0,
        ceiling=Ceiling(processes=PROCESSES, memory=_most_memory()),
    )


def _most_memory() -> int:
    """Three quarters of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
