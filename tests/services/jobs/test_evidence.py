"""What a gate's end is put down to, and what its record says."""

import pytest

from codewhale.services.jobs import JobReading, JobSpec, JobView
from codewhale.services.jobs.render import EVIDENCE_SUMMARY, GateContext, GateKind, classify, gate_record


def reading(output: str = "", error: str = "", status: str = "Failed", code: int | None = 1) -> JobReading:
    job = JobView("shell_1", "make", "sub", status, code, 1.5, 0, 7, len(output), len(error), True)
    return JobReading(job, output, error)


@pytest.mark.parametrize(
    ("gate", "said", "expected"),
    [
        ("test", reading(status="Completed", code=0), "passed"),
        ("custom", reading("error: port in use", status="Completed", code=0), "passed"),
        ("test", reading("x", status="TimedOut", code=None), "timeout"),
        ("test", reading("x", status="Killed", code=None), "environment_or_tooling_failure"),
        ("test", reading("OSError: [Errno 98] Address already in use"), "environment_port_binding"),
        ("check", reading("Error: listen EADDRINUSE: :::3000"), "environment_port_binding"),
        ("test", reading(error="bash: cargo: command not found", code=127), "environment_or_tooling_failure"),
        ("test", reading("from app import report\nimport support\nE  assert 1 == 2"), "test_failure"),
        ("fmt", reading("would reformat a.py"), "lint_failure"),
        (
            "clippy",
            reading("warning: unused\nerror: could not compile `x` (lib) due to 1 previous error"),
            "lint_failure",
        ),
        ("check", reading("error[E0308]: mismatched types"), "compile_error"),
        ("test", reading(error="a.c:3:1: error: expected ';'"), "compile_error"),
        ("custom", reading("SyntaxError: invalid syntax"), "compile_error"),
        ("custom", reading("npm error Missing script: test"), "environment_or_tooling_failure"),
        ("test", reading(error="/usr/bin/python3: No module named pytest"), "environment_or_tooling_failure"),
        ("custom", reading("nothing that tells"), "environment_or_tooling_failure"),
        ("check", reading("nothing that tells"), "compile_error"),
    ],
)
def test_why_a_gate_ended_so(gate: GateKind, said: JobReading, expected: str) -> None:
    assert classify(gate, said, 0) == expected


def test_failed_tests_go_before_what_looks_like_a_compiler() -> None:
    said = reading("E  a.py:3: error: this is the message of an assertion")
    assert (classify("test", said, 2), classify("custom", said, 2), classify("check", said, 2)) == (
        "test_failure", "test_failure", "compile_error",
    )  # fmt: skip


def test_the_record_is_the_jobs_own() -> None:
    spec = JobSpec("make", ("sh",), "/w/sub", shown_cwd="sub", tree="t1", task_id="task_1")
    around = GateContext("t1", "2026-01-31T00:00:00.000Z", "/log", "3 passed")
    record = gate_record("test", reading(status="Completed", code=0), spec, around)
    assert record.id.startswith("gate_") and len(record.id) == 13
    assert (record.gate, record.command, record.cwd, record.exit_code) == ("test", "make", "sub", 0)
    assert (record.status, record.classification, record.duration_ms) == ("passed", "passed", 1500)
    assert (record.summary, record.log_path, record.recorded_at) == ("3 passed", "/log", around.at)
    assert (record.job_id, record.workspace_tree_sha256) == ("shell_1", "t1")


@pytest.mark.parametrize(("began", "now"), [("t1", "t2"), ("", "t1"), ("t1", ""), ("", "")])
def test_a_workspace_that_changed_or_is_unknown_binds_nothing(began: str, now: str) -> None:
    record = gate_record("test", reading(), JobSpec("x", ("sh",), "/w", tree=began), GateContext(now, "", None))
    assert record.workspace_tree_sha256 is None and record.task_id is None and record.status == "failed"


def test_without_counts_the_end_of_the_output_is_the_summary() -> None:
    record = gate_record("fmt", reading("a\n" * 2000 + "last"), JobSpec("x", ("sh",), "/w"), GateContext("", "", None))
    assert record.summary.endswith("a\nlast") and len(record.summary) <= EVIDENCE_SUMMARY + 6
