"""`codewhale automations` as a program: what a model has scheduled is seen and ended without a screen."""

import contextlib
import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

from codewhale.automations.book import AutomationBook
from codewhale.lib.clock import SystemClock
from codewhale.session.store import SessionStore
from codewhale.tasks.book import TaskBook
from codewhale.tasks.model import TaskSpec
from support.program import codewhale_program

RULE = "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path


def run(place: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return codewhale_program(place, "automations", *arguments, cwd=place)


def scheduled(place: Path, name: str = "links") -> str:
    """The id of an automation that was made in this home."""
    book = TaskBook(str(place / "state"), SessionStore(str(place / "state"), SystemClock()))
    try:
        task = TaskSpec("Check the links.", str(place / "work"), allow_shell=False)
        return AutomationBook(book).create(name, RULE, "Europe/Berlin", task).id
    finally:
        book.close()


def test_an_automation_is_listed_shown_run_paused_and_deleted(place: Path) -> None:
    assert "There are no automations" in run(place, "list").stdout
    name = scheduled(place)
    listed = run(place, "list").stdout
    assert f"{name}  active: links; {RULE};BYMINUTE=0 in Europe/Berlin, next Mon " in listed
    assert " 09:00 CE" in listed and "Nobody works at tasks now" in listed
    shown = run(place, "show", name[:9]).stdout
    assert "prompt: Check the links." in shown and "may: agent mode, no programs" in shown
    ran = json.loads(run(place, "run", name, "--json").stdout)
    assert [(one["status"], one["by"]) for one in ran["recent_runs"]] == [("queued", "person")]
    assert f"{ran['recent_runs'][0]['task_id']} queued, by person" in run(place, "show", name).stdout
    assert f"{name}  paused: links" in run(place, "pause", name).stdout
    assert json.loads(run(place, "list", "--json").stdout)["automations"][0].get("next_run_at", "") == ""
    assert ", next Mon " in run(place, "resume", name).stdout
    assert run(place, "delete", name).stdout == f"{name} is deleted.\n"
    again = run(place, "delete", name)
    assert again.returncode == 2 and f"there is no automation '{name}'" in again.stderr


@pytest.mark.parametrize("wrong", ["", "../x", "auto_", "AUTO_1", "nightly"])
def test_what_is_no_id_is_refused_with_one_that_is(place: Path, wrong: str) -> None:
    name = scheduled(place)
    for action in ("show", "pause", "resume", "run", "delete"):
        refused = run(place, action, wrong)
        assert refused.returncode == 2 and name in refused.stderr and "`automation_id`" in refused.stderr
    assert len(json.loads(run(place, "list", "--json").stdout)["automations"]) == 1


def test_one_that_cannot_be_read_is_said_so_and_can_be_deleted(place: Path) -> None:
    name, other = scheduled(place), scheduled(place, "other")
    with contextlib.closing(sqlite3.connect(place / "state/journal/journal.sqlite3")) as base, base:
        base.execute("UPDATE schedules SET data = '{' WHERE id = ?", (name,))
    listed = run(place, "list").stdout
    assert other in listed and f"{name} is not what was written" in listed
    assert run(place, "show", name).returncode != 0
    assert run(place, "delete", name).stdout == f"{name} is deleted.\n"
    assert name not in run(place, "list").stdout


def test_a_paused_one_whose_folder_is_gone_is_not_resumed(place: Path) -> None:
    name = scheduled(place)
    run(place, "pause", name)
    (place / "work").rename(place / "gone")
    refused = run(place, "resume", name)
    assert refused.returncode == 2 and "`workspace`" in refused.stderr
    assert f"{name}  paused" in run(place, "list").stdout
