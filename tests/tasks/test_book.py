"""What is found again of tasks whose journal was lost, damaged, or is older than their sessions."""

import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from codewhale.journal.model import NewRun, Run
from codewhale.journal.runs import SqliteRuns
from codewhale.journal.sqlite import SqliteJournal
from codewhale.lib.clock import SystemClock
from codewhale.protocol.events import (
    CallStarted,
    Envelope,
    SessionOpened,
    SessionResumed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import Effect
from codewhale.session.store import SessionStore
from codewhale.tasks.book import FOREVER, TaskBook
from codewhale.tasks.conversation import ending, fold_log
from codewhale.tasks.model import TaskSpec, new_task

DONE, OPEN = "task_000000aa", "task_000000bb"


def book(home: Path) -> TaskBook:
    return TaskBook(str(home), SessionStore(str(home), SystemClock()))


def talked(home: Path, workspace: Path, task: str, *, ended: bool) -> None:
    """A session that is the conversation of a task."""
    store = SessionStore(str(home), SystemClock())
    log = store.create(SessionOpened(1, str(workspace), Mode.AGENT, "p", "m", kind="task", name=task))
    log.append([TurnStarted(1), CallStarted("call_1", "exec_shell", '{"command": "make"}', (Effect.EXECUTES,), "r")])
    if ended:
        log.append([TurnFinished(1, "done", "", {"answer": "all is well"})])
    log.close()


@pytest.fixture
def tasks(home: Path, workspace: Path) -> Path:
    """A home with a task that is done, one that was at work, and one that waits."""
    home.mkdir(exist_ok=True)
    one = book(home)
    for task in (DONE, OPEN, "task_000000cc"):
        one.add(TaskSpec(f"Do {task}", str(workspace)), task)
    one.close()
    talked(home, workspace, DONE, ended=True)
    talked(home, workspace, OPEN, ended=False)
    return home


def found(home: Path) -> dict[str, str]:
    one = book(home)
    views = {view.id: view for view in one.board().tasks}
    assert views[OPEN].unfinished == ('exec_shell {"command": "make"}',) and views[DONE].answer == "all is well"
    one.close()
    return {task: view.status for task, view in views.items()}


def test_what_stands_in_sessions_is_found_without_a_journal(tasks: Path) -> None:
    shutil.rmtree(tasks / "journal")
    assert found(tasks) == {DONE: "completed", OPEN: "interrupted"}
    assert found(tasks) == {DONE: "completed", OPEN: "interrupted"}


def test_of_a_copy_and_its_original_the_one_that_ended_counts(tasks: Path, workspace: Path) -> None:
    """A process that had lost its lease wrote last, into the conversation that another had copied and finished."""
    talked(tasks, workspace, DONE, ended=False)
    shutil.rmtree(tasks / "journal")
    assert found(tasks) == {DONE: "completed", OPEN: "interrupted"}


def test_a_row_that_is_older_than_its_session_is_not_begun_again(tasks: Path) -> None:
    os.unlink(tasks / "journal" / "closed.json")  # as after a kill
    assert found(tasks) == {DONE: "completed", OPEN: "interrupted", "task_000000cc": "queued"}


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_journal_is_set_aside_and_said_so(tasks: Path, seed: int) -> None:
    path, dice = tasks / "journal" / "journal.sqlite3", random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(200):
        data[dice.randrange(len(data))] ^= 255
    path.write_bytes(data)
    one = book(tasks)
    board = one.board()
    assert {view.id: view.status for view in board.tasks if view.id in (DONE, OPEN)} == {
        DONE: "completed", OPEN: "interrupted",
    }  # fmt: skip
    assert ("set aside" in board.notice) == any(path.parent.glob("damaged-*"))
    one.close()


def test_damage_met_while_it_is_open_is_survived(tasks: Path) -> None:
    one = book(tasks)
    assert len(one.board().tasks) == 3
    base = sqlite3.connect(tasks / "journal" / "journal.sqlite3")
    base.execute("UPDATE runs SET data = replace(data, 'Do', 'No')")
    base.commit()
    base.close()
    board = one.board()
    assert "set aside" in board.notice and {view.id for view in board.tasks} == {DONE, OPEN}
    one.close()


def test_a_turn_of_the_person_is_not_the_end_of_the_task(tasks: Path, workspace: Path) -> None:
    talk = [SessionOpened(1, str(workspace), Mode.AGENT, "p", "m", kind="task", name=OPEN), TurnStarted(1)]
    talk += [TurnFinished(1, "interrupted"), SessionResumed(Mode.AGENT, Authority.PERSON), TurnStarted(2)]
    talk += [TurnFinished(2, "done", "", {"answer": "half of it is done"})]
    fold = fold_log(Envelope(seq, "s", "2026-01-01T00:00:00Z", event) for seq, event in enumerate(talk))
    assert ending(fold) is None
    again = [SessionResumed(Mode.AGENT, Authority.AUTO), TurnStarted(3), TurnFinished(3, "done", "", {"answer": "all"})]
    for seq, event in enumerate(again, 9):
        fold.take(Envelope(seq, "s", "2026-01-01T00:00:00Z", event))
    assert ending(fold) == ("completed", {"answer": "all"})


def test_what_was_found_again_and_never_settled_is_found_once_more(tasks: Path, workspace: Path) -> None:
    """A process that died in between has left a row that nobody may take."""
    shutil.rmtree(tasks / "journal")
    os.rename(tasks / "sessions", tasks / "aside")
    one = book(tasks)
    row = new_task(OPEN, TaskSpec(f"Do {OPEN}", str(workspace), by="found again"))
    one.journal.runs.add(replace(row, due=FOREVER))
    one.close()
    os.unlink(tasks / "journal" / "closed.json")
    os.rename(tasks / "aside", tasks / "sessions")
    assert found(tasks) == {DONE: "completed", OPEN: "interrupted"}


def test_what_one_process_set_aside_is_found_again_by_the_next(tasks: Path) -> None:
    path = tasks / "journal" / "journal.sqlite3"
    path.write_bytes(b"\0" * path.stat().st_size)
    SqliteJournal(str(tasks)).close()  # it has set the file aside, and ends before it looked for the sessions
    assert found(tasks) == {DONE: "completed", OPEN: "interrupted"}


class Grabbing(SqliteJournal):
    """A journal beside which somebody claims whatever has just been added."""

    def __init__(self, home: str) -> None:
        super().__init__(home)
        self.runs = GrabbedRuns(self._database)


class GrabbedRuns(SqliteRuns):
    def add(self, run: NewRun) -> Run:
        added = super().add(run)
        self.claim(run.kind, "somebody", 600.0)
        return added


def test_what_is_found_again_is_begun_by_nobody_meanwhile(tasks: Path) -> None:
    shutil.rmtree(tasks / "journal")
    one = TaskBook(str(tasks), SessionStore(str(tasks), SystemClock()), Grabbing)
    assert {view.id: (view.status, view.attempt) for view in one.board().tasks} == {
        DONE: ("completed", 0), OPEN: ("interrupted", 0),
    }  # fmt: skip
    one.close()
