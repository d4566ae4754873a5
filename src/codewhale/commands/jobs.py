"""The /jobs command: the background jobs of this session as a person sees them, with a cursor of the person's own."""

import re
from collections.abc import Awaitable, Callable

import msgspec

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import one_line
from codewhale.protocol.ops import CommandOutput
from codewhale.services.jobs import USER, JobInput, JobReading, JobView, ShellJobs
from codewhale.services.jobs.render import line_end, output_text, status_text, succeeded

WAIT_SECONDS = 30.0
WAIT_MOST = 600.0
ANSWER_SECONDS = 1.0
KEYS_SECONDS = 0.3
# Who types key by key: what is printed is seen elsewhere, and nobody else's reading moves.
CONSOLE = "console"
LIST_MOST = 100
SHOWN_LINES = 20
USAGE = (
    "Use /jobs [list], /jobs show ID, /jobs poll ID, /jobs wait ID [SECONDS], /jobs stdin ID [TEXT], /jobs stdin ID "
    "--eof or /jobs cancel ID|all. The start of an id is enough."
)
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")

_Verb = Callable[["JobsCommand", str, str, str], Awaitable[CommandOutput]]


class JobsCommand:
    """/jobs."""

    def __init__(self, jobs: ShellJobs) -> None:
        self._jobs = jobs

    @command("/jobs", "[list|show|poll|wait|stdin|cancel] [ID] [...]")
    async def jobs(self, args: str, context: CommandContext) -> CommandOutput:
        """List background jobs, read one's output, wait for it, send it input or kill it."""
        session = context.session
        verb, rest = _word(args)
        if verb in ("", "list"):
            return CommandOutput(self._list(session)) if not rest else misuse(USAGE)
        name, rest = _word(rest)
        if verb == "cancel" and name == "all" and not rest:
            return await self._cancel_all(session)
        act = _VERBS.get(verb)
        if act is None or not name:
            return misuse(USAGE)
        found = self._find(session, name)
        if isinstance(found, CommandOutput):
            return found
        return await act(self, session, found, rest)

    def _find(self, session: str, name: str) -> str | CommandOutput:
        """The id that begins so, with or without its "shell_"; or why there is none."""
        own, stale = self._jobs.jobs(session), self._jobs.stale(session)
        matches = [job for job in (*own, *stale) if job.id.startswith((name, f"shell_{name}"))]
        matches = [job for job in matches if job.id == name] or matches
        if len(matches) == 1 and matches[0] in own:
            return matches[0].id
        if len(matches) == 1:
            return CommandOutput(
                f"{matches[0].id} is {status_text(matches[0])}: {one_line(matches[0].command)}", ok=False
            )
        if matches:
            return misuse(f"{name!r} may be {', '.join(job.id for job in matches)}; type more of the id.")
        return misuse(f"This session has no job {name!r}.\n{self._list(session)}")

    def _list(self, session: str) -> str:
        rows = [*self._jobs.stale(session), *self._jobs.jobs(session)]
        if not rows:
            return "No background jobs."
        lines = [_row(job) for job in rows[-LIST_MOST:]]
        if len(rows) > LIST_MOST:
            lines.insert(0, f"... {len(rows) - LIST_MOST} earlier ones; {_counts(rows)}")
        return "\n".join(lines)

    async def _show(self, session: str, job_id: str, rest: str) -> CommandOutput:
        job = self._jobs.view(session, job_id)
        log = self._jobs.log(session, job_id)
        size = f"{job.stdout_total:,} bytes, and {job.stderr_total:,} of stderr"
        if log.kept < log.total:
            size += f"; the first {log.kept:,} are kept"
        rows = [
            ("job", job.id),
            ("command", job.command),
            ("folder", job.cwd),
            ("status", status_text(job)),
            ("time", f"{job.seconds:.1f} s"),
            ("process", f"{job.pid}" + (f", {job.leftovers} left over" if job.leftovers else "")),
            ("sandbox", job.profile if job.profile != "none" else "none: it runs with your rights"),
            ("task", job.task_id or "none"),
            ("output", size),
        ]
        lines = [f"{name:<8} {value}" for name, value in rows]
        tail = self._jobs.recent(session, job_id).splitlines()[-SHOWN_LINES:]
        return CommandOutput("\n".join([*lines, "", *tail] if tail else lines))

    async def _poll(self, session: str, job_id: str, rest: str) -> CommandOutput:
        return _told(self._jobs.read(session, job_id, USER))

    async def _wait(self, session: str, job_id: str, rest: str) -> CommandOutput:
        if rest and not _SECONDS.fullmatch(rest):
            return misuse(f"{rest!r} is not a number of seconds. {USAGE}")
        seconds = min(WAIT_MOST, float(rest)) if rest else WAIT_SECONDS
        return _told(await self._jobs.wait(session, job_id, seconds, USER))

    async def _stdin(self, session: str, job_id: str, rest: str) -> CommandOutput:
        end = rest == "--eof"
        data = b"" if end else f"{rest}\n".encode("utf-8", "surrogateescape")
        try:
            return _told(await self._jobs.interact(session, job_id, JobInput(data, end, ANSWER_SECONDS), USER))
        except OSError:
            job = self._jobs.view(session, job_id)
            return CommandOutput(f"{job.id} takes no input: {status_text(job)}; its input is closed.", ok=False)

    async def _keys(self, session: str, job_id: str, rest: str) -> CommandOutput:
        try:
            keys = msgspec.json.decode(rest, type=str)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return misuse('Use /jobs keys ID "TEXT": TEXT is a JSON string, sent exactly as written.')
        written = JobInput(keys.encode("utf-8", "surrogateescape"), seconds=KEYS_SECONDS)
        try:
            await self._jobs.interact(session, job_id, written, CONSOLE)
        except OSError:
            return CommandOutput(f"{job_id} takes no input.", ok=False)
        return CommandOutput("")

    async def _cancel(self, session: str, job_id: str, rest: str) -> CommandOutput:
        was = self._jobs.view(session, job_id)
        if was.status != "Running":
            return CommandOutput(f"{job_id} had already ended: {status_text(was)}.")
        job = await self._jobs.cancel(session, job_id)
        return CommandOutput(f"{job_id} ended: {status_text(job)}.", ok=job.status != "Running")

    async def _cancel_all(self, session: str) -> CommandOutput:
        ended = await self._jobs.cancel_all(session)
        ids = ", ".join(job.id for job in ended[:LIST_MOST])
        return CommandOutput(f"Killed {len(ended)} jobs: {ids}." if ended else "No job was running.")


_VERBS: dict[str, _Verb] = {
    "show": JobsCommand._show,
    "poll": JobsCommand._poll,
    "wait": JobsCommand._wait,
    "stdin": JobsCommand._stdin,
    "keys": JobsCommand._keys,
    "cancel": JobsCommand._cancel,
}


def _word(text: str) -> tuple[str, str]:
    """(the first word, what stands behind it as it is)."""
    first, _, rest = text.strip().partition(" ")
    return first, rest.strip() if first else ""


def _row(job: JobView) -> str:
    where = "" if job.cwd == "." else f" (in {job.cwd})"
    time = "" if job.status == "Stale" else f"{job.seconds:.1f} s"
    return f"{job.id}  {time:>9}  {status_text(job)}: {one_line(job.command, 100)}{where}"


def _counts(rows: list[JobView]) -> str:
    counts = {status: sum(1 for job in rows if job.status == status) for status in {job.status: 0 for job in rows}}
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _told(reading: JobReading) -> CommandOutput:
    job, output = reading.job, output_text(reading)
    state = f"[{job.id}: {status_text(job)}, {job.seconds:.1f} s]"
    return CommandOutput(f"{line_end(output)}{state}" if output else f"(nothing new)\n{state}", ok=succeeded(job))
