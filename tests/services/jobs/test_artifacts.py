"""The log of a job as an artifact: without secrets, with both ends, and nothing where the disk is full."""

from pathlib import Path

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.tools import ToolResult
from codewhale.services.jobs.artifacts import HEAD, TAIL, LogArchive, clean
from codewhale.services.jobs.log import JobLog, LogFolder
from support.jobs import SECRET, Rig
from support.patience import HANG
from support.running import eventually


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


def test_secrets_are_out_also_between_two_blocks(tmp_path: Path) -> None:
    log = JobLog(LogFolder(str(tmp_path)))
    line = f"key {SECRET} " + "." * 37 + "\n"
    log.feed(line.encode() * 60_000)
    said = b"".join(clean(log, "", redact))
    assert SECRET.encode() not in said and said.decode() == line.replace(SECRET, "[redacted]") * 60_000


def test_a_long_log_keeps_both_ends_and_says_what_is_missing(tmp_path: Path) -> None:
    log = JobLog(LogFolder(str(tmp_path)), HEAD + TAIL + 1000)
    log.feed(b"a" * HEAD + b"b" * 1000 + b"c" * TAIL + b"d" * 500)
    said = b"".join(clean(log, "the end", redact))
    assert said.startswith(b"a" * HEAD) and b"bb" not in said and b"c" * TAIL in said
    assert b"[... 1000 bytes left out ...]" in said
    assert said.endswith(b"[... 500 of %d bytes were not kept; the end of them: ...]\nthe end" % log.total)


async def test_a_result_that_left_something_out_gets_the_handle(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    artifacts = ArtifactStore(str(tmp_path / "artifacts"))
    keeper = LogArchive(rig.jobs, artifacts, lambda session: redact)
    job = await rig.start(f"seq 1 20000; echo {SECRET}")
    reading = await rig.jobs.wait("one", job, HANG)
    result = await keeper.with_whole("one", reading, ToolResult("short"))
    assert result.content.startswith("short\n[all ") and result.metadata["log_artifact_id"] in result.content
    kept = artifacts.get(result.metadata["log_artifact_sha256"])
    assert kept.endswith(b"\n20000\n[redacted]\n") and result.metadata["log_bytes"] == len(kept)
    nothing = await rig.jobs.wait("one", job, 0)
    assert await keeper.with_whole("one", nothing, ToolResult("short")) == ToolResult("short")
    await rig.jobs.aclose()


async def test_what_still_runs_is_not_kept_yet(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    keeper = LogArchive(rig.jobs, ArtifactStore(str(tmp_path / "artifacts")), lambda session: redact)
    job = await rig.start("seq 1 20000; sleep 600")
    await eventually(lambda: rig.jobs.view("one", job).stdout_total > 100_000)
    reading = rig.jobs.read("one", job)
    assert reading.stdout_omitted and await keeper.with_whole("one", reading, ToolResult("x")) == ToolResult("x")
    await rig.jobs.aclose()


async def test_a_full_disk_leaves_the_result_as_it_is(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    (tmp_path / "file").write_text("")
    keeper = LogArchive(rig.jobs, ArtifactStore(str(tmp_path / "file" / "artifacts")), lambda session: redact)
    job = await rig.start("seq 1 20000")
    reading = await rig.jobs.wait("one", job, HANG)
    assert await keeper.keep("one", job) is None
    assert await keeper.with_whole("one", reading, ToolResult("x")) == ToolResult("x")
    with pytest.raises(KeyError):
        await keeper.keep("two", job)
    await rig.jobs.aclose()
