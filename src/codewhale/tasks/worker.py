"""Who works: takes tasks as long as the process wants it, so many at once, and says that it is there."""

import asyncio
import contextlib
from collections.abc import Callable

from codewhale.journal.model import Data, JournalError, Lease, Run
from codewhale.lib import failpoints
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.tasks import TASK_KIND
from codewhale.tasks.book import TaskBook, owner_name
from codewhale.tasks.calls import TaskCalls
from codewhale.tasks.model import TaskError
from codewhale.tasks.runner import TaskParts, TaskRunner

LOOK_SECONDS = 0.4  # between two looks for work, and for tasks whose process died
LEAVE_SECONDS = 10.0
_ERROR = 400


class TaskWorker:
    """Takes tasks of a home, `slots` at once; `what` says to people which kind of process it is. `parts()` is what they
    are run with, asked for when the first is taken. `say` is told one line of each task that begins or ends. `due()`
    queues what begins by the clock."""

    def __init__(
        self,
        book: TaskBook,
        parts: Callable[[], TaskParts],
        slots: int,
        what: str,
        say: Callable[[str], None],
        due: Callable[[], object] = lambda: None,
    ) -> None:
        self.owner = owner_name()
        self._book = book
        self._parts = parts
        self._slots = slots
        self._what = what
        self._say = say
        self._due = due
        self._running: dict[str, TaskRunner] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: dict[str, TaskCalls] = {}
        self._shown = 0.0
        self._trouble = ""

    def calls_of(self, session: str) -> TaskCalls | None:
        """What watches the calls of a task's conversation; None for another session."""
        return self._calls.get(session)

    async def work(self) -> None:
        """Take tasks until cancelled; then those at work are stopped in order."""
        self._book.works_here = True
        try:
            while True:
                await self._look()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._book.works_here = False
            await self._leave()

    async def _look(self) -> None:
        if not self._book.exists:
            return
        trouble = ""
        for step in (self._show, self._hear, self._settle, self._queue, self._take):
            try:
                await step()
            except CodeWhaleError as error:
                trouble = trouble or str(error)
            except Exception as error:  # the next look may do better; nothing may end the looking unsaid
                trouble = trouble or f"{type(error).__name__}: {error}"
        if trouble and trouble != self._trouble:
            self._say(f"tasks: {trouble}")
        self._trouble = trouble

    async def _settle(self) -> None:
        await asyncio.to_thread(self._book.settle)

    async def _queue(self) -> None:
        await asyncio.to_thread(self._due)

    async def _take(self) -> None:
        while len(self._running) < self._slots:
            claim = asyncio.ensure_future(asyncio.to_thread(self._claim))
            try:
                taken = await asyncio.shield(claim)
            except asyncio.CancelledError:  # the thread claims even so: nobody else waits for that lease to end
                with contextlib.suppress(CodeWhaleError):
                    if (unbegun := await claim) is not None:
                        await asyncio.to_thread(self._book.journal.runs.end, unbegun[1], "queued", {})
                raise
            if taken is None:
                break
            self._begin(*taken)

    async def _hear(self) -> None:
        """End what is to end: at once, not with the next sign of life."""
        for name, runner in list(self._running.items()):
            run = await asyncio.to_thread(self._book.journal.runs.get, name)
            if run is not None and run.stop:
                await runner.cancel()

    async def _show(self) -> None:
        """Say that this process is there, three times in the time for which that holds."""
        now, parts = asyncio.get_running_loop().time(), await asyncio.to_thread(self._parts)
        holds = parts.lease_seconds
        if now - self._shown >= holds / 3 or not self._shown:
            about: Data = {"what": self._what, "slots": self._slots}
            await asyncio.to_thread(parts.journal.workers.here, self.owner, holds, about)
            self._shown = now

    def _claim(self) -> tuple[Run, Lease] | None:
        return self._book.journal.runs.claim(TASK_KIND, self.owner, self._parts().lease_seconds)

    def _begin(self, run: Run, lease: Lease) -> None:
        failpoints.hit("task.taken")
        runner = TaskRunner(self._parts(), run, lease)
        self._running[run.id] = runner
        task = asyncio.create_task(self._run(run.id, runner), name=f"task {run.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, name: str, runner: TaskRunner) -> None:
        self._say(f"{name} begins")
        calls = TaskCalls(self._parts().journal, lambda: runner.lease, runner.may)

        def opened(session: str) -> None:
            self._calls[session] = calls

        try:
            ended = await runner.work(opened)
            if ended is None:
                self._say(f"{name} is not this process's any more: its lease ended while nothing was heard of it")
            else:
                error = one_line(str(ended.result.get("error", "")), _ERROR)
                self._say(f"{name} {ended.state}{': ' * bool(error)}{error}")
        except CodeWhaleError as error:
            self._say(f"{name}: {error}")
        finally:
            if self._running.get(name) is runner:  # else it was claimed here again since its lease ended
                del self._running[name]
            if self._calls.get(runner.session) is calls:
                del self._calls[runner.session]

    async def _leave(self) -> None:
        for runner in list(self._running.values()):
            await runner.leave()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=LEAVE_SECONDS)
        for task in set(self._tasks):
            task.cancel()
        if self._shown:
            with contextlib.suppress(JournalError, TaskError):
                await asyncio.to_thread(lambda: self._book.journal.workers.gone(self.owner))
