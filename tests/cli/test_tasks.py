"""`codewhale tasks` and `codewhale work` as programs: what is queued by one process is run, and survived, by others."""

import asyncio
import contextlib
import hashlib
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codewhale.automations.book import AutomationBook
from codewhale.cli.tui import _Engine
from codewhale.lib.clock import SystemClock
from codewhale.lib.failpoints import VARIABLE
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import OpenSession
from codewhale.protocol.tasks import AddTask, GetTask, ListTasks
from codewhale.session.store import SessionStore
from codewhale.tasks.book import TaskBook
from codewhale.tasks.model import TaskSpec
from support.patience import HANG
from support.program import codewhale_program, environment
from support.repos import make_repo, write
from support.taskserver import LEASE, TaskServer, add_task, call, serving, shown_task

TURNS = {
    "Build": [call("write_file", path="built.txt", content="once\n"), {"text": "Built it."}],
    "Sleep": [call("write_file", path="slept.txt", content="once\n"), {"text": "never", "hold": "sleep"}],
    "Prove": [
        *[call("task_gate_run", gate="custom", command="grep -c one a.txt; echo import report")] * 2,
        {"text": "All is green."},
    ],
    "Try": [call("pr_attempt_record", summary="Add a line", verification=["make test"]), {"text": "Kept."}],
    "Hear": [{"text": "Heard it."}],
    "Ask": [call("exec_shell", command="curl https://example.com"), {"text": "I looked for it."}],
    "Stop": [
        call("write_file", path="stopped.txt", content="once\n"),
        {**call("write_file", path="late.txt", content="late\n"), "hold": "stop"},
    ],
    "Last": [call("write_file", path="last.txt", content="once\n"), {"text": "never", "hold": "last"}],
}


@pytest.fixture(scope="module")
def server() -> Iterator[TaskServer]:
    with serving(TURNS) as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, server: TaskServer) -> Path:
    (tmp_path / "work").mkdir()
    server.configure(tmp_path / "state", LEASE)
    return tmp_path


def run(place: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return codewhale_program(place, *arguments, cwd=place / "work")


def until(place: Path, task: str, status: str) -> dict[str, Any]:
    ends = time.monotonic() + HANG
    while (found := shown_task(place, task))["task"]["status"] != status:
        assert time.monotonic() < ends, found
        time.sleep(0.2)
    return found


def expire(place: Path) -> None:
    """Let the time of every lease be over."""
    file = place / "state/journal/journal.sqlite3"
    with contextlib.closing(sqlite3.connect(file, timeout=HANG)) as base, base:
        base.execute("UPDATE runs SET expires = 0")


def worker(place: Path, *arguments: str, env: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "codewhale", "work", *arguments]
    return subprocess.Popen(command, cwd=place, env=environment(place, env), stderr=subprocess.PIPE, text=True)


def test_what_is_queued_is_run_by_whoever_works(place: Path) -> None:
    task = add_task(place, "--auto Build it")
    listed = json.loads(run(place, "tasks", "list", "--json").stdout)
    assert [one["status"] for one in listed["tasks"]] == ["queued"] and "codewhale work" in listed["notice"]
    assert "nobody works" in run(place, "doctor", "--offline").stdout
    done = run(place, "work", "--once", "--workers", "1")
    assert done.returncode == 0 and f"{task} begins" in done.stderr and f"{task} completed" in done.stderr
    found = shown_task(place, task[:9])
    assert (found["task"]["status"], found["task"]["result"]) == ("completed", "Built it.")
    assert (place / "work/built.txt").read_text() == "once\n"
    assert "Built it." in run(place, "tasks", "show", task).stdout
    assert task in run(place, "sessions", "list", "--children").stdout
    assert "no sessions" in run(place, "sessions", "list").stdout
    for wrong in (("cancel", task), ("resume", task), ("show", "nothing"), ("show", "../x")):
        refused = run(place, "tasks", *wrong)
        assert refused.returncode == 2 and "`task_id`" in refused.stderr and "codewhale tasks" in refused.stderr
    assert {run(place, "work", "--workers", number).returncode for number in ("9", "0", "\u0663")} == {2}


@pytest.mark.parametrize("flag", ["--auto", "--on-death-resume"])
def test_what_a_task_may_unasked_needs_a_session_that_asks_nothing(place: Path, flag: str) -> None:
    refused = run(place, "exec", f"/task add {flag} Build it")
    assert refused.returncode != 0 and "in a session that asks nothing" in refused.stderr
    made = run(place, "exec", "--auto", f"/task add {flag} Build it")
    assert made.returncode == 0 and "is queued" in made.stdout


def test_a_task_that_was_refused_a_call_says_which_and_what_would_allow_it(place: Path) -> None:
    task = add_task(place, "Ask for it")
    worked = run(place, "work", "--once").stderr
    why = f"{task} failed: exec_shell was refused: Needs approval: "
    assert why in worked and "`/task add --auto`" in worked and "Go on without it" not in worked
    assert f"{task}  failed: exec_shell was refused" in run(place, "tasks", "list").stdout
    told = run(place, "tasks", "show", task).stdout
    assert "answer: I looked for it." in told and "exec_shell: Needs approval" in told


def test_the_receipt_and_the_artifacts_of_a_task(place: Path) -> None:
    (place / "work/a.txt").write_text("one\n")
    task = add_task(place, "--auto Prove it")
    assert run(place, "work", "--once").returncode == 0
    found = shown_task(place, task)
    (gate,), receipt = found["gates"], found["receipt"]
    assert (gate["task_id"], gate["status"], receipt["verified"]) == (task, "passed", [gate["id"]])
    assert receipt["claimed"] == ["All is green."]
    printed = run(place, "tasks", "artifact", task, f"{gate['id']}.log")
    assert (printed.returncode, printed.stdout) == (0, "1\nimport report\n")
    wrong = run(place, "tasks", "artifact", task, "../x")
    assert wrong.returncode == 2 and f"{gate['id']}.log" in wrong.stderr
    (place / "work/a.txt").write_text("onE\n")
    assert shown_task(place, task)["receipt"]["gates"] == [
        {"gate": gate["id"], "status": "passed", "standing": "stale"}
    ]
    assert "stale: files were changed since" in run(place, "tasks", "show", task).stdout


def test_the_attempt_of_a_task_is_its_artifact(place: Path) -> None:
    make_repo(place / "work", {"a.txt": "one\n"})
    write(place / "work", {"a.txt": "one\ntwo\n", "new.txt": "new\n"})
    task = add_task(place, "--auto Try it")
    assert run(place, "work", "--once").returncode == 0
    found = shown_task(place, task)
    (attempt,), (artifact,) = found["attempts"], found["artifacts"]
    assert (attempt["task_id"], attempt["changed_files"]) == (task, ["a.txt", "new.txt"])
    printed = run(place, "tasks", "artifact", task, f"{attempt['id']}.patch").stdout
    assert hashlib.sha256(printed.encode()).hexdigest() == artifact["sha256"] and "+two\n" in printed
    assert f"{attempt['id']}: Add a line" in run(place, "tasks", "show", task).stdout


def test_a_killed_worker_leaves_its_task_to_a_person_or_to_the_next(place: Path, server: TaskServer) -> None:
    waits, goes_on = add_task(place, "Sleep well"), add_task(place, "--auto --on-death-resume Last long")
    killed = worker(place)
    ends = time.monotonic() + HANG
    while min(server._played.get(name, 0) for name in ("Sleep", "Last")) < 2:  # the calls of both have ended
        assert time.monotonic() < ends and killed.poll() is None
        time.sleep(0.1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=HANG)
    expire(place)
    assert until(place, waits, "interrupted")["task"]["attempt"] == 1
    other = worker(place)
    try:
        found = until(place, goes_on, "completed")["task"]
        assert found["attempt"] >= 2 and found["result"] == "Done."
        assert shown_task(place, waits)["task"]["status"] == "interrupted"
        assert json.loads(run(place, "tasks", "list", "--json").stdout)["notice"] == ""
        assert run(place, "tasks", "resume", waits).returncode == 0
        assert until(place, waits, "completed")["task"]["attempt"] >= 2
        assert add_task(place, "Build again")
    finally:
        other.send_signal(signal.SIGTERM)
        said = other.communicate(timeout=HANG)[1]
    assert other.returncode == 0 and "Traceback" not in said, said


def test_a_worker_that_slept_through_its_lease_writes_nothing_more(place: Path, server: TaskServer) -> None:
    task = add_task(place, "--auto --on-death-resume Stop here")
    stopped = worker(place)
    try:
        wait_for(lambda: server._played.get("Stop") == 2)
        stopped.send_signal(signal.SIGSTOP)
        expire(place)
        other = worker(place, "--once")
        said = other.communicate(timeout=HANG)[1]
        assert other.returncode == 0 and f"{task} completed" in said
        before = shown_task(place, task)
        assert before["task"]["status"] == "completed" and before["task"]["attempt"] >= 2
        stopped.send_signal(signal.SIGCONT)
        server.go_on("stop")  # it is answered with a call that would write
        stopped.send_signal(signal.SIGTERM)
        said = stopped.communicate(timeout=HANG)[1]
        assert stopped.returncode == 0 and f"{task} is not this process's any more" in said
        assert shown_task(place, task)["task"] == before["task"]
        assert not (place / "work/late.txt").exists()
    finally:
        stopped.kill()
        stopped.communicate(timeout=HANG)


def wait_for(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + HANG
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_a_limit_on_the_size_of_files_is_an_error_and_loses_nothing(place: Path) -> None:
    task = add_task(place, "Build it")
    command = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", sys.executable, "-m", "codewhale", "tasks", "list"]
    limited = subprocess.run(command, cwd=place, env=environment(place), capture_output=True, text=True, timeout=HANG)
    assert limited.returncode == 1 and "Traceback" not in limited.stderr
    assert "nothing was written. Look whether it is full, limited or faulty" in limited.stderr
    assert shown_task(place, task)["task"]["status"] == "queued"


async def test_an_open_interface_works_at_tasks(place: Path) -> None:
    opening = OpenSession(str(place / "work"), authority=Authority.PERSON)
    async with _Engine(str(place / "state"), opening, {}, []).connect() as client:
        view = await client.submit(AddTask(await client.submit(opening), "Build it by hand"))
        async with asyncio.timeout(HANG):
            while True:
                record = await client.query(GetTask(view.id))
                if record.task.status == "completed":
                    break
                await asyncio.sleep(0.1)
        assert (await client.query(ListTasks())).workers[0].startswith("terminal")


def test_a_task_whose_words_were_lost_with_its_first_turn_hears_them_again(place: Path, server: TaskServer) -> None:
    task = add_task(place, "--auto --on-death-resume Hear it")
    died = worker(place, "--once", env={VARIABLE: "log.append.mid=kill@3"})
    died.communicate(timeout=HANG)
    (log,) = (path for path in (place / "state/sessions").rglob("log.jsonl") if task in path.read_text())
    whole = [json.loads(line)["event"]["type"] for line in log.read_text().splitlines() if line.endswith("}")]
    assert died.returncode == -signal.SIGKILL and whole[-1] == "turn_started"
    expire(place)
    assert run(place, "work", "--once").returncode == 0
    found = shown_task(place, task)["task"]
    assert (found["status"], found["result"], found["attempt"]) == ("completed", "Heard it.", 2)


def test_work_once_runs_what_is_due_first(place: Path) -> None:
    book = TaskBook(str(place / "state"), SessionStore(str(place / "state"), SystemClock()))
    made = AutomationBook(book).create(
        "build", "FREQ=HOURLY;INTERVAL=1", "UTC", TaskSpec("Build it", str(place / "work"))
    )
    book.close()
    with contextlib.closing(sqlite3.connect(place / "state/journal/journal.sqlite3")) as base, base:
        base.execute("UPDATE schedules SET next_at = 1 WHERE id = ?", (made.id,))
    assert run(place, "work", "--once").returncode == 0
    (task,) = json.loads(run(place, "tasks", "list", "--json").stdout)["tasks"]
    assert (task["status"], task["result"]) == ("completed", "Built it.")
