"""Gates, and the task_shell tools: long commands in the background, and the evidence that their end is.

The same jobs as those of exec_shell. What a gate records is taken from the job, never from what the call says of it.
"""

import asyncio
import shlex
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from codewhale.lib.beneath import Root
from codewhale.lib.clock import Clock, rfc3339
from codewhale.lib.jsontext import pretty
from codewhale.lib.text import one_line
from codewhale.process.launch import settle
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.errors import Look, ToolError
from codewhale.protocol.gates import GateKind, GateRecord
from codewhale.protocol.tools import CallContext, CommandSubject, Effect, GateRun, OutputKept, ToolResult, Update
from codewhale.services.jobs import JobReading, JobSpec, ShellJobs
from codewhale.services.jobs.artifacts import LogArchive, LogArtifact
from codewhale.services.jobs.render import (
    EVIDENCE_SUMMARY,
    GateContext,
    delta_result,
    gate_record,
    line_end,
    metadata,
    refusals,
    terminal_block,
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
    gate: Annotated[GateKind, Doc("Once the job has ended, record how as the evidence of this gate.")] | None = None
    command: Annotated[str, Doc("What you take the job's command for; a difference is told.")] | None = None


class TaskGateRun(Args, frozen=True):
    """Arguments of task_gate_run."""

    gate: Annotated[GateKind, Doc("What it checks: fmt, check, clippy, test or custom.")]
    command: Annotated[str, Doc("Command line, run by bash in the workspace; exit code 0 passes.", min_length=1)]
    cwd: Annotated[str, Doc("Directory beneath the workspace to run in.")] | None = None
    timeout_ms: (
        Annotated[int, Doc("Milliseconds until it is killed; 120000 when absent.", ge=1_000, le=600_000)] | None
    ) = None


class _Evidence(Struct, frozen=True):
    """A record with what it was taken from."""

    record: GateRecord
    whole: JobReading
    kept: LogArtifact | None

    @property
    def data(self) -> dict[str, Any]:
        kept = self.kept
        record, updates = self.record, dict[str, Any]()
        if kept is not None:
            log = {"name": f"{record.id}.log", "kind": "gate_log", "sha256": kept.sha256, "bytes": kept.bytes}
            updates = {"artifacts": [log]}
        found: dict[str, Any] = {
            "task_updates": {"gate": msgspec.to_builtins(record), **updates},
            "stdout_summary": self.whole.stdout[-EVIDENCE_SUMMARY:],
            "stderr_summary": self.whole.stderr[-EVIDENCE_SUMMARY:],
        }
        if kept is not None:
            found |= {"log_artifact_id": kept.ref, "log_artifact_sha256": kept.sha256, "log_bytes": kept.bytes}
        return found

    @property
    def updates(self) -> tuple[Update, ...]:
        kept = () if self.kept is None else (OutputKept(self.kept.sha256, self.kept.bytes),)
        return (*kept, GateRun(self.record))


def _command(args: TaskShellStart) -> tuple[CommandSubject, ...]:
    return (CommandSubject(args.command, args.cwd or ".", True, args.stdin or ""),)


def _gate_command(args: TaskGateRun) -> tuple[CommandSubject, ...]:
    return (CommandSubject(args.command, args.cwd or "."),)


class TaskShellTools:
    """Starts long commands and records how they ended; runs gates."""

    def __init__(
        self, jobs: ShellJobs, logs: LogArchive, clock: Clock, shell_env: ShellEnv, task_of: Callable[[str], str]
    ) -> None:
        """`task_of` tells the durable task that a session works for, "" for none."""
        self._jobs = jobs
        self._logs = logs
        self._shell_env = shell_env
        self._clock = clock
        self._task_of = task_of

    @tool("task_shell_start", effects={Effect.EXECUTES}, subjects=_command)
    async def task_shell_start(self, args: TaskShellStart, call: CallContext) -> ToolResult:
        """Start a long command in the background (tests, builds, diagnostics, searches that run for minutes) and return
        at once with its task_id. Read it with task_shell_wait, whose gate records how it ended as evidence; write to it
        with exec_shell_interact, end it with exec_shell_cancel. A server: exec_shell, background true."""
        spec = await self._spec(args, call, background=True)
        job = await begin(self._jobs, call.session, spec)
        text = (
            f"Job {job.id} started in the background (pid {job.pid}); it is killed after {spec.seconds:g} s. Read it "
            f'with task_shell_wait {{"task_id": "{job.id}", "wait": true}}.'
        )
        data = {**metadata(JobReading(job, "", "")), "background": True, "backgrounded": True, "task_shell": True}
        return ToolResult(text, display=(TerminalBlock(args.command, text),), metadata=data)

    async def _spec(self, args: TaskShellStart | TaskGateRun, call: CallContext, *, background: bool) -> JobSpec:
        if all(line.strip().startswith("#") or not line.strip() for line in args.command.splitlines()):
            raise ToolError(
                "invalid_input",
                "`command`: it runs nothing, so its end would prove nothing. Give the command line itself, such as: "
                "git status",
                field="command",
                expected="a command line that runs a program",
                received=one_line(repr(args.command)),
                fix=Look("list_dir", {"path": "."}),
            )
        stdin = args.stdin or "" if isinstance(args, TaskShellStart) else ""
        return JobSpec(
            command=args.command,
            argv=shell_argv(args.command),
            cwd=directory(call.workspace, args.cwd or ""),
            shown_cwd=Root(call.workspace).relative(args.cwd or "."),
            call_id=call.call_id,
            background=background,
            seconds=(args.timeout_ms or RUN_MS) / 1000,
            stdin=stdin.encode("utf-8", "surrogateescape"),
            tty=isinstance(args, TaskShellStart) and bool(args.tty),
            profile=call.profile,
            allowances=call.allowances,
            workspace=call.workspace,
            env=await self._shell_env(call.session, call.workspace),
            task_id=self._task_of(call.session),
            tree=(await tree_hash(call.workspace)).sha256,
        )

    @tool("task_gate_run", effects={Effect.EXECUTES}, subjects=_gate_command)
    async def task_gate_run(self, args: TaskGateRun, call: CallContext) -> ToolResult:
        """Run a check (formatter, type check, lint, tests or your own) and record the end as evidence: command, exit
        code, duration, classification and whole log, bound to the hash of the workspace before and after. Any later
        change of a file makes it stale. A gate that fails is a failed result. It is killed with all its processes at
        timeout_ms; what it printed is kept."""
        spec = await self._spec(args, call, background=False)
        job = await begin(self._jobs, call.session, spec)
        try:
            reading = await self._jobs.wait(call.session, job.id, None)
        except asyncio.CancelledError as stopped:
            await settle(self._end(call.session, job.id))
            stopped.args = (await self._run_gate(args, job.id, 0, call),)
            raise
        left = reading.job.leftovers if reading.job.status == "Running" else 0
        if left:
            await settle(self._end(call.session, job.id))
        return await self._run_gate(args, job.id, left, call)

    async def _run_gate(self, args: TaskGateRun, job_id: str, ended: int, call: CallContext) -> ToolResult:
        found = await self._evidence(args.gate, job_id, ended, call)
        record, reading = found.record, found.whole
        report = {
            "gate": msgspec.to_builtins(record),
            "stdout_summary": reading.stdout[-EVIDENCE_SUMMARY:],
            "stderr_summary": reading.stderr[-EVIDENCE_SUMMARY:],
            "note": _standing(record, found.kept, ended),
        }
        data = {**metadata(reading), "timed_out": record.status == "timeout", **found.data}
        data |= {"command": record.command, "cwd": record.cwd, "exit_code": record.exit_code, "summary": record.summary}
        data |= {"artifact_path": record.log_path} if record.log_path else {}
        passed = record.status == "passed"
        updates = (*found.updates, *refusals(reading))
        return ToolResult(pretty(report), passed, terminal_block(reading), data, updates=updates)

    async def _end(self, session: str, job_id: str) -> None:
        await self._jobs.cancel(session, job_id)

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
        found = await self._evidence(gate, job_id, 0, call)
        return _with(result, _told(found.record, args.command, found.kept), found.data, *found.updates)

    async def _evidence(self, gate: GateKind, job_id: str, ended: int, call: CallContext) -> _Evidence:
        whole, spec = self._jobs.whole(call.session, job_id), self._jobs.spec(call.session, job_id)
        tree = (await tree_hash(call.workspace)).sha256 if spec.tree else ""
        kept = await self._logs.keep(call.session, job_id)
        tests = summarise(whole.stdout, whole.stderr)
        around = GateContext(
            tree=tree,
            at=rfc3339(self._clock.now()),
            log_path=kept.path if kept is not None else None,
            tests=tests.line(),
            failed=tests.failed or 0,
            log_sha256=kept.sha256 if kept is not None else "",
            ended=ended,
        )
        return _Evidence(gate_record(gate, whole, spec, around), whole, kept)


def _failure(reading: JobReading) -> str:
    job = reading.job
    return cargo_failure(job.command, reading.stdout, reading.stderr) if job.status == "Failed" else ""


def _with(result: ToolResult, text: str, data: dict[str, Any], *updates: Update) -> ToolResult:
    content, metadata = f"{line_end(result.content)}{text}", {**result.metadata, **data}
    return msgspec.structs.replace(result, content=content, metadata=metadata, updates=(*updates, *result.updates))


def _told(record: GateRecord, claimed: str | None, kept: LogArtifact | None) -> str:
    """The evidence in words."""
    where = "" if record.cwd == "." else f" in {record.cwd}"
    ended = f"exit code {record.exit_code}" if record.exit_code is not None else record.classification
    lines = [f"Gate {record.gate} {record.status} ({record.classification}): `{record.command}`{where}, {ended}."]
    if claimed is not None and _words(claimed) != _words(record.command):
        lines.append("That is the job's own command; it is not the one given in the call, which was not used.")
    return "\n".join((*lines, _standing(record, kept, 0)))


def _standing(record: GateRecord, kept: LogArtifact | None, ended: int) -> str:
    """What the evidence is tied to, and where its log is."""
    lines = [f"It left processes behind, which were ended: {ended}."] if ended else []
    if record.workspace_tree_sha256 is None:
        changed = record.tree_before and record.tree_after
        why = "files changed while it ran" if changed else "the workspace was not hashed when it began"
        lines.append(f"It is not tied to a state of the workspace: {why}.")
    lines.append(f'Its log: retrieve_tool_result {{"ref": "{kept.ref}"}}.' if kept else "Its log could not be kept.")
    task = record.task_id
    lines.append(f"It is evidence of {task}." if task else "No durable task is active: it stands in this session.")
    return "\n".join(lines)


def _words(command: str) -> list[str]:
    """The words of a command line; the line itself where they cannot be told apart."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]
