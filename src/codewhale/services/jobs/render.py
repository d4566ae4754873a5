"""A job in words for the model, as a block for people, as metadata for programs; and as gate evidence, all of it taken
from the job, nothing from what a model says of it."""

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.ids import short_id
from codewhale.lib.text import one_line
from codewhale.process.denial import Denial, denial
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.errors import Corrected, ToolError
from codewhale.protocol.gates import GateKind, GateRecord
from codewhale.protocol.tools import SandboxRefusal, ToolResult
from codewhale.services.jobs.job import STALE, JobReading, JobSpec, JobView
from codewhale.services.jobs.service import ShellJobs

SUMMARY_LINES = 3
SUMMARY = 240
KNOWN = 8


def succeeded(job: JobView) -> bool:
    """Whether nothing went wrong, so far."""
    return job.status == "Completed" or (job.status == "Running" and job.exit_code in (0, None))


def status_text(job: JobView) -> str:
    if job.over:
        return f"ended because its processes took more {job.over} than a command may"
    if job.status == "Running" and job.exited:
        return f"the command exited with code {job.exit_code}, {job.leftovers} of its processes still run"
    if job.exit_code is not None:
        signal = f" (signal {job.exit_code - 128})" if job.exit_code > 128 else ""
        return f"{job.status} with exit code {job.exit_code}{signal}"
    if job.status == STALE:
        left = "it ended with that" if job.exited else f"its process {job.pid} is still there (kill {job.pid} ends it)"
        return f"stale: an earlier process of CodeWhale ran it; {left}"
    return job.status


def output_text(reading: JobReading) -> str:
    """Both streams as one text, the second under a heading."""
    if reading.stdout and reading.stderr:
        return f"{line_end(reading.stdout)}\nSTDERR:\n{reading.stderr}"
    return f"STDERR:\n{reading.stderr}" if reading.stderr else reading.stdout


def line_end(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def delta_result(reading: JobReading, failure: str = "") -> ToolResult:
    """What was new to the reader, and how the job stands; `failure` as in `metadata`."""
    job = reading.job
    output = output_text(reading)
    state = f"[{job.id}: {status_text(job)}, {job.seconds:.1f} s]"
    text = f"{line_end(output)}{state}" if output else f"(no new output)\n{state}"
    text += denial_text(reading)
    data = {
        **metadata(reading, failure),
        "command": job.command,
        "stdout_total_len": job.stdout_total,
        "stderr_total_len": job.stderr_total,
        "stream_delta": True,
        "wait_canceled": False,
    }
    return ToolResult(
        text, ok=succeeded(job), display=terminal_block(reading), metadata=data, updates=refusals(reading)
    )


def terminal_block(reading: JobReading) -> tuple[TerminalBlock, ...]:
    return (TerminalBlock(reading.job.command, output_text(reading), reading.job.exit_code),)


def metadata(reading: JobReading, failure: str = "") -> dict[str, Any]:
    """The job for programs; `failure` is what a failed cargo command says of itself."""
    job = reading.job
    out, err = first_lines(reading.stdout), first_lines(reading.stderr)
    refused = sandbox_denial(reading)
    data: dict[str, Any] = {
        "exit_code": job.exit_code,
        "status": job.status,
        "duration_ms": int(job.seconds * 1000),
        "sandboxed": bool(job.confined),
        "sandbox_type": job.confined or None,
        "sandbox_denied": refused is not None,
        "task_id": job.id,
        "stdout_len": len(reading.stdout.encode()),
        "stderr_len": len(reading.stderr.encode()),
        "stdout_truncated": reading.stdout_omitted > 0,
        "stderr_truncated": reading.stderr_omitted > 0,
        "stdout_omitted": reading.stdout_omitted,
        "stderr_omitted": reading.stderr_omitted,
        "summary": out or err or status_text(job),
        "stdout_summary": out,
        "stderr_summary": err,
        "leftovers": job.leftovers,
        "canceled": job.status == "Killed",
    }
    if refused is not None:
        data["sandbox_denial"] = {"allowance": refused.allowance, "evidence": refused.evidence, "said": refused.message}
        data["sandbox_network_restricted"] = refused.allowance == "network"
    return {**data, "cargo_failure_summary": failure} if failure else data


def refusals(reading: JobReading) -> tuple[SandboxRefusal, ...]:
    """What the sandbox refused, for the session."""
    refused = sandbox_denial(reading)
    return () if refused is None else (SandboxRefusal(refused.allowance, refused.evidence, refused.message),)


def sandbox_denial(reading: JobReading) -> Denial | None:
    """What the sandbox refused a job that failed, as far as its output tells."""
    job = reading.job
    if job.status != "Failed" or not job.confined:
        return None
    return denial(job.profile, job.allowances, job.exit_code, f"{reading.stdout}\n{reading.stderr}")


def denial_text(reading: JobReading) -> str:
    """The same in words, "" for nothing."""
    refused = sandbox_denial(reading)
    return f"\n[sandbox ({reading.job.profile}): {refused.message}]" if refused is not None else ""


def first_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()][:SUMMARY_LINES]
    return "\n".join(lines)[:SUMMARY]


def unknown_job(jobs: ShellJobs, session: str, job_id: str) -> ToolError:
    """What to say of a job that the session does not have: which it has, or what became of this one."""
    own = jobs.jobs(session)
    known = ", ".join(f"{job.id} ({job.status}: {one_line(job.command, 60)})" for job in own[-KNOWN:])
    text = f"This session has no job {one_line(job_id, 60)}. "
    for job in jobs.stale(session):
        if job.id == job_id:
            again = f"run its command again if you need it: {one_line(job.command, 400)}"
            text = f"Job {job.id} is {status_text(job)}. It cannot be read any more; {again}. "
    return ToolError(
        "execution_failed",
        text + (f"Its jobs: {known}." if own else "It has no background jobs."),
        field="task_id",
        expected=known or "the id of a background job",
        received=job_id,
        fix=Corrected({"task_id": own[0].id}) if len(own) == 1 else None,
    )


EVIDENCE_SUMMARY = 900
_PORT = re.compile(
    r"address already in use|EADDRINUSE|port (?:\d+ )?(?:is )?already (?:allocated|in use|taken)|bind\(\) failed",
    re.IGNORECASE,
)
_COMPILE = re.compile(
    r"^error\[E\d+\]|could not compile|^.+:\d+(?::\d+)?: (?:fatal )?error:|SyntaxError|error TS\d+"
    r"|undefined reference to|cannot find (?:symbol|module|crate)|ModuleNotFoundError|^# .+\n.+\.go:\d+:\d+:",
    re.MULTILINE,
)
_TOOLING = re.compile(
    r"command not found|not found in PATH|No such file or directory|Permission denied|No module named|is not installed"
    r"|no such (?:sub)?command|missing script|Could not resolve host|network is unreachable|No space left on device",
    re.IGNORECASE,
)
_OF_GATE = {"fmt": "lint_failure", "clippy": "lint_failure", "check": "compile_error", "test": "test_failure"}


class GateContext(Struct, frozen=True):
    """What evidence is bound to: the workspace's hash as it is now ("" for none), the time (RFC 3339), the log with its
    hash; what the output says of tests, with how many failed (0 where it says nothing); and how many processes outlived
    the command and were ended."""

    tree: str
    at: str
    log_path: str | None
    tests: str = ""
    failed: int = 0
    log_sha256: str = ""
    ended: int = 0


def gate_record(gate: GateKind, reading: JobReading, spec: JobSpec, around: GateContext) -> GateRecord:
    """The evidence of a job that ended; `reading` is the whole of it."""
    job = reading.job
    if around.ended and job.exit_code is not None:
        reading = replace(reading, job=replace(job, status="Failed" if job.exit_code else "Completed"))
        job = reading.job
    status = {"Completed": "passed", "TimedOut": "timeout"}.get(job.status, "failed")
    return GateRecord(
        id=short_id("gate"),
        gate=gate,
        command=job.command,
        cwd=job.cwd,
        exit_code=job.exit_code,
        status=status,
        classification=classify(gate, reading, around.failed),
        duration_ms=int(job.seconds * 1000),
        summary=around.tests or _end(reading),
        log_path=around.log_path,
        recorded_at=around.at,
        job_id=job.id,
        task_id=job.task_id or None,
        workspace_tree_sha256=around.tree if around.tree and around.tree == spec.tree else None,
        tree_before=spec.tree,
        tree_after=around.tree,
        log_sha256=around.log_sha256,
    )


def classify(gate: GateKind, reading: JobReading, failed: int) -> str:
    """Why a gate ended as it did: passed, timeout, environment_port_binding, lint_failure, test_failure, compile_error
    or environment_or_tooling_failure. What the output says (`failed` tests) goes before what the gate is for."""
    status, exit_code = reading.job.status, reading.job.exit_code
    output = f"{reading.stdout}\n{reading.stderr}"
    if status == "Completed":
        return "passed"
    if status == "TimedOut":
        return "timeout"
    if status == "Killed" or exit_code is None or exit_code in (126, 127):
        return "environment_or_tooling_failure"
    if _PORT.search(output):
        return "environment_port_binding"
    if gate in ("test", "custom") and failed:
        return "test_failure"
    if _COMPILE.search(output):
        return "lint_failure" if gate in ("fmt", "clippy") else "compile_error"
    if _TOOLING.search(output):
        return "environment_or_tooling_failure"
    return _OF_GATE.get(gate, "environment_or_tooling_failure")


def _end(reading: JobReading) -> str:
    text = "\n".join(line for line in f"{reading.stdout}\n{reading.stderr}".splitlines() if line.strip())
    return text if len(text) <= EVIDENCE_SUMMARY else f"[...] {text[-EVIDENCE_SUMMARY:]}"
