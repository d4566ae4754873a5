"""The shell family: commands in the foreground and the jobs that outlive a call.

Everything runs through the shell jobs service; this file holds what the model gives and reads.
"""

import asyncio
import re
from typing import Annotated, Any

import msgspec

from codewhale.lib.beneath import Root
from codewhale.process.launch import settle
from codewhale.process.programs import PROGRAMS, not_installed
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.protocol.ports import Asker
from codewhale.protocol.tools import CallContext, CommandSubject, Effect, JobSubject, ToolResult
from codewhale.services.jobs import JobInput, JobReading, JobSpec, JobView, ShellJobs
from codewhale.services.jobs.artifacts import LogArchive
from codewhale.services.jobs.render import (
    delta_result,
    denial_text,
    line_end,
    metadata,
    output_text,
    refusals,
    status_text,
    succeeded,
    terminal_block,
    unknown_job,
)
from codewhale.services.jobs.service import ShellEnv, begin, directory, shell_argv
from codewhale.services.testruns.summary import cargo_failure
from codewhale.tools.base import Args, Doc, tool

FOREGROUND_MS = 120_000
INTERACTIVE_MS = 600_000
WAIT_MS = 30_000
INTERACT_MS = 1_000
_NOT_FOUND = re.compile(r"([\w.+-]+): (?:command )?not found\s*$|command not found: ([\w.+-]+)\s*$", re.M)


_ALONE = (
    "It has its own network: a server in it cannot be reached from outside. To reach one, cancel it and start it again "
    "with loopback true; run what connects to it (curl, tests) with loopback true as well."
)


class ExecShell(Args, frozen=True):
    """Arguments of exec_shell."""

    command: Annotated[str, Doc("Command line, run by bash in the workspace.", min_length=1)]
    timeout_ms: (
        Annotated[
            int,
            Doc(
                "Milliseconds until it is killed; 120000 when absent, no limit for a background job.",
                ge=1_000,
                le=600_000,
            ),
        ]
        | None
    ) = None
    background: Annotated[bool, Doc("Return at once with a task_id for exec_shell_wait.")] | None = None
    interactive: Annotated[bool, Doc("A person, where one is there, types into its terminal.")] | None = None
    stdin: Annotated[str, Doc("Text for its standard input; without it the input is empty.")] | None = None
    cwd: Annotated[str, Doc("Directory beneath the workspace to run in.")] | None = None
    tty: Annotated[bool, Doc("Give it a pseudo-terminal; implies background.")] | None = None
    loopback: Annotated[bool, Doc("Serve on, or reach, 127.0.0.1 of this machine; asks the person.")] | None = None
    combined_output: Annotated[bool, Doc("Stdout and stderr as one stream, in order.")] | None = None


class ExecShellWait(Args, frozen=True):
    """Arguments of exec_shell_wait."""

    task_id: Annotated[str, Doc("Job id, as exec_shell gave it.")]
    wait: Annotated[bool, Doc("False returns at once; true (default) waits for the end.")] | None = None
    timeout_ms: Annotated[int, Doc("Longest wait in milliseconds; 30000 when absent.", ge=1_000, le=600_000)] | None = (
        None
    )


class ExecShellInteract(Args, frozen=True):
    """Arguments of exec_shell_interact."""

    task_id: Annotated[str, Doc("Job id, as exec_shell gave it.")]
    input: Annotated[str, Doc("Text to write as it is; end a line with \\n.")] | None = None
    timeout_ms: (
        Annotated[int, Doc("Longest wait for an answer in milliseconds; 1000 when absent.", ge=0, le=600_000)] | None
    ) = None
    close_stdin: Annotated[bool, Doc("End its input after writing.")] | None = None


class ExecShellCancel(Args, frozen=True):
    """Arguments of exec_shell_cancel."""

    task_id: Annotated[str, Doc("Job id, as exec_shell gave it.")] | None = None
    all: Annotated[bool, Doc("End every running job of this session.")] | None = None


def _command(args: ExecShell) -> tuple[CommandSubject, ...]:
    background = bool(args.background or args.tty)
    return (CommandSubject(args.command, args.cwd or ".", background, args.stdin or "", bool(args.loopback)),)


def _told(args: ExecShellInteract) -> tuple[JobSubject, ...]:
    return (JobSubject(args.task_id, args.input or ""),)


def _ended(args: ExecShellCancel) -> tuple[JobSubject, ...]:
    return (JobSubject("*" if args.all else args.task_id or ""),)


class ShellTools:
    """Runs commands and looks after the jobs they become."""

    def __init__(self, jobs: ShellJobs, logs: LogArchive, shell_env: ShellEnv, asker: Asker) -> None:
        self._asker = asker
        self._jobs = jobs
        self._logs = logs
        self._shell_env = shell_env

    @tool("exec_shell", effects={Effect.EXECUTES}, subjects=_command)
    async def exec_shell(self, args: ExecShell, call: CallContext) -> ToolResult:
        """Run a shell command in the workspace and return its output and exit code. Use it for builds, formatters,
        git writes and whatever has no tool of its own; prefer the dedicated tools for reading, searching, editing and
        tests. Long work and servers: background true, then exec_shell_wait. A foreground command is killed at its
        timeout. It has no terminal and empty input; commands that ask questions fail."""
        if args.interactive and not self._asker.attended(call.session):
            raise _nobody(args)
        if args.interactive and (args.background or args.tty):
            raise _both(args)
        env = await self._shell_env(call.session, call.workspace)
        background = bool(args.background or args.tty)
        spec = JobSpec(
            command=args.command,
            argv=shell_argv(args.command),
            cwd=directory(call.workspace, args.cwd or ""),
            shown_cwd=Root(call.workspace).relative(args.cwd or "."),
            call_id=call.call_id,
            background=background,
            seconds=_seconds(args, background),
            stdin=(args.stdin or "").encode("utf-8", "surrogateescape"),
            tty=bool(args.tty or args.interactive or (background and args.combined_output)),
            interactive=bool(args.interactive),
            merge=bool(args.combined_output),
            profile=call.profile,
            allowances=call.allowances,
            workspace=call.workspace,
            env={**env, "TERM": "dumb"} if args.interactive else env,
        )
        job = await begin(self._jobs, call.session, spec)
        return self._started(job, args) if background else await self._foreground(job, args, call)

    def _started(self, job: JobView, args: ExecShell) -> ToolResult:
        text = (
            f"Background job {job.id} started (pid {job.pid}). Read its output with "
            f'exec_shell_wait {{"task_id": "{job.id}"}}, end it with exec_shell_cancel {{"task_id": "{job.id}"}}.'
        )
        if job.confined and "network" not in job.allowances:
            text += f" {_ALONE}"
        data = {**_metadata(JobReading(job, "", ""), args), "backgrounded": True}
        return ToolResult(text, display=(TerminalBlock(args.command, text),), metadata=data)

    async def _foreground(self, job: JobView, args: ExecShell, call: CallContext) -> ToolResult:
        try:
            reading = await self._jobs.wait(call.session, job.id, None)
        except asyncio.CancelledError as stopped:
            await settle(self._cancel(call.session, job.id))
            reading = self._jobs.read(call.session, job.id)
            stopped.args = (await self._result(reading, args, call),)
            raise
        return await self._result(reading, args, call)

    async def _result(self, reading: JobReading, args: ExecShell, call: CallContext) -> ToolResult:
        job = reading.job
        kept = reading.job.exited and reading.job.status == "Running"
        if kept:
            self._jobs.keep(call.session, job.id)
        text = _foreground_text(reading, args)
        data = {**_metadata(reading, args), "backgrounded": kept}
        if reading.job.status == "TimedOut":
            data["foreground_timeout_recovery"] = _recovery(args)
        result = ToolResult(text, succeeded(reading.job), terminal_block(reading), data, updates=refusals(reading))
        return await self._logs.with_whole(call.session, reading, result)

    async def _cancel(self, session: str, job_id: str) -> None:
        await self._jobs.cancel(session, job_id)

    @tool("exec_shell_wait", effects={Effect.READS}, polls=True)
    async def exec_shell_wait(self, args: ExecShellWait, call: CallContext) -> ToolResult:
        """Read what a background job printed since the last look, waiting for its end (30 s, or timeout_ms) unless wait
        is false. Interrupting stops the waiting, not the job."""
        seconds = 0.0 if args.wait is False else (args.timeout_ms or WAIT_MS) / 1000
        try:
            reading = await self._jobs.wait(call.session, args.task_id, seconds)
        except KeyError:
            raise unknown_job(self._jobs, call.session, args.task_id)
        return await self._logs.with_whole(call.session, reading, delta_result(reading, _failure(reading)))

    @tool("exec_shell_interact", effects={Effect.EXECUTES}, subjects=_told)
    async def exec_shell_interact(self, args: ExecShellInteract, call: CallContext) -> ToolResult:
        """Write to a background job's input and return the first new output. The text is written as it is: end a line
        with a newline."""
        write = JobInput(
            data=(args.input or "").encode("utf-8", "surrogateescape"),
            close=bool(args.close_stdin),
            seconds=(INTERACT_MS if args.timeout_ms is None else args.timeout_ms) / 1000,
        )
        try:
            reading = await self._jobs.interact(call.session, args.task_id, write)
            return delta_result(reading, _failure(reading))
        except KeyError:
            raise unknown_job(self._jobs, call.session, args.task_id)
        except OSError:
            status = self._jobs.view(call.session, args.task_id).status
            raise ToolError(
                "execution_failed",
                f"Job {args.task_id} takes no input: it is {status} and its input is closed.",
                field="task_id",
                expected="a running job with open input",
                received=args.task_id,
                fix=Look("exec_shell_wait", {"task_id": args.task_id, "wait": False}),
            )

    @tool("exec_shell_cancel", effects={Effect.EXECUTES}, subjects=_ended)
    async def exec_shell_cancel(self, args: ExecShellCancel, call: CallContext) -> ToolResult:
        """End one background job with all its processes, or with all true every running job of this session."""
        if args.all:
            return self._all_cancelled(await self._jobs.cancel_all(call.session))
        if not args.task_id:
            raise ToolError(
                "missing_field",
                "Give task_id, or all: true.",
                field="task_id",
                expected="a job id",
                received="nothing",
            )
        try:
            was = self._jobs.view(call.session, args.task_id).status
            job = await self._jobs.cancel(call.session, args.task_id)
        except KeyError:
            raise unknown_job(self._jobs, call.session, args.task_id)
        text = (
            f"Job {job.id} had already ended: {status_text(job)}." if was != "Running" else f"Job {job.id} was ended."
        )
        data = {
            "status": job.status,
            "task_id": job.id,
            "exit_code": job.exit_code,
            "duration_ms": int(job.seconds * 1000),
        }
        return ToolResult(text, metadata=data)

    def _all_cancelled(self, ended: list[JobView]) -> ToolResult:
        ids = [job.id for job in ended]
        text = f"Ended {len(ids)} jobs: {', '.join(ids)}." if ids else "No job was running."
        data = {"status": "Killed" if ids else "Noop", "canceled": len(ids), "task_ids": ids}
        return ToolResult(text, metadata=data)


def _nobody(args: ExecShell) -> ToolError:
    return ToolError(
        "not_available",
        "interactive needs a user at a terminal, and there is none. Run it without; a command that asks questions "
        "takes its answers from stdin, or from exec_shell_interact when started with background or tty.",
        field="interactive",
        expected="false or absent",
        received="true",
        fix=NextCall("exec_shell", {key: value for key, value in _given(args).items() if key != "interactive"}),
    )


def _both(args: ExecShell) -> ToolError:
    others = ("background", "tty")
    return ToolError(
        "invalid_input",
        "An interactive command runs in the foreground, on a terminal: leave background and tty out.",
        field="interactive",
        expected="interactive alone, or background without it",
        received="both",
        fix=NextCall("exec_shell", {key: value for key, value in _given(args).items() if key not in others}),
    )


def _given(args: ExecShell) -> dict[str, Any]:
    return {key: value for key, value in msgspec.structs.asdict(args).items() if value is not None}


def _metadata(reading: JobReading, args: ExecShell) -> dict[str, Any]:
    extra = {"safety_level": None, "interactive": bool(args.interactive), "execpolicy": None}
    return {**metadata(reading, _failure(reading)), **extra, "combined_output": bool(args.combined_output)}


def _failure(reading: JobReading) -> str:
    job = reading.job
    return cargo_failure(job.command, reading.stdout, reading.stderr) if job.status == "Failed" else ""


def _seconds(args: ExecShell, background: bool) -> float | None:
    if args.timeout_ms is not None:
        return args.timeout_ms / 1000
    return None if background else _most_ms(args) / 1000


def _most_ms(args: ExecShell) -> int:
    return args.timeout_ms or (INTERACTIVE_MS if args.interactive else FOREGROUND_MS)


def _foreground_text(reading: JobReading, args: ExecShell) -> str:
    job, output = reading.job, output_text(reading)
    if job.status == "Completed":
        return output or "(no output)"
    if job.status == "Running":
        left = (
            f"[{status_text(job)} as background job {job.id}; read what they print with exec_shell_wait "
            f'{{"task_id": "{job.id}"}}, end them with exec_shell_cancel {{"task_id": "{job.id}"}}]'
        )
        return f"{line_end(output) if output else ''}{left}"
    if job.status == "TimedOut":
        head = (
            f"Command timed out after {_most_ms(args)} ms and was killed with all its processes. "
            "Run long work again with task_shell_start, or with exec_shell and background: true, and read it with "
            "task_shell_wait or exec_shell_wait."
        )
    elif job.status == "Killed":
        head = "Command was cancelled and its processes were ended."
    else:
        said = status_text(job)
        head = f"Command {said[:1].lower()}{said[1:]}.{_missing(reading)}"
    text = f"{head}\n\n{output or '(no output)'}"
    return f"{line_end(text).rstrip()}{denial_text(reading)}" if denial_text(reading) else text


def _missing(reading: JobReading) -> str:
    """How to install the program that the shell did not find, "" where it is not one we know."""
    found = _NOT_FOUND.search(f"{reading.stderr}\n{reading.stdout}") if reading.job.exit_code == 127 else None
    name = found[1] or found[2] if found else ""
    return f" {not_installed(name)}" if any(row.name == name for row in PROGRAMS) else ""


def _recovery(args: ExecShell) -> dict[str, Any]:
    where = {"cwd": args.cwd} if args.cwd else {}
    return {
        "process_killed": True,
        "hint": "Run it again with task_shell_start, or with exec_shell and background: true; then poll it.",
        "recommended_tools": ["task_shell_start", "exec_shell"],
        "exec_shell_background": {"command": args.command, **where, "background": True},
        "poll_with": ["task_shell_wait", "exec_shell_wait"],
    }
