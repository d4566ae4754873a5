"""Jobs through the front door: what a model starts, a person sees, and a later process still knows of."""

import json
from pathlib import Path

from codewhale.protocol.events import JobEnded, JobStarted, Notice, SessionOpened, SessionResumed
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession, CommandOutput, RunCommand
from codewhale.session.store import SessionStore
from codewhale.testing import FakeClock, harness
from support.jail import call
from support.program import codewhale_program, scripted
from support.scenes import only, results

DONE = {"text": "That is all."}
SECRET = "sk-0123456789abcdef"


async def test_a_person_sees_the_models_jobs_and_takes_nothing_from_it(home: Path, workspace: Path) -> None:
    job = call("exec_shell", command="echo hello; sleep 600", background=True)
    script = [{"calls": [job]}, {"calls": [call("exec_shell", command="sleep 0.2")]}, DONE]

    def read_back(request: dict[str, object]) -> dict[str, object]:
        return {"calls": [call("exec_shell_wait", task_id=started.job_id, wait=False)]}

    async with harness(home, workspace, [*script, read_back, DONE]) as stage:
        session = await stage.open()
        events = await stage.turn("Go.", session)
        started = only(events, JobStarted)[0]

        async def person(line: str) -> CommandOutput:
            said: CommandOutput = await stage.client.submit(RunCommand(session, line))
            return said

        assert started.job_id in (await person("/jobs")).text
        assert "hello" in (await person(f"/jobs poll {started.job_id}")).text
        assert "hello" in results(await stage.turn("And?", session))[-1].content
        assert "Killed" in (await person(f"/jobs cancel {started.job_id}")).text
        other = await stage.open()
        assert (await stage.client.submit(RunCommand(other, "/jobs"))).text == "No background jobs."


async def test_what_still_ran_is_told_when_the_session_closes(home: Path, workspace: Path) -> None:
    calls = [call("exec_shell", command=f"sleep 60{number}", background=True) for number in range(23)]
    async with harness(home, workspace, [{"calls": calls}, DONE]) as stage:
        session = await stage.open()
        await stage.turn("Go.", session)
        await stage.client.submit(CloseSession(session))
    events = [envelope.event for envelope in SessionStore(str(home), FakeClock()).read(session)]
    told = [notice.text for notice in only(events, Notice) if notice.code == "job_ended"]
    assert len(told) == 21 and "(sleep 600)" in told[0] and told[-1] == "Killed with the session: 3 more jobs"
    assert len(only(events, JobEnded)) == 23


async def test_a_job_of_a_lost_process_is_stale_to_everyone(home: Path, workspace: Path) -> None:
    store = SessionStore(str(home), FakeClock())
    log = store.create(SessionOpened(1, str(workspace), Mode.YOLO, "scripted", "scripted"))
    log.append([JobStarted("shell_0000000a", "npm run dev", ".")])
    await log.barrier()
    log.close()
    asked = {"calls": [call("exec_shell_wait", task_id="shell_0000000a")]}
    async with harness(home, workspace, [asked, DONE]) as stage:
        session = await stage.open(resume=log.session)
        listed = await stage.client.submit(RunCommand(session, "/jobs"))
        (result,) = results(await stage.turn("How is it?", session))
    events = [envelope.event for envelope in store.read(log.session)]
    assert only(events, SessionResumed) and "stale" in listed.text and "npm run dev" in listed.text
    (notice,) = [notice for notice in only(events, Notice) if notice.code == "jobs_stale"]
    assert "shell_0000000a (npm run dev)" in notice.text
    assert not result.ok and "earlier process" in result.content and "npm run dev" in result.content


async def test_the_evidence_of_a_gate_holds_no_secret(home: Path, workspace: Path) -> None:
    def wait(request: dict[str, object]) -> dict[str, object]:
        return {"calls": [call("task_shell_wait", task_id=begun[0], wait=True, gate="test")]}

    begun: list[str] = []
    start = {"calls": [call("task_shell_start", command=f"seq 1 20000; echo {SECRET[:9]}''{SECRET[9:]}; exit 1")]}
    async with harness(home, workspace, [start, start, DONE, wait, wait, DONE], {"MY_API_KEY": SECRET}) as stage:
        session = await stage.open(authority=Authority.AUTO)
        begun += [event.job_id for event in only(await stage.turn("Go.", session), JobStarted)]
        found = results(await stage.turn("And?", session))[-1]
    record = found.metadata["task_updates"]["gate"]
    assert (record["status"], record["exit_code"], record["job_id"]) == ("failed", 1, begun[0])
    kept = Path(record["log_path"]).read_bytes()
    assert kept.startswith(b"1\n2\n") and kept.endswith(b"20000\n[redacted MY_API_KEY]\n")
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert SECRET.encode() not in everything


def test_a_run_says_which_jobs_end_with_it(home: Path, workspace: Path) -> None:
    job = json.dumps({"calls": [call("exec_shell", command="sleep 600", background=True)]})
    scripted(home, job, json.dumps(DONE))
    for output in ("text", "json", "stream-json"):
        done = codewhale_program(home, "exec", "--yolo", "-w", str(workspace), "--output-format", output, "Go.")
        assert done.returncode == 0 and "jobs killed at the end of this run: shell_" in done.stderr, done
        assert "end of this run" not in done.stdout
