"""The background commands (jobs) of all sessions: starting, reading, writing, ending, forgetting, and what an earlier
process left. A job outlives the turn that started it, and ends with the process."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator

from msgspec.structs import replace

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.clock import Clock, SystemClock
from codewhale.lib.text import one_line
from codewhale.permissions.path_spelling import meant
from codewhale.process.launch import Ceiling, Launch, settle, start
from codewhale.process.launcher import stat
from codewhale.protocol.errors import Corrected, ErrorKind, Look, ToolError
from codewhale.protocol.events import JobStarted
from codewhale.services.jobs.job import STALE, Job, JobInput, JobReading, JobSpec, JobView, Listener
from codewhale.services.jobs.log import JobLog, LogFolder

KEEP_SECONDS = 3600.0
KEEP_MOST = 128
RUNNING_MOST = 1024
PAUSE = 0.1
FILES_EACH = 8
FILES_BESIDE = 200
PROCESSES = 4096
MODEL = "model"
USER = "person"

Past = Callable[[str], Iterable[JobStarted]]


class ShellJobs:
    """All jobs of all sessions. `listener(session, event)` hears of background jobs: started, output, ended. Their
    whole output is kept in `folder`; `past(session)` are the jobs that ran when an earlier process was gone, and
    `task_of(session)` is the durable task that a session works for."""

    def __init__(
        self,
        listener: Listener,
        clock: Clock | None = None,
        folder: str = "",
        past: Past = lambda session: (),
        task_of: Callable[[str], str] = lambda session: "",
    ) -> None:
        self._listener = listener
        self._clock = clock or SystemClock()
        self._shelf = LogFolder(folder or os.environ.get("TMPDIR", "/tmp"))
        self._past = past
        self._task_of = task_of
        self._jobs: dict[str, Job] = {}
        self._closed = False

    async def start(self, session: str, spec: JobSpec) -> JobView:
        """Start a command. Raises OSError as the system says it, ToolError execution_failed when too many run."""
        self._evict()
        running = sum(1 for job in self._jobs.values() if job.ended_at is None)
        if self._closed or running >= RUNNING_MOST:
            why = "the session is closing" if self._closed else f"{running} jobs run already, the most there may be"
            raise ToolError("execution_failed", f"Nothing was started: {why}.")
        _room_for_files(running)
        spec = spec if spec.task_id else replace(spec, task_id=self._task_of(session))
        job = Job(session, spec, JobLog(self._shelf), self._clock, self._listener)
        child = await start(_launch(spec), job.output)
        self._jobs[job.id] = job
        job.typed(spec.stdin)
        job.begin(child)
        return job.view()

    def jobs(self, session: str) -> list[JobView]:
        self._evict()
        return [job.view() for job in self._of(session) if job.announced]

    def stale(self, session: str) -> list[JobView]:
        """The jobs of the session that ran when an earlier process of the harness was gone, oldest first. Nothing is
        known of how they ended; `exited` is False while the very process of the command is still there."""
        return [_stale(job) for job in self._past(session) if job.job_id not in self._jobs]

    def view(self, session: str, job_id: str) -> JobView:
        """How a job stands. Raises KeyError for one this session does not have."""
        return self._job(session, job_id).view()

    def read(self, session: str, job_id: str, reader: str = MODEL) -> JobReading:
        """What `reader` has not read yet. Raises KeyError."""
        return self._job(session, job_id).read(reader)

    def whole(self, session: str, job_id: str) -> JobReading:
        """All that a job printed, in brief; nobody's cursor moves. Raises KeyError."""
        return self._job(session, job_id).whole()

    def recent(self, session: str, job_id: str) -> str:
        """The last of what a job printed on both streams; nobody's cursor moves. Raises KeyError."""
        return bytes(self._job(session, job_id).recent).decode("utf-8", "replace")

    def log(self, session: str, job_id: str) -> JobLog:
        """All that a job printed, as far as it is kept. Raises KeyError."""
        return self._job(session, job_id).log

    def spec(self, session: str, job_id: str) -> JobSpec:
        """What a job was told to do. Raises KeyError."""
        return self._job(session, job_id).spec

    def unfinished(self, session: str, job_id: str) -> str:
        """What was typed into a job of a line that has not ended. Raises KeyError."""
        return self._job(session, job_id).unfinished.decode("utf-8", "replace")

    async def wait(self, session: str, job_id: str, seconds: float | None, reader: str = MODEL) -> JobReading:
        """Wait for its end (or for its command's exit, once), at most `seconds`, then read. Cancelling ends the
        waiting, never the job. Raises KeyError."""
        job = self._job(session, job_id)
        await job.until(lambda: job.news(reader), seconds)
        return job.read(reader)

    async def interact(self, session: str, job_id: str, write: JobInput, reader: str = MODEL) -> JobReading:
        """Write to its input, then wait for the first new output and the pause after it, its end or the time, and
        read. Raises KeyError, BrokenPipeError when its input is closed."""
        job = self._job(session, job_id)
        if job.child is None or job.completed is not None:
            raise BrokenPipeError("the command has ended")
        deadline = asyncio.get_running_loop().time() + write.seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                if write.data:
                    job.typed(write.data)
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
        """End everything and let go of all that was kept; the jobs that still ran."""
        self._closed = True
        ended = await self._end([job for job in self._jobs.values() if job.ended_at is None])
        for job in self._jobs.values():
            job.log.close()
        return ended

    async def _end(self, jobs: list[Job]) -> list[JobView]:
        async def all_of_them() -> None:
            await asyncio.gather(*(job.kill() for job in jobs))

        await settle(all_of_them())
        return [job.view() for job in jobs]

    def _of(self, session: str) -> Iterator[Job]:
        return (job for job in self._jobs.values() if job.session == session)

    def _job(self, session: str, job_id: str) -> Job:
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
                job.log.close()
                del self._jobs[job.id]


def _stale(job: JobStarted) -> JobView:
    state = stat(job.pid) if job.pid else None
    alive = state is not None and state[0] == job.since and state[3]
    return JobView(
        id=job.job_id,
        command=job.command,
        cwd=job.cwd,
        status=STALE,
        exit_code=None,
        seconds=0.0,
        leftovers=int(alive),
        pid=job.pid if alive else 0,
        stdout_total=0,
        stderr_total=0,
        exited=not alive,
        task_id=job.task_id,
    )


def _left(deadline: float) -> float:
    return max(0.0, deadline - asyncio.get_running_loop().time())


def _launch(spec: JobSpec) -> Launch:
    return Launch(
        argv=spec.argv,
        cwd=spec.cwd,
        stdin=spec.stdin,
        keep_stdin=spec.interactive or (spec.background and not spec.tty),
        seconds=spec.seconds,
        env=spec.env,
        profile=spec.profile,
        allowances=spec.allowances,
        workspace=spec.workspace,
        tty=spec.tty,
        merge=spec.merge,
        output_limit=0,
        ceiling=Ceiling(processes=PROCESSES, memory=_most_memory()),
    )


def _room_for_files(running: int) -> None:
    """Let this process have as many files open as one more job needs, as far as the machine allows that."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_BESIDE + FILES_EACH * (running + 1)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = 2 * wanted if hard == resource.RLIM_INFINITY else min(hard, 2 * wanted)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _most_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


# What a person's hooks add to the environment of commands: (session, workspace) -> variables.
ShellEnv = Callable[[str, str], Awaitable[dict[str, str]]]


def shell_argv(command: str) -> tuple[str, ...]:
    return ("/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", command)


async def begin(jobs: ShellJobs, session: str, spec: JobSpec) -> JobView:
    """Start it. Raises ToolError."""
    try:
        return await jobs.start(session, spec)
    except OSError as error:
        raise ToolError(
            "execution_failed",
            f"The shell could not be started: {error.strerror or error}.",
            field="command",
            received=one_line(spec.command),
        )
    except ValueError:
        clean = spec.command.encode("utf-8", "replace").decode().replace("\0", "")
        raise ToolError(
            "invalid_input",
            "The command contains a NUL or a character that is not valid UTF-8.",
            field="command",
            expected="text without NUL",
            received=one_line(spec.command),
            fix=Corrected({"command": clean}, sure=True),
        )


def directory(workspace: str, cwd: str) -> str:
    """The absolute directory that a call's `cwd` names, links resolved and beneath the workspace. Raises ToolError."""
    root, cwd = Root(workspace), cwd or "."
    try:
        path = os.path.join(root.path, root.resolve(cwd))
    except PathRefused as refused:
        resolved = os.path.normpath(os.path.join(root.path, cwd))
        problem = f"{one_line(resolved)} cannot be used: {refused.reason}; give one relative to {root.path}"
        raise _bad_directory(root, cwd, "path_escape", problem)
    except OSError as error:
        raise _bad_directory(root, cwd, "invalid_input", f"it cannot be used: {error.strerror}")
    if not os.path.isdir(path):
        problem = "is not a directory" if os.path.exists(path) else "does not exist"
        raise _bad_directory(root, cwd, "invalid_input", f"it {problem}")
    return path


def _bad_directory(root: Root, cwd: str, kind: ErrorKind, problem: str) -> ToolError:
    likely = meant(root, cwd)
    return ToolError(
        kind,
        f"`cwd`: {problem}. {f'Did you mean {likely!r}?' if likely else 'Leave it out for the workspace itself.'}",
        field="cwd",
        expected="an existing directory beneath the workspace",
        received=one_line(cwd),
        fix=Corrected({"cwd": likely}, sure=True) if likely else Look("list_dir", {"path": "."}),
    )
