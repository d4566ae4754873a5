"""The book of automations over a real journal whose clock a test moves."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from codewhale.automations.book import Wanted
from codewhale.automations.model import AUTOMATION_KIND
from codewhale.automations.recurrence import AutomationError
from codewhale.journal.model import Schedule
from codewhale.protocol.automations import AutomationRun
from codewhale.tasks.model import TaskError, TaskSpec, spec_of
from support.schedules import START, Almanac, almanac, sound

HOURLY = "FREQ=HOURLY;INTERVAL=2"
DAILY = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=3"


@pytest.fixture
def book(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = almanac(tmp_path)
    yield made
    made.close()


def runs(book: Almanac, automation: str) -> list[AutomationRun]:
    return list(book.automations.record(automation).recent_runs)


def test_time_that_passed_with_nobody_there_gives_one_run_that_says_so(book: Almanac) -> None:
    made = book.automations.create("  nightly   check ", HOURLY, "UTC", book.task())
    assert (made.name, made.status, made.missed) == ("nightly check", "active", 0)
    assert book.automations.fire_due() == ()
    book.clock.at += 2 * 3600
    (task,) = book.automations.fire_due()
    assert book.automations.fire_due() == ()
    spec = spec_of(book.journal.runs.get(task))  # type: ignore[arg-type]
    assert (spec.by, spec.auto_approve, spec.prompt) == (f"automation {made.id}", True, "check")
    book.over()
    book.clock.at += 5 * 2 * 3600 + 60
    (later,) = book.automations.fire_due()
    assert [(run.task_id, run.missed, run.by) for run in runs(book, made.id)] == [
        (later, 4, "clock"),
        (task, 0, "clock"),
    ]
    assert book.automations.board().automations[0].missed == 4


def test_a_run_never_takes_the_id_of_another_task(book: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        book.automations.create(f"a{number}", HOURLY, "UTC", book.task(f"check {number}"))
    book.clock.at += 2 * 3600
    drawn = iter([b"same", b"same", b"same", b"else"])
    monkeypatch.setattr("codewhale.lib.ids.os.urandom", lambda size: next(drawn))
    tasks = book.automations.fire_due()
    prompts = [spec_of(run).prompt for run in map(book.journal.runs.get, tasks) if run is not None]
    assert len(set(tasks)) == 2 and sorted(prompts) == ["check 0", "check 1"]


def test_while_a_run_is_at_work_its_next_moments_are_missed_and_counted(book: Almanac) -> None:
    made = book.automations.create("x", HOURLY, "UTC", book.task())
    book.clock.at += 2 * 3600
    assert len(book.automations.fire_due()) == 1
    for _ in range(3):
        book.clock.at += 2 * 3600
        assert book.automations.fire_due() == ()
    assert book.automations.board().automations[0].waiting == 3
    book.over()
    book.clock.at += 2 * 3600
    assert len(book.automations.fire_due()) == 1 and runs(book, made.id)[0].missed == 3


def test_concurrent_fires_give_one_task(tmp_path: Path) -> None:
    books = [almanac(tmp_path) for _ in range(6)]
    for number in range(5):
        books[0].automations.create(f"a{number}", HOURLY, "UTC", books[0].task())
    for made in books:
        made.clock.at += 2 * 3600
    with ThreadPoolExecutor(6) as pool:
        fired = [task for tasks in pool.map(lambda made: made.automations.fire_due(), books) for task in tasks]
    assert len(fired) == len(set(fired)) == 5 and books[0].journal.runs.counts("task") == {"queued": 5}
    for made in books:
        made.close()


def test_pause_resume_update_run_and_delete(book: Almanac) -> None:
    one = book.automations.create("x", HOURLY, "UTC", book.task()).id
    assert book.automations.update(one, Wanted(paused=True)).next_run_at == ""
    book.clock.at += 40 * 3600
    assert book.automations.fire_due() == ()
    resumed = book.automations.update(one[:9], Wanted(paused=False))
    assert (resumed.status, resumed.missed) == ("active", 0) and resumed.next_run_at > resumed.updated_at
    record = book.automations.run(one, "person")
    assert [(run.by, run.status) for run in record.recent_runs] == [("person", "queued")]
    changed = book.automations.update(one, Wanted(rrule=DAILY, timezone="Asia/Tokyo", name="y"))
    assert (changed.name, changed.timezone, changed.rrule) == ("y", "Asia/Tokyo", f"{DAILY};BYMINUTE=0")
    assert changed.next_run_at.endswith("T18:00:00.000Z")
    book.automations.delete(one)
    assert book.automations.board().automations == () and book.journal.runs.counts("task") == {"queued": 1}


def test_names_that_are_none(book: Almanac) -> None:
    with pytest.raises(AutomationError, match="There are no automations yet"):
        book.automations.record("auto_1")
    two = [book.automations.create(name, HOURLY, "UTC", book.task()).id for name in "xy"]
    for wrong in ("../x", "auto_1/2", "", "auto_", "AUTO_1", "x" * 500):
        with pytest.raises(AutomationError) as caught:
            book.automations.record(wrong)
        assert caught.value.field == "automation_id" and caught.value.better in two
    for row in (Schedule("auto_0123", AUTOMATION_KIND, {}), Schedule("auto_0124", AUTOMATION_KIND, {})):
        book.journal.schedules.put(row)
    with pytest.raises(AutomationError, match="auto_0123, auto_0124"):
        book.automations.record("012")


def test_a_name_a_task_and_a_folder_that_cannot_be(book: Almanac, tmp_path: Path) -> None:
    for name in ("", " \n ", "x" * 81, "a\x1b[31m"):
        with pytest.raises(AutomationError) as caught:
            book.automations.create(name, HOURLY, "UTC", book.task())
        assert caught.value.field == "name"
    for task in (book.task(prompt=" "), book.task(workspace=str(tmp_path / "gone"))):
        with pytest.raises(TaskError):
            book.automations.create("x", HOURLY, "UTC", task)
    assert book.automations.board().automations == ()


def test_a_row_that_nobody_wrote_stops_no_other(book: Almanac) -> None:
    good = book.automations.create("x", HOURLY, "UTC", book.task()).id
    book.journal.schedules.put(Schedule("auto_00000001", AUTOMATION_KIND, {"name": 3}, START))
    book.clock.at += 2 * 3600
    assert len(book.automations.fire_due()) == 1
    board = book.automations.board()
    assert [view.id for view in board.automations] == [good] and "auto_00000001 is not what was written" in board.notice


def test_a_clock_that_was_set_back_is_said(book: Almanac) -> None:
    book.automations.create("x", HOURLY, "UTC", book.task())
    book.clock.at += 2 * 3600
    book.automations.fire_due()
    book.over()
    book.clock.at -= 86_400
    assert book.automations.fire_due() == () and "set back" in book.automations.board().automations[0].note


def test_schedules_across_a_year_and_two_jumps_run_each_moment_once_or_say_it(tmp_path: Path) -> None:
    """Six here; `make schedules` does it with 100."""
    assert sound(tmp_path, count=6, ticks=60, seed=7) == []


def test_what_is_made_is_what_is_kept(book: Almanac) -> None:
    task = replace(book.task(), allow_shell=False)
    made = book.automations.create("x", DAILY, "Europe/Berlin", task, paused=True)
    assert (made.allow_shell, made.auto_approve, made.mode, made.next_run_at) == (False, True, "agent", "")
    assert book.automations.task(made.id) == task and isinstance(task, TaskSpec)
    assert len(book.automations.preview("x", DAILY, "Europe/Berlin")) == 3
