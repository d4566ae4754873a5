"""How a job is told: its standing in words, its metadata, and what is said of one that is not there."""

from pathlib import Path

import pytest

from codewhale.protocol.events import JobStarted
from codewhale.services.jobs import JobReading, JobView, ShellJobs
from codewhale.services.jobs.render import delta_result, metadata, output_text, status_text, succeeded, unknown_job
from support.jobs import Rig


def view(status: str = "Running", code: int | None = None, **more: object) -> JobView:
    fields = {"leftovers": 0, "pid": 7, "stdout_total": 0, "stderr_total": 0, "exited": False, **more}
    return JobView("shell_1", "make", ".", status, code, 1.0, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "said", "good"),
    [
        (view(), "Running", True),
        (view("Completed", 0, exited=True), "Completed with exit code 0", True),
        (view("Failed", 3), "Failed with exit code 3", False),
        (view("Failed", 137), "Failed with exit code 137 (signal 9)", False),
        (view("TimedOut"), "TimedOut", False),
        (view("Running", 0, exited=True, leftovers=2), "exited with code 0, 2 of its processes still run", True),
        (view("Killed", over="memory"), "more memory than a command may", False),
        (view("Stale", exited=True), "an earlier process of CodeWhale ran it; it ended with that", False),
        (view("Stale", leftovers=1), "its process 7 is still there (kill 7 ends it)", False),
    ],
)
def test_standing(job: JobView, said: str, good: bool) -> None:
    assert said in status_text(job) and succeeded(job) is good


def test_both_streams_are_told_apart() -> None:
    assert output_text(JobReading(view(), "a", "b\n")) == "a\n\nSTDERR:\nb\n"
    assert output_text(JobReading(view(), "", "b")) == "STDERR:\nb"
    assert output_text(JobReading(view(), "a", "")) == "a"


def test_a_delta_says_how_the_job_stands_and_what_failed() -> None:
    result = delta_result(JobReading(view("Failed", 1), "", "no", 0, 5), "error: x")
    assert not result.ok and result.content == "STDERR:\nno\n[shell_1: Failed with exit code 1, 1.0 s]"
    assert result.metadata["stderr_truncated"] and result.metadata["cargo_failure_summary"] == "error: x"
    assert delta_result(JobReading(view(), "", "")).content.startswith("(no new output)\n")
    assert "cargo_failure_summary" not in metadata(JobReading(view(), "", ""))
    long = metadata(JobReading(view(), "\n\n".join(["x" * 300] * 5), ""))
    assert len(long["stdout_summary"]) == 240 and long["summary"] == long["stdout_summary"]


async def test_a_stale_job_is_told_from_one_that_never_was(tmp_path: Path) -> None:
    past = [JobStarted("shell_0000000a", "npm run dev", ".", pid=1, since=1), JobStarted("shell_0000000b", "x", ".")]
    jobs = ShellJobs(lambda session, event: None, folder=str(tmp_path), past=lambda session: past)
    (first, second) = jobs.stale("one")
    assert (first.status, first.exited, first.pid, second.exited) == ("Stale", True, 0, True)
    stale, never = unknown_job(jobs, "one", "shell_0000000a"), unknown_job(jobs, "one", "shell_ffffffff")
    assert "earlier process" in stale.message and "run its command again" in stale.message and stale.fix is None
    assert "no job shell_ffffffff" in never.message and "no background jobs" in never.message
    await jobs.aclose()


async def test_a_process_that_outlived_its_harness_is_named(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    job = await rig.start("sleep 600")
    (begun,) = rig.events(JobStarted)
    assert isinstance(begun, JobStarted) and begun.since > 0
    later = ShellJobs(lambda session, event: None, folder=str(tmp_path), past=lambda session: [begun])
    (found,) = later.stale("one")
    assert not found.exited and found.pid == begun.pid and str(begun.pid) in status_text(found)
    assert rig.jobs.stale("one") == [] and job == found.id
    await rig.jobs.aclose()
    assert later.stale("one")[0].exited
