"""How a job is told: in words for the model, as a block for people, as metadata for programs."""

from typing import Any

from codewhale.lib.text import one_line
from codewhale.permissions.denial import Denial, denial
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.errors import Corrected, ToolError
from codewhale.protocol.tools import ToolResult
from codewhale.services.shelljobs.job import STALE, JobView, Reading
from codewhale.services.shelljobs.service import ShellJobs

SUMMARY_LINES = 3
SUMMARY = 240
KNOWN = 8


def succeeded(job: JobView) -> bool:
    """Whether nothing went wrong, so far."""
    return job.status == "Completed" or (job.status == "Running" and job.exit_code in (0, None))


def standing(job: JobView) -> str:
    """How a job stands."""
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


def streams(reading: Reading) -> str:
    """Both streams as one text, the second under a heading."""
    if reading.stdout and reading.stderr:
        return f"{line_end(reading.stdout)}\nSTDERR:\n{reading.stderr}"
    return f"STDERR:\n{reading.stderr}" if reading.stderr else reading.stdout


def line_end(text: str) -> str:
    """The text, its last line ended."""
    return text if text.endswith("\n") else text + "\n"


def delta(reading: Reading, failure: str = "") -> ToolResult:
    """What was new to the reader, and how the job stands; `failure` as in `metadata`."""
    job = reading.job
    output = streams(reading)
    state = f"[{job.id}: {standing(job)}, {job.seconds:.1f} s]"
    text = f"{line_end(output)}{state}" if output else f"(no new output)\n{state}"
    text += refusal(reading)
    data = {
        **metadata(reading, failure),
        "command": job.command,
        "stdout_total_len": job.stdout_total,
        "stderr_total_len": job.stderr_total,
        "stream_delta": True,
        "wait_canceled": False,
    }
    return ToolResult(text, ok=succeeded(job), display=terminal(reading), metadata=data)


def terminal(reading: Reading) -> tuple[TerminalBlock, ...]:
    """The job for people."""
    return (TerminalBlock(reading.job.command, streams(reading), reading.job.exit_code),)


def metadata(reading: Reading, failure: str = "") -> dict[str, Any]:
    """The job for programs; `failure` is what a failed cargo command says of itself."""
    job = reading.job
    out, err = brief(reading.stdout), brief(reading.stderr)
    refused = denied(reading)
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
        "summary": out or err or standing(job),
        "stdout_summary": out,
        "stderr_summary": err,
        "leftovers": job.leftovers,
        "canceled": job.status == "Killed",
    }
    if refused is not None:
        data["sandbox_denial"] = {"allowance": refused.allowance, "evidence": refused.evidence, "said": refused.message}
        data["sandbox_network_restricted"] = refused.allowance == "network"
    return {**data, "cargo_failure_summary": failure} if failure else data


def denied(reading: Reading) -> Denial | None:
    """What the sandbox refused a job that failed, as far as its output tells."""
    job = reading.job
    if job.status != "Failed" or not job.confined:
        return None
    return denial(job.profile, job.allowances, job.exit_code, f"{reading.stdout}\n{reading.stderr}")


def refusal(reading: Reading) -> str:
    """The same in words, "" for nothing."""
    refused = denied(reading)
    return f"\n[sandbox ({reading.job.profile}): {refused.message}]" if refused is not None else ""


def brief(text: str) -> str:
    """The first lines that say something."""
    lines = [line for line in text.splitlines() if line.strip()][:SUMMARY_LINES]
    return "\n".join(lines)[:SUMMARY]


def unknown(jobs: ShellJobs, session: str, job_id: str) -> ToolError:
    """What to say of a job that the session does not have: which it has, or what became of this one."""
    own = jobs.jobs(session)
    known = ", ".join(f"{job.id} ({job.status}: {one_line(job.command, 60)})" for job in own[-KNOWN:])
    said = f"This session has no job {one_line(job_id, 60)}. "
    for job in jobs.stale(session):
        if job.id == job_id:
            again = f"run its command again if you need it: {one_line(job.command, 400)}"
            said = f"Job {job.id} is {standing(job)}. It cannot be read any more; {again}. "
    return ToolError(
        "execution_failed",
        said + (f"Its jobs: {known}." if own else "It has no background jobs."),
        field="task_id",
        expected=known or "the id of a background job",
        received=job_id,
        fix=Corrected({"task_id": own[0].id}) if len(own) == 1 else None,
    )
