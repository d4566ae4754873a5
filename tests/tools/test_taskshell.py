"""task_shell_start and task_shell_wait: long commands, and gates whose evidence is the job's own."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from codewhale.protocol.tools import CommandSubject, GateRun
from codewhale.services.testruns.tree import tree_hash
from support.jobs import SECRET, Shell
from support.patience import HANG
from support.running import LoopTime, eventually

RECORD = {
    "id", "gate", "command", "cwd", "exit_code", "status", "classification", "duration_ms", "summary", "log_path",
    "recorded_at", "job_id", "task_id", "workspace_tree_sha256", "tree_before", "tree_after", "log_sha256",
}  # fmt: skip


@pytest.fixture
async def shell(workspace: Path):  # type: ignore[no-untyped-def]
    made = Shell(workspace)
    yield made
    await made.jobs.aclose()


async def ended(shell: Shell, command: str, **arguments: object) -> str:
    """A job that has run to its end and was read."""
    started = await shell.call("task_shell_start", command=command, **arguments)
    job: str = started.metadata["task_id"]
    await shell.jobs.wait("one", job, HANG)
    return job


async def test_start_returns_at_once_with_a_job(shell: Shell) -> None:
    started = await shell.call("task_shell_start", command="echo hello; sleep 600")
    job = started.metadata["task_id"]
    assert started.ok and job in started.content and "task_shell_wait" in started.content
    assert started.metadata["background"] and started.metadata["task_shell"] and started.metadata["status"] == "Running"
    assert [view.id for view in shell.jobs.jobs("one")] == [job]


async def test_wait_returns_at_once_unless_told_otherwise(shell: Shell) -> None:
    started = await shell.call("task_shell_start", command="read line; echo got $line", stdin="", tty=False)
    job = started.metadata["task_id"]
    idle = await shell.call("task_shell_wait", task_id=job)
    assert idle.ok and "no new output" in idle.content and idle.metadata["status"] == "Running"
    sent = await shell.call("exec_shell_interact", task_id=job, input="x\n", timeout_ms=0)
    end = await shell.call("task_shell_wait", task_id=job, wait=True, timeout_ms=600_000)
    assert "got x" in sent.content + end.content and end.metadata["status"] == "Completed"


async def test_a_terminal_and_a_time(shell: Shell) -> None:
    time = LoopTime()
    started = await shell.call("task_shell_start", command="tty; touch said; sleep 600", tty=True, timeout_ms=600_000)
    await eventually((shell.workspace / "said").exists)
    time.move(601)
    end = await shell.call("task_shell_wait", task_id=started.metadata["task_id"], wait=True)
    assert "/dev/" in end.content and end.metadata["status"] == "TimedOut" and not end.ok


async def test_a_bad_directory_and_an_unknown_job_are_refused(shell: Shell) -> None:
    error = await shell.refused("task_shell_start", command="pwd", cwd="missing")
    assert error.field == "cwd" and error.fix is None
    assert (await shell.refused("task_shell_start", command="echo a\0b")).field == "command"
    assert (await shell.refused("task_shell_wait", task_id="shell_00000000", gate="test")).field == "task_id"


async def test_a_gate_is_recorded_from_the_job(shell: Shell, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "a.txt").write_text("one\n")
    job = await ended(shell, f"echo {SECRET}; echo 3 passed in 0.1s; exit 2", cwd="sub")
    result = await shell.call("task_shell_wait", task_id=job, gate="test", command="cargo test --all")
    record = result.metadata["task_updates"]["gate"]
    assert record.keys() == RECORD and record["id"].startswith("gate_") and record["job_id"] == job
    assert record["command"] == f"echo {SECRET}; echo 3 passed in 0.1s; exit 2" and record["cwd"] == "sub"
    assert (record["gate"], record["status"], record["exit_code"], record["task_id"]) == ("test", "failed", 2, None)
    assert record["workspace_tree_sha256"] == (await tree_hash(str(workspace))).sha256 != ""
    with open(record["log_path"], "rb") as log:
        assert log.read() == b"[redacted]\n3 passed in 0.1s\n"
    assert os.path.basename(record["log_path"]) == result.metadata["log_artifact_sha256"]
    assert "Gate test failed" in result.content and "No durable task is active" in result.content
    assert "not the one given in the call" in result.content and result.metadata["log_artifact_id"] in result.content
    assert SECRET in result.metadata["stdout_summary"], "what leaves here is redacted by dispatch, once"


async def test_the_same_command_is_no_difference(shell: Shell) -> None:
    job = await ended(shell, "echo  'a  b'")
    result = await shell.call("task_shell_wait", task_id=job, gate="custom", command="echo 'a  b'")
    assert result.ok and "not the one given" not in result.content
    assert result.metadata["task_updates"]["gate"]["classification"] == "passed"


async def test_evidence_of_a_workspace_that_changed_is_bound_to_nothing(shell: Shell, workspace: Path) -> None:
    job = await ended(shell, "echo new > made.txt")
    result = await shell.call("task_shell_wait", task_id=job, gate="check")
    assert result.metadata["task_updates"]["gate"]["workspace_tree_sha256"] is None
    assert "files changed while it ran" in result.content
    other = (await shell.call("exec_shell", command="true", background=True)).metadata["task_id"]
    await shell.jobs.wait("one", other, HANG)
    later = await shell.call("task_shell_wait", task_id=other, gate="check")
    assert "was not hashed when it began" in later.content


async def test_a_gate_of_a_running_job_is_not_recorded(shell: Shell) -> None:
    started = await shell.call("task_shell_start", command="echo so far; sleep 600")
    result = await shell.call("task_shell_wait", task_id=started.metadata["task_id"], gate="test")
    assert "No evidence" in result.content and "task_updates" not in result.metadata


async def test_a_gate_that_runs_leaves_evidence_and_no_process(shell: Shell, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    result = await shell.call("task_gate_run", gate="test", command="cat a.txt; sleep 600 & echo left $! >&2")
    record, tree = result.metadata["task_updates"]["gate"], (await tree_hash(str(workspace))).sha256
    assert result.ok and (record["status"], record["exit_code"], record["classification"]) == ("passed", 0, "passed")
    assert record["tree_before"] == record["tree_after"] == record["workspace_tree_sha256"] == tree
    assert (
        record["log_sha256"]
        and Path(record["log_path"]).read_text()
        == result.metadata["stdout_summary"] + (result.metadata["stderr_summary"])
    )
    pid = int(result.metadata["stderr_summary"].split()[1])
    assert not os.path.exists(f"/proc/{pid}") and "left processes behind" in result.content
    (update,) = [one for one in result.updates if isinstance(one, GateRun)]
    assert update.gate.id == record["id"] and json.loads(result.content)["gate"] == record


async def test_a_failed_gate_fails_and_import_and_report_are_no_port(shell: Shell) -> None:
    said = "echo 'import app; from app import report'; echo 'E  assert 1 == 2'; exit 1"
    result = await shell.call("task_gate_run", gate="test", command=said)
    record = result.metadata["task_updates"]["gate"]
    assert not result.ok and (record["status"], record["classification"]) == ("failed", "test_failure")
    gone = await shell.call("task_gate_run", gate="custom", command="no-such-program-of-all")
    assert gone.metadata["task_updates"]["gate"]["classification"] == "environment_or_tooling_failure"


async def test_a_gate_that_outlives_its_time_leaves_its_whole_output(shell: Shell) -> None:
    time, command = LoopTime(), "echo $$; seq 1 20000; touch said; sleep 600 & sleep 600"
    running = asyncio.create_task(shell.call("task_gate_run", gate="check", command=command, timeout_ms=600_000))
    await eventually((shell.workspace / "said").exists)
    time.move(601)
    result = await running
    record = result.metadata["task_updates"]["gate"]
    assert not result.ok and record["status"] == record["classification"] == "timeout" and result.metadata["timed_out"]
    lines = Path(record["log_path"]).read_text().splitlines()
    assert lines[1:] == [str(number) for number in range(1, 20001)]
    assert not os.path.exists(f"/proc/{lines[0]}")


async def test_a_gate_that_is_interrupted_leaves_its_evidence(shell: Shell) -> None:
    running = asyncio.create_task(shell.call("task_gate_run", gate="test", command="echo so far; sleep 600"))
    await eventually(lambda: any(b"so far" in bytes(job.recent) for job in shell.jobs._jobs.values()))
    running.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await running
    (result,) = stopped.value.args
    assert not result.ok and "so far" in result.content and result.metadata["status"] == "Killed"


async def test_what_a_person_approves(shell: Shell) -> None:
    start, wait = shell.tools["task_shell_start"].decl, shell.tools["task_shell_wait"].decl
    args = shell.tools["task_shell_start"].args
    assert start.subjects(args(command="make", cwd="sub")) == (CommandSubject("make", "sub", True),)  # type: ignore[call-arg]
    gate = shell.tools["task_gate_run"]
    assert gate.decl.effects == ("executes",)
    wanted = gate.args(gate="test", command="make test", cwd="sub")  # type: ignore[call-arg]
    assert gate.subjects(wanted) == (CommandSubject("make test", "sub"),)
    assert start.effects == ("executes",) and wait.effects == ("reads",) and wait.polls
