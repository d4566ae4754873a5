"""Jobs that outlive their calls: readers, sessions, bounds, and the end of everything."""

import asyncio
import sys
from pathlib import Path

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import JobEnded, JobOutput, JobStarted
from codewhale.services.jobs import JobInput, JobSpec, service
from support.jobs import Rig
from support.patience import HANG, Moment
from support.running import eventually, pids, running


@pytest.fixture
async def rig(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = Rig(tmp_path)
    yield made
    await made.jobs.aclose()


async def test_a_job_runs_to_its_end_and_tells_so(rig: Rig) -> None:
    job = await rig.start("echo out; echo err >&2; exit 3", call_id="call_9")
    reading = await rig.jobs.wait("one", job, HANG)
    assert job.startswith("shell_") and len(job) == 14
    assert (reading.stdout, reading.stderr) == ("out\n", "err\n")
    assert (reading.job.status, reading.job.exit_code, reading.job.leftovers) == ("Failed", 3, 0)
    (begun,) = rig.events(JobStarted)
    assert isinstance(begun, JobStarted) and begun.pid == reading.job.pid
    assert (begun.job_id, begun.command, begun.cwd, begun.call_id) == (
        job,
        rig.jobs.view("one", job).command,
        ".",
        "call_9",
    )
    (ended,) = rig.events(JobEnded)
    assert isinstance(ended, JobEnded) and (ended.status, ended.exit_code) == ("Failed", 3)
    assert "".join(event.text for event in rig.events(JobOutput) if isinstance(event, JobOutput)) == "out\nerr\n"


@pytest.mark.parametrize(
    ("command", "more", "status", "code"),
    [
        ("true", {}, "Completed", 0),
        ("exit 9", {}, "Failed", 9),
        ("kill -KILL $$", {}, "Failed", 137),
        ("sleep 600", {"seconds": 0.1}, "TimedOut", None),
    ],
)
async def test_status_words(rig: Rig, command: str, more: dict[str, object], status: str, code: int | None) -> None:
    view = (await rig.jobs.wait("one", await rig.start(command, **more), HANG)).job
    assert (view.status, view.exit_code) == (status, code)


async def test_each_reader_has_a_cursor_of_its_own(rig: Rig) -> None:
    job = await rig.start("while read line; do echo $line; done")
    await rig.jobs.interact("one", job, JobInput(b"a\n", seconds=HANG))
    assert rig.jobs.read("one", job, "person").stdout == "a\n"
    reading = await rig.jobs.interact("one", job, JobInput(b"b\n", seconds=HANG))
    assert reading.stdout == "b\n"
    assert rig.jobs.read("one", job, "person").stdout == "b\n"
    assert rig.jobs.read("one", job, "person").stdout == ""
    assert rig.jobs.read("one", job, "late").stdout == "a\nb\n"


async def test_reading_returns_only_what_is_new(rig: Rig) -> None:
    job = await rig.start("while read line; do echo $line; done; echo end")
    assert (await rig.jobs.interact("one", job, JobInput(b"1\n", seconds=HANG))).stdout == "1\n"
    assert (await rig.jobs.interact("one", job, JobInput(b"2\n", close=True, seconds=HANG))).stdout == "2\nend\n"
    assert (await rig.jobs.wait("one", job, HANG)).stdout == ""


async def test_output_is_bounded_and_telling_lines_stay(rig: Rig) -> None:
    lines = "for n in range(20000): print('line', n, 'error: here' if n == 9000 else '')"
    job = await rig.start(f'{sys.executable} -c "{lines}"')
    reading = await rig.jobs.wait("one", job, HANG)
    assert reading.stdout.startswith("line 0") and reading.stdout.endswith("line 19999 \n")
    assert "line 9000 error: here" in reading.stdout
    assert reading.stdout_omitted == reading.job.stdout_total - 30_000
    assert len(reading.stdout) < 31_000


async def test_characters_split_between_reads_are_whole(rig: Rig) -> None:
    job = await rig.start("printf '\\342\\202'; read line; printf '\\254'; read line")
    await eventually(lambda: rig.jobs.view("one", job).pid)
    first = await rig.jobs.interact("one", job, JobInput(b"", seconds=0.3))
    second = await rig.jobs.interact("one", job, JobInput(b"\n", seconds=HANG))
    assert first.stdout + second.stdout == "€"


async def test_sessions_never_see_each_others_jobs(rig: Rig) -> None:
    mine, theirs = await rig.start("sleep 600"), await rig.start("sleep 600", session="two")
    assert [job.id for job in rig.jobs.jobs("one")] == [mine]
    for reach in (rig.jobs.view, rig.jobs.read):
        with pytest.raises(KeyError):
            reach("one", theirs)
    for asked in (rig.jobs.wait("one", theirs, 0), rig.jobs.cancel("one", theirs)):
        with pytest.raises(KeyError):
            await asked
    assert [job.id for job in await rig.jobs.cancel_all("one")] == [mine]
    assert rig.jobs.view("two", theirs).status == "Running"


async def test_cancelling_ends_the_tree(rig: Rig, tmp_path: Path) -> None:
    job = await rig.start(
        "trap '' TERM; (setsid sh -c 'echo $$ > away; sleep 600' &); echo $$ > main; sleep 600; sleep 600"
    )
    await eventually(lambda: len(pids(tmp_path / "main", tmp_path / "away")) == 2)
    began = Moment()
    view = await rig.jobs.cancel("one", job)
    assert view.status == "Killed" and not began.hung
    assert not any(running(pid) for pid in pids(tmp_path / "main", tmp_path / "away"))
    assert (await rig.jobs.cancel("one", job)).status == "Killed"


async def test_cancelling_a_wait_leaves_the_job(rig: Rig) -> None:
    job = await rig.start("sleep 600")
    waiting = asyncio.create_task(rig.jobs.wait("one", job, 60))
    await asyncio.sleep(0)
    began = Moment()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not began.hung and rig.jobs.view("one", job).status == "Running"


async def test_a_wait_ends_with_its_time(rig: Rig) -> None:
    job = await rig.start("sleep 600")
    assert (await rig.jobs.wait("one", job, 0.2)).job.status == "Running"


async def test_a_command_that_left_something_behind_runs_on(rig: Rig) -> None:
    job = await rig.start("(sleep 0.5; echo late) & echo early", background=False)
    first = await rig.jobs.wait("one", job, None)
    assert first.stdout == "early\n" and first.job.exited and first.job.status == "Running" and first.job.leftovers
    assert rig.jobs.jobs("one") == [] and rig.heard == []
    rig.jobs.keep("one", job)
    assert [view.id for view in rig.jobs.jobs("one")] == [job]
    second = await rig.jobs.wait("one", job, HANG)
    assert second.stdout == "late\n" and second.job.status == "Completed" and second.job.exit_code == 0
    assert [type(event) for _, event in rig.heard] == [JobStarted, JobOutput, JobEnded]


async def test_writing_to_what_has_ended_is_a_broken_pipe(rig: Rig) -> None:
    job = await rig.start("true")
    await rig.jobs.wait("one", job, HANG)
    with pytest.raises(BrokenPipeError):
        await rig.jobs.interact("one", job, JobInput(b"x"))


async def test_a_job_that_does_not_read_holds_nobody(rig: Rig) -> None:
    job = await rig.start("sleep 600")
    began = Moment()
    await rig.jobs.interact("one", job, JobInput(b"x" * 1_000_000, seconds=0.2))
    assert not began.hung


async def test_a_terminal_answers(rig: Rig) -> None:
    job = await rig.start("stty -echo; tty; read word; echo got $word", tty=True)
    await eventually(lambda: rig.jobs.view("one", job).stdout_total)
    reading = await rig.jobs.interact("one", job, JobInput(b"hello\n", seconds=HANG))
    assert "/dev/" in reading.stdout and "got hello" in reading.stdout


async def test_ended_jobs_are_forgotten_after_an_hour(rig: Rig) -> None:
    old = await rig.start("true")
    await rig.jobs.wait("one", old, HANG)
    rig.clock.at += service.KEEP_SECONDS - 1
    assert [job.id for job in rig.jobs.jobs("one")] == [old]
    rig.clock.at += 2
    assert rig.jobs.jobs("one") == []


async def test_fifty_jobs_at_once(rig: Rig) -> None:
    ids = [await rig.start(f"read line; echo {number}") for number in range(50)]
    assert len(rig.jobs.jobs("one")) == 50
    await asyncio.gather(*(rig.jobs.interact("one", job, JobInput(b"\n", seconds=HANG)) for job in ids))
    await asyncio.gather(*(rig.jobs.wait("one", job, HANG) for job in ids))
    assert all(rig.jobs.view("one", job).status == "Completed" for job in ids)
    assert [int(rig.jobs.read("one", job, "person").stdout) for job in ids] == list(range(50))


async def test_g4_a_flood_from_a_job_stays_small(rig: Rig) -> None:
    job = await rig.start("head -c 100000000 /dev/zero | tr '\\0' 'a'")
    reading = await rig.jobs.wait("one", job, HANG)
    assert reading.job.stdout_total == 100_000_000 and len(reading.stdout) < 31_000
    told = sum(len(event.text) for event in rig.events(JobOutput) if isinstance(event, JobOutput))
    assert told < 1_000_000


async def test_closing_ends_everything_and_says_what_ran(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    ran = await rig.start("echo $$ > main; sleep 600")
    done = await rig.start("true", session="two")
    await rig.jobs.wait("two", done, HANG)
    await eventually(lambda: pids(tmp_path / "main"))
    assert [job.id for job in await rig.jobs.aclose()] == [ran]
    assert not any(running(pid) for pid in pids(tmp_path / "main"))
    assert await rig.jobs.aclose() == []
    with pytest.raises(ToolError) as caught:
        await rig.start("true")
    assert "the session is closing" in caught.value.message and caught.value.fix is None


async def test_what_cannot_be_started_leaves_no_job(rig: Rig, tmp_path: Path) -> None:
    with pytest.raises(OSError):
        await rig.jobs.start("one", JobSpec("x", ("/no/such/shell",), str(tmp_path), background=True))
    assert rig.jobs.jobs("one") == [] and rig.heard == []
