"""The task_shell tools: long commands in the background, and the evidence that their end is.

The same jobs as those of exec_shell. What a gate records is taken from the job, never from what the call says of it.
"""

import shlex
from typing import Annotated, Any, Literal

import msgspec

from codewhale.lib.beneath import Root
from codewhale.lib.clock import Clock, rfc3339
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.tools import CallContext, CommandSubject, Effect, OutputKept, ToolResult
from codewhale.services.jobs import JobReading, JobSpec, ShellJobs
from codewhale.services.jobs.artifacts import LogArchive
from codewhale.services.jobs.render import (
    SUMMARY,
    GateContext,
    GateKind,
    GateRecord,
    delta_result,
    gate_record,
    line_end,
    metadata,
    unknown_job,
)
from codewhale.services.jobs.service import ShellEnv, begin, directory, shell_argv
from codewhale.services.testruns.summary import cargo_failure, summarise
from codewhale.services.testruns.tree import tree_hash
from codewhale.tools.base import Args, Doc, tool

RUN_MS = 120_000
WAIT_MS = 30_000


class TaskShellStart(Args, frozen=True):
    """Arguments of task_shell_start."""

    command: Annotated[str, Doc("Command line, run by bash in the workspace.", min_length=1)]
    cwd: Annotated[str, Doc("Directory beneath the workspace to run in.")] | None = None
    timeout_ms: (
        Annotated[int, Doc("Milliseconds until it is killed; 120000 when absent.", ge=1_000, le=600_000)] | None
    ) = None
    stdin: Annotated[str, Doc("Text for its standard input, which then stays open.")] | None = None
    tty: Annotated[bool, Doc("Give it a pseudo-terminal.")] | None = None


class TaskShellWait(Args, frozen=True):
    """Arguments of task_shell_wait."""

    task_id: Annotated[str, Doc("Job id, as task_shell_start or exec_shell gave it.")]
    wait: Annotated[bool, Doc("True waits for the end; false (default) returns at once.")] | None = None
    timeout_ms: Annotated[int, Doc("Longest wait in milliseconds; 30000 when absent.", ge=1_000, le=600_000)] | None = (
        None
    )
    gate: (
        Annotated[
            Literal["fmt", "check", "clippy", "test", "custom"],
            Doc("Once the job has ended, record how as the evidence of this gate."),
        ]
        | None
    ) = None
    command: Annotated[str, Doc("What you take the job's command for; a difference is told.")] | None = None


def _command(args: TaskShellStart) -> tuple[CommandSubject, ...]:
    return (CommandSubject(args.command, args.cwd or ".", True, args.stdin or ""),)


class TaskShellTools:
    """Starts long commands and records how they ended."""

    def __init__(self, jobs: ShellJobs, logs: LogArchive, clock: Clock, shell_env: ShellEnv) -> None:
        self._jobs = jobs
        self._logs = logs
        self._shell_env = shell_env
        self._clock = clock

    @tool("task_shell_start", effects={Effect.EXECUTES}, subjects=_command)
    async def task_shell_start(self, args: TaskShellStart, call: CallContext) -> ToolResult:
        """Start a long command in the background (tests, builds, diagnostics, searches that run for minutes) and return
        at once with its task_id. Read it with task_shell_wait, whose gate records how it ended as evidence; write to it
        with exec_shell_interact, end it with exec_shell_cancel. A server: exec_shell, background true."""
        spec = JobSpec(
            command=args.command,
            argv=shell_argv(args.command),
            cwd=directory(call.workspace, args.cwd or ""),
            shown_cwd=Root(call.workspace).relative(args.cwd or "."),
            call_id=call.call_id,
            background=True,
            seconds=(args.timeout_ms or RUN_MS) / 1000,
            stdin=(args.stdin or "").encode("utf-8", "surrogateescape"),
            tty=bool(args.tty),
            profile=call.profile,
            allowances=call.allowances,
            workspace=call.workspace,
            env=await self._shell_env(call.session, call.workspace),
            tree=(await tree_hash(call.workspace)).sha256,
        )
        job = await begin(self._jobs, call.session, spec)
        text = (
            f"Job {job.id} started in the background (pid {job.pid}); it is killed after {spec.seconds:g} s. Read it "
            f'with task_shell_wait {{"task_id": "{job.id}", "wait": true}}.'
        )
        data = {**metadata(JobReading(job, "", "")), "background": True, "backgrounded": True, "task_shell": True}
        return ToolResult(text, display=(TerminalBlock(args.command, text),), metadata=data)

    @tool("task_shell_wait", effects={Effect.READS}, polls=True)
    async def task_shell_wait(self, args: TaskShellWait, call: CallContext) -> ToolResult:
        """Read what a background job printed since the last look; with wait true, wait for its end (30 s, or
        timeout_ms). With gate, a job that has ended is recorded as evidence: its command, directory, exit code,
        duration, classification and whole log. Interrupting stops the waiting, not the job."""
        seconds = (args.timeout_ms or WAIT_MS) / 1000 if args.wait else 0.0
        try:
            reading = await self._jobs.wait(call.session, args.task_id, seconds)
            result = await self._logs.with_whole(call.session, reading, delta_result(reading, _failure(reading)))
            return result if args.gate is None else await self._gated(args, args.gate, call, result)
        except KeyError:
            raise unknown_job(self._jobs, call.session, args.task_id)

    async def _gated(self, args: TaskShellWait, gate: GateKind, call: CallContext, result: ToolResult) -> ToolResult:
        """The result with the evidence of the gate, or with why there is none yet."""
        job_id = args.task_id
        whole = self._jobs.whole(call.session, job_id)
        if whole.job.status == "Running":
            said = f"No evidence for gate {gate} yet: {job_id} has not ended. Call task_shell_wait with wait true."
            return _with(result, said, {})
        spec = self._jobs.spec(call.session, job_id)
        tree = (await tree_hash(call.workspace)).sha256 if spec.tree else ""
        kept = await self._logs.keep(call.session, job_id)
        tests, path = summarise(whole.stdout, whole.stderr), kept.path if kept is not None else None
        around = GateContext(tree, rfc3339(self._clock.now()), path, tests.line(), tests.failed or 0)
        record = gate_record(gate, whole, spec, around)
        data: dict[str, Any] = {
            "task_updates": {"gate": msgspec.to_builtins(record)},
            "stdout_summary": whole.stdout[-SUMMARY:],
            "stderr_summary": whole.stderr[-SUMMARY:],
        }
        if kept is not None:
            data |= {"log_artifact_id": kept.ref, "log_artifact_sha256": kept.sha256, "log_bytes": kept.bytes}
        evidence = _told(record, args.command, kept.ref if kept is not None else "", bool(spec.tree))
        return _with(result, evidence, data, *([] if kept is None else [OutputKept(kept.sha256, kept.bytes)]))


def _failure(reading: JobReading) -> str:
    job = reading.job
    return cargo_failure(job.command, reading.stdout, reading.stderr) if job.status == "Failed" else ""


def _with(result: ToolResult, text: str, data: dict[str, Any], *updates: OutputKept) -> ToolResult:
    content, metadata = f"{line_end(result.content)}{text}", {**result.metadata, **data}
    return msgspec.structs.replace(result, content=content, metadata=metadata, updates=(*updates, *result.updates))


def _told(record: GateRecord, claimed: str | None, ref: str, began: bool) -> str:
    """The evidence in words."""
    where = "" if record.cwd == "." else f" in {record.cwd}"
    ended = f"exit code {record.exit_code}" if record.exit_code is not None else record.classification
    lines = [f"Gate {record.gate} {record.status} ({record.classification}): `{record.command}`{where}, {ended}."]
    if claimed is not None and _words(claimed) != _words(record.command):
        lines.append("That is the job's own command; it is not the one given in the call, which was not used.")
    if record.workspace_tree_sha256 is None:
        why = "files changed while it ran" if began else "the workspace was not hashed when it began"
        lines.append(f"It is not tied to a state of the workspace: {why}.")
    lines.append(f'Its log: retrieve_tool_result {{"ref": "{ref}"}}.' if ref else "Its log could not be kept.")
    if record.task_id is None:
        lines.append("No durable task is active: the evidence is in this result only.")
    return "\n".join(lines)


def _words(command: str) -> list[str]:
    """The words of a command line; the line itself where they cannot be told apart."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]
