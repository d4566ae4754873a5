"""A worker that is told to end at an awkward moment leaves no task behind."""

import asyncio
import threading
import time
from pathlib import Path

from codewhale.journal.sqlite import SqliteJournal
from codewhale.lib.clock import SystemClock
from codewhale.protocol.modes import Mode
from codewhale.session.store import SessionStore
from codewhale.tasks.book import TaskBook
from codewhale.tasks.model import TaskSpec
from codewhale.tasks.runner import TaskParts
from codewhale.tasks.worker import TaskWorker
from codewhale.testing import harness
from support.patience import HANG


async def test_a_claim_that_is_cancelled_in_the_middle_is_given_back_at_once(home: Path, workspace: Path) -> None:
    armed, inside, go_on = threading.Event(), threading.Event(), threading.Event()

    def clock() -> float:
        if armed.is_set():
            inside.set()
            assert go_on.wait(HANG)
        return time.time()

    async with harness(home, workspace, []) as here:
        sessions = SessionStore(str(home), SystemClock())
        book = TaskBook(str(home), sessions, lambda place: SqliteJournal(place, clock))
        task = book.add(TaskSpec("Do it", str(workspace))).id
        parts = TaskParts(book.journal, sessions, here.client, lambda session: Mode.AGENT, 600.0)
        worker = TaskWorker(book, lambda: parts, 1, "worker", lambda line: None, armed.set)
        work = asyncio.create_task(worker.work())
        assert await asyncio.to_thread(inside.wait, HANG)  # what follows the schedules is the claim
        work.cancel()
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait([work])
    await asyncio.get_running_loop().shutdown_default_executor()  # the claim's thread, too, has ended
    run = book.journal.runs.get(task)
    book.close()
    assert run is not None and (run.state, run.owner, run.attempt) == ("queued", "", 0)


async def test_a_journal_that_is_moved_as_a_task_begins_is_said_to_have_been_lost(home: Path, workspace: Path) -> None:
    said = list[str]()

    def moved(session: str) -> Mode:
        (home / "journal").rename(home / "aside")
        book.close()
        return Mode.AGENT

    async with harness(home, workspace, []) as here:
        sessions = SessionStore(str(home), SystemClock())
        book = TaskBook(str(home), sessions, SqliteJournal)
        task = book.add(TaskSpec("Do it", str(workspace), creator="maker")).id
        parts = TaskParts(book.journal, sessions, here.client, moved, 600.0)
        work = asyncio.create_task(TaskWorker(book, lambda: parts, 1, "worker", said.append).work())
        async with asyncio.timeout(HANG):
            while len(said) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        work.cancel()
        await asyncio.wait([work])
    await asyncio.get_running_loop().shutdown_default_executor()
    book.close()
    lost = "is not this process's any more: its lease ended while nothing was heard of it"
    assert said == [f"{task} begins", f"{task} {lost}"]
