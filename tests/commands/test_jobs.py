"""/jobs as a person types it: lists, looks, waits, writes and ends, with a cursor of the person's own."""

from pathlib import Path

import pytest

from codewhale.commands.base import CommandContext, bound, misuse
from codewhale.commands.jobs import USAGE, JobsCommand
from codewhale.protocol.events import JobStarted
from codewhale.protocol.ops import CommandOutput
from codewhale.services.jobs import ShellJobs
from support.jobs import Rig
from support.running import eventually


class Person(Rig):
    """Somebody with a command line over jobs; one job is of an earlier process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        old = JobStarted("shell_00000000", "npm run dev", ".")
        self.jobs = ShellJobs(lambda session, event: None, None, str(folder), lambda session: self.past)
        self.past = [old]

    async def says(self, line: str, session: str = "one") -> CommandOutput:
        command = bound(JobsCommand(self.jobs))["/jobs"]
        return await command.run(line, CommandContext(session, str(self.folder)))


@pytest.fixture
async def person(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = Person(tmp_path)
    yield made
    await made.jobs.aclose()


async def test_the_list_has_the_live_the_ended_and_the_stale(person: Person) -> None:
    live, ended = await person.start("sleep 600"), await person.start("exit 3", shown_cwd="sub")
    await person.jobs.wait("one", ended, 5)
    for line in ("", "list"):
        said = await person.says(line)
        stale, first, second = said.text.splitlines()
        assert said.ok and stale.startswith("shell_00000000 ") and "stale" in stale and "npm run dev" in stale
        assert first.startswith(live) and "Running: sleep 600" in first
        assert second.startswith(ended) and "Failed with exit code 3: exit 3 (in sub)" in second
    person.past.clear()
    assert (await person.says("", session="two")).text == "No background jobs."


async def test_show_tells_everything_and_moves_no_cursor(person: Person) -> None:
    job = await person.start("seq 1 50; echo oops >&2; sleep 600", task_id="task_1")
    await eventually(lambda: person.jobs.view("one", job).stderr_total)
    said = (await person.says(f"show {job}")).text
    for words in (job, "seq 1 50; echo oops >&2; sleep 600", "Running", "task_1", "none: it runs with your rights"):
        assert words in said
    assert said.endswith("50\noops") and "\n20\n" not in said and "141 bytes, and 5 of stderr" in said
    assert (await person.says(f"poll {job}")).text.startswith("1\n2\n")


async def test_poll_takes_nothing_from_the_model(person: Person) -> None:
    job = await person.start("echo hello; sleep 600")
    await eventually(lambda: person.jobs.view("one", job).stdout_total)
    assert "hello" in (await person.says(f"poll {job}")).text
    assert "(nothing new)" in (await person.says(f"poll {job}")).text
    assert person.jobs.read("one", job).stdout == "hello\n"


async def test_wait_and_stdin(person: Person) -> None:
    job = await person.start("read a; echo got $a; read b; echo and $b; cat; exit 4")
    assert "got one two" in (await person.says(f"stdin {job}  one two ")).text
    assert "and" in (await person.says(f"stdin {job}")).text
    assert "Running" in (await person.says(f"wait {job} 0.05")).text
    await person.says(f"stdin {job} --eof")
    ended = await person.says(f"wait {job} 5")
    assert not ended.ok and "Failed with exit code 4" in ended.text
    closed = await person.says(f"stdin {job} more")
    assert not closed.ok and "takes no input" in closed.text


async def test_cancel_one_and_all(person: Person) -> None:
    jobs = [await person.start("sleep 600") for _ in "abc"]
    assert "ended: Killed" in (await person.says(f"cancel {jobs[0]}")).text
    again = await person.says(f"cancel {jobs[0]}")
    assert again.ok and "had already ended" in again.text
    rest = (await person.says("cancel all")).text
    assert "Killed 2 jobs" in rest and jobs[1] in rest and jobs[2] in rest
    assert (await person.says("cancel all")).text == "No job was running."


async def test_the_beginning_of_an_id_will_do(person: Person) -> None:
    job = await person.start("sleep 600")
    for name in (job, job[:9], job[6:10]):
        assert job in (await person.says(f"show {name}")).text
    await person.start("sleep 600")
    several = await person.says("show shell_")
    assert not several.ok and "type more of the id" in several.text


async def test_what_makes_no_sense_is_said(person: Person) -> None:
    job = await person.start("sleep 600")
    for line in ("list x", "show", "frobnicate", f"dance {job}", "cancel"):
        assert (await person.says(line)) == misuse(USAGE)
    for seconds in ("soon", "-1", "nan"):
        assert not (await person.says(f"wait {job} {seconds}")).ok
    missing = await person.says("show zzz")
    assert not missing.ok and "no job 'zzz'" in missing.text and job in missing.text
    stale = await person.says("show shell_00000000")
    assert not stale.ok and "stale" in stale.text
    assert not (await person.says(f"show {job}", session="two")).ok


async def test_hundreds_are_listed_in_brief(person: Person) -> None:
    person.past[:] = [JobStarted(f"shell_{number:08x}", "x", ".") for number in range(250)]
    lines = (await person.says("")).text.splitlines()
    assert len(lines) == 101 and lines[0] == "... 150 earlier ones; 250 Stale"
