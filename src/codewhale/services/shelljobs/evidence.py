"""Gate evidence from a job that ended: what ran, where, how it ended and where its log is. All of it is taken from the
job, nothing from what a model says of it."""

import re
from typing import Literal

from msgspec import Struct

from codewhale.lib.ids import short_id
from codewhale.services.shelljobs.job import JobSpec, Reading

GateKind = Literal["fmt", "check", "clippy", "test", "custom"]
SUMMARY = 900
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


class GateRecord(Struct, frozen=True):
    """What a gate came to. `status` is passed, failed or timeout; `task_id` is the durable task it belongs to, None
    without one; `workspace_tree_sha256` the hash of the workspace when it was the same before and after, None when it
    is not known or changed meanwhile; `log_path` the whole output, None when it was not kept."""

    id: str
    gate: GateKind
    command: str
    cwd: str
    exit_code: int | None
    status: str
    classification: str
    duration_ms: int
    summary: str
    log_path: str | None
    recorded_at: str
    job_id: str
    task_id: str | None
    workspace_tree_sha256: str | None


class Circumstances(Struct, frozen=True):
    """What evidence is bound to: the workspace's hash as it is now ("" for none), the time (RFC 3339), the log; and
    what the output says of tests, with how many failed (0 where it says nothing)."""

    tree: str
    at: str
    log_path: str | None
    tests: str = ""
    failed: int = 0


def gate_record(gate: GateKind, reading: Reading, spec: JobSpec, around: Circumstances) -> GateRecord:
    """The evidence of a job that ended; `reading` is the whole of it."""
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
    )


def classify(gate: GateKind, reading: Reading, failed: int) -> str:
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


def _end(reading: Reading) -> str:
    text = "\n".join(line for line in f"{reading.stdout}\n{reading.stderr}".splitlines() if line.strip())
    return text if len(text) <= SUMMARY else f"[...] {text[-SUMMARY:]}"
