"""Durable work where somebody or something is against it: folders that are swapped, disks that are full, old clocks."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.patience import HANG
from support.program import codewhale_program, environment
from support.running import commands
from support.taskserver import LEASE, TaskServer, add_task, call, serving, shown_task

EVIL = "\x1b]0;owned\x07\x1b[2J\u202egnp\x9b31m"
TURNS = {
    "Write": [call("write_file", path="out.txt", content="once\n"), {"text": f"Wrote it {EVIL}"}],
    "Gate": [
        *[call("task_gate_run", gate="custom", command="touch begun; trap '' TERM; sleep 6047")] * 2,
        {"text": "Waited."},
    ],
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


def run(place: Path, *arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return codewhale_program(place, *arguments, cwd=cwd or place)


def state(place: Path, task: str) -> Any:
    return shown_task(place, task)["task"]


def sql(place: Path, statement: str, *values: object) -> None:
    with contextlib.closing(sqlite3.connect(place / "state/journal/journal.sqlite3", timeout=HANG)) as base, base:
        base.execute(statement, values)


def worked(place: Path) -> str:
    done = run(place, "work", "--once")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


@pytest.mark.parametrize("how", ["deleted", "renamed", "linked", "file"])
def test_a_folder_that_is_another_by_then_is_not_worked_in(place: Path, how: str) -> None:
    task = add_task(place, "--auto Write it")
    work, other = place / "work", place / "private"
    other.mkdir()
    work.rename(place / "moved")
    if how == "linked":
        work.symlink_to(other)
    elif how == "file":
        work.write_text("x")
    elif how == "deleted":
        shutil.rmtree(place / "moved")
    worked(place)
    found = state(place, task)
    assert found["status"] == "failed" and str(work) in str(found["error"]), found
    assert list(other.iterdir()) == [] and not (place / "moved/out.txt").exists()


def test_a_provider_that_is_gone_fails_one_task_and_no_worker(place: Path, server: TaskServer) -> None:
    task = add_task(place, "--auto Write it")
    config = place / "state/config.toml"
    kept = config.read_text()
    config.write_text(LEASE)
    worked(place)
    found = state(place, task)
    assert found["status"] == "failed" and found["error"], found
    config.write_text(kept)
    assert run(place, "tasks", "resume", task).returncode == 0
    worked(place)
    assert state(place, task)["status"] == "completed"


def test_nothing_that_a_task_is_called_or_says_reaches_the_terminal(place: Path) -> None:
    task = add_task(place, f"--auto Write {EVIL} it")
    worked(place)
    lines = (
        ("tasks", "list"), ("tasks", "show", task), ("tasks", "list", "--json"), ("exec", f"/task show {task}"),
        ("exec", "/task"), ("tasks", "show", f"x{EVIL}"), ("tasks", "artifact", task, EVIL),
    )  # fmt: skip
    for line in lines:
        done = run(place, *line, cwd=place / "work")
        said = done.stdout + done.stderr
        assert not set(said) & set("\x1b\x07\x9b\u202e"), (line, said)
        assert "1b" in said, (line, said)


def test_the_end_of_a_pipe_ends_a_list_quietly(place: Path) -> None:
    add_task(place, "Write it")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "codewhale", "tasks", "list"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment(place), timeout=HANG)
    os.close(writer)
    assert b"Traceback" not in done.stderr and done.returncode in (0, 141, -13), done


@contextlib.contextmanager
def working(place: Path) -> Iterator["subprocess.Popen[str]"]:
    """Meanwhile a process works at tasks; it is told to end, and must do so in order."""
    command = [sys.executable, "-m", "codewhale", "work"]
    worker = subprocess.Popen(command, cwd=place, env=environment(place), stderr=subprocess.PIPE, text=True)
    try:
        yield worker
        worker.send_signal(signal.SIGTERM)
        said = worker.communicate(timeout=HANG)[1]
        assert worker.returncode == 0 and "Traceback" not in said, said
    finally:
        worker.kill()
        worker.communicate()


def until(worker: "subprocess.Popen[str]", holds: Callable[[], object]) -> None:
    ends = time.monotonic() + HANG
    while not holds():
        assert time.monotonic() < ends and worker.poll() is None
        time.sleep(0.05)


def test_a_worker_that_is_told_to_end_ends_its_gate_and_leaves_the_task_to_go_on(place: Path) -> None:
    task = add_task(place, "--auto Gate it")
    with working(place) as worker:
        until(worker, (place / "work/begun").exists)
    assert commands("sleep", "6047") == []
    found = state(place, task)
    assert found["status"] == "interrupted" and not found.get("unfinished"), found
    assert run(place, "tasks", "resume", task).returncode == 0


def test_a_worker_whose_journal_is_deleted_goes_on_with_the_new_one(place: Path) -> None:
    first = add_task(place, "--auto Write it")
    with working(place) as worker:
        until(worker, (place / "work/out.txt").exists)
        until(worker, lambda: state(place, first)["status"] == "completed")
        shutil.rmtree(place / "state/journal")
        task = add_task(place, "--auto Another")
        until(worker, lambda: state(place, task)["status"] == "completed")
    assert state(place, first)["status"] == "completed"  # found again by its session


def test_half_a_character_is_no_end_of_a_task(place: Path) -> None:
    task = add_task(place, "--auto Write \udcff it")
    worked(place)
    assert state(place, task)["status"] == "completed"


def test_what_is_mistyped_is_no_task_and_no_default(place: Path) -> None:
    done = run(place, "exec", "--auto", "/task add --atuo Write it", cwd=place / "work")
    assert done.returncode == 2 and "no --atuo" in done.stderr and "--auto" in done.stderr
    for workers in ("0", "-1", "9", "x"):
        done = run(place, "work", "--once", "--workers", workers)
        assert done.returncode == 2 and workers in done.stderr
    assert json.loads(run(place, "tasks", "list", "--json").stdout)["tasks"] == []


def test_a_lease_of_a_clock_that_was_set_back_holds_nobody_up(place: Path) -> None:
    task = add_task(place, "--auto --on-death-resume Write it")
    late = time.time() + 86_400
    sql(place, "UPDATE runs SET state = 'running', owner = 'gone:1:2', fence = 1, attempt = 1, expires = ?", late)
    sql(place, "INSERT INTO workers VALUES ('gone:1:2', 0, ?, '{}')", late)
    assert "codewhale work" in json.loads(run(place, "tasks", "list", "--json").stdout)["notice"]
    worked(place)
    found = state(place, task)
    assert (found["status"], found["attempt"]) == ("completed", 2), found


def test_a_task_whose_processes_all_die_waits_for_a_person(place: Path) -> None:
    task = add_task(place, "--auto --on-death-resume Write it")
    for dead, wanted in ((9, "queued"), (10, "interrupted"), (11, "queued")):
        sql(place, "UPDATE runs SET state = 'running', owner = 'gone:1:2', attempt = ?, expires = 0", dead)
        found = state(place, task)
        assert found["status"] == wanted, found
    worked(place)
    assert state(place, task)["status"] == "completed"


def test_a_schedule_that_cannot_be_read_keeps_no_task_and_no_other_schedule_back(place: Path) -> None:
    task = add_task(place, "--auto Write it")
    for name, data in (("auto_00000001", "{bad"), ("auto_00000002", '{"name": 7}')):
        sql(place, "INSERT INTO schedules VALUES (?, 'automation', ?, 1.0, 1, 1.0)", name, data)
    worked(place)
    assert state(place, task)["status"] == "completed"
    assert not list((place / "state/journal").glob("damaged-*"))
