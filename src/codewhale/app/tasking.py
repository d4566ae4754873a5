"""Durable tasks of an application: their book, what they may do, and the worker of this process."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from codewhale.protocol.automations import AutomationBoard, AutomationView
from codewhale.protocol.decisions import CallView
from codewhale.protocol.errors import CodeWhaleError, SessionError
from codewhale.protocol.events import ApprovalAnswered, ApprovalAsked, ModeChanged, SessionOpened, SessionResumed
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tasks import TASK_KIND, AddTask, TaskBoard, TaskRecord, TaskView
from codewhale.session.store import SessionStore
from codewhale.tasks.model import TaskSettings, TaskSpec
from codewhale.tasks.rights import TaskRequest, bounded

if TYPE_CHECKING:
    from codewhale.agent.engine import Engine
    from codewhale.automations.book import AutomationBook
    from codewhale.tasks.book import TaskBook
    from codewhale.tasks.calls import TaskCalls
    from codewhale.tasks.runner import Conversations
    from codewhale.tasks.worker import TaskWorker

_IDLE_SECONDS = 0.3


class Tasking:
    """What the application does with tasks; nothing is opened before it is needed."""

    def __init__(
        self, home: str, sessions: SessionStore, engine: "Callable[[], Engine]", settings: TaskSettings
    ) -> None:
        self._home = home
        self._sessions = sessions
        self._engine = engine
        self.settings = settings
        self._worker: TaskWorker | None = None
        self._modes: dict[str, tuple[int, Mode]] = {}  # of sessions that are not open here, by the size of their log

    @cached_property
    def book(self) -> "TaskBook":
        from codewhale.tasks.book import TaskBook

        return TaskBook(self._home, self._sessions)

    @cached_property
    def automations(self) -> "AutomationBook":
        from codewhale.automations.book import AutomationBook

        return AutomationBook(self.book)

    def close(self) -> None:
        if "book" in self.__dict__:
            self.book.close()

    # ------------------------------------------------------------------ what is asked and done

    def plan(self, session: str, request: TaskRequest) -> TaskView:
        """Queue a task as far as a session may go. Raises TaskError; takes a moment."""
        return self.book.add(bounded(self._engine().session(session), request))

    def scheduled(self, session: str, request: TaskRequest) -> TaskSpec:
        """The task of each run of an automation, as far as a session may go now; what becomes of the session later does
        not bind it. Raises TaskError."""
        return replace(bounded(self._engine().session(session), request), creator="")

    def allowed(self, session: str, call: str) -> bool:
        """Whether a person has said yes to exactly this call, by the session's log."""
        asked, yes = set[str](), False
        for envelope in self._engine().session(session).log.read():
            match envelope.event:
                case ApprovalAsked(call_id=about, request_id=request) if about == call:
                    asked.add(request)
                case ApprovalAnswered(request_id=request, allowed=True, by="person") if request in asked:
                    yes = True
        return yes

    def task_of(self, session: str) -> str:
        """The task that an open session works for, itself or through its owners; "" for none."""
        with contextlib.suppress(SessionError):
            state = self._engine().root(session).state
            return state.name if state.kind == TASK_KIND else ""
        return ""

    def artifact(self, task: str, name: str) -> str:
        """The sha256 of a task's artifact, "" for one that it does not have."""
        try:
            kept = self.book.record(task).artifacts()
        except CodeWhaleError:
            return ""
        return next((str(row.get("sha256", "")) for row in kept if row.get("name") == name), "")

    async def add(self, op: AddTask) -> TaskView:
        """What a person asks for: they allow it by asking, where they are the ones who are asked."""
        person = self._engine().session(op.session).rights.authority is Authority.PERSON
        request = TaskRequest(op.prompt, auto_approve=op.auto_approve, on_death=op.on_death, allowed=person)
        return await asyncio.to_thread(self.plan, op.session, request)

    async def schedules(self, most: int) -> AutomationBoard:
        return await asyncio.to_thread(self.automations.board, most)

    async def switch(self, automation: str, paused: bool) -> AutomationView:
        """Let an automation wait, or run again, as a person asks for it."""
        from codewhale.automations.book import Wanted

        return await asyncio.to_thread(self.automations.update, automation, Wanted(paused=paused))

    async def board(self, most: int) -> TaskBoard:
        return await asyncio.to_thread(self.book.board, most)

    async def record(self, task: str) -> TaskRecord:
        from codewhale.app.receipts import with_receipt

        return await with_receipt(await asyncio.to_thread(self.book.record, task))

    async def cancel(self, task: str) -> TaskView:
        return await asyncio.to_thread(self.book.cancel, task)

    async def resume(self, task: str) -> TaskView:
        return await asyncio.to_thread(self.book.resume, task)

    # ------------------------------------------------------------------ who works

    @asynccontextmanager
    async def working(
        self, client: "Conversations", what: str, slots: int, say: Callable[[str], None]
    ) -> AsyncIterator[None]:
        """Take tasks meanwhile."""
        from codewhale.tasks.runner import TaskParts
        from codewhale.tasks.worker import TaskWorker

        def parts() -> TaskParts:
            return TaskParts(self.book.journal, self._sessions, client, self.creator_mode, self.settings.lease_seconds)

        self._worker = TaskWorker(self.book, parts, slots, what, say, lambda: self.automations.fire_due())
        work = asyncio.create_task(self._worker.work(), name="tasks")
        try:
            yield
        finally:
            work.cancel()
            await asyncio.wait([work])
            self._worker = None

    async def idle(self) -> None:
        """Return once nothing is due, queued or at work. Raises CodeWhaleError where the journal cannot be read for as
        long as a lease."""
        loop = asyncio.get_running_loop()
        read = loop.time()
        while True:
            try:
                await asyncio.to_thread(self.automations.fire_due)
                counts = (await self.board(1)).counts
                if not (counts.get("queued") or counts.get("running")):
                    return
                read = loop.time()
            except CodeWhaleError:
                if loop.time() - read >= self.settings.lease_seconds:
                    raise
            await asyncio.sleep(_IDLE_SECONDS)

    def watching(self, call: CallView) -> "TaskCalls | None":
        """What watches a call of a task, or of a sub-agent of one."""
        if self._worker is None:
            return None
        with contextlib.suppress(SessionError):
            return self._worker.calls_of(self._engine().root(call.session).id)
        return None

    def creator_mode(self, session: str) -> Mode:
        """How far a session may go now: one that is open here, or as its log says; one that is gone bounds nothing
        beyond what its tasks were made with, and one whose log cannot be read is taken for one that plans."""
        with contextlib.suppress(SessionError):
            return self._engine().session(session).rights.mode
        log = os.path.join(self._home, "sessions", session, "log.jsonl")
        try:
            size = os.path.getsize(log)
            if self._modes.get(session, (-1, Mode.PLAN))[0] != size:
                self._modes[session] = (size, self._logged_mode(session))
        except FileNotFoundError:
            return Mode.YOLO
        except (OSError, SessionError):
            return Mode.PLAN
        return self._modes[session][1]

    def _logged_mode(self, session: str) -> Mode:
        mode = Mode.YOLO
        for envelope in self._sessions.read(session):
            if isinstance(envelope.event, SessionOpened | SessionResumed | ModeChanged):
                mode = envelope.event.mode
        return mode
