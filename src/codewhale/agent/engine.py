"""The engine: messages in, sessions and their turns, events out. Frontends reach it through the client."""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from msgspec import Struct

from codewhale.agent.direct import DirectCalls
from codewhale.agent.effort import turn_effort
from codewhale.agent.guidance import SkillGuide
from codewhale.agent.loop import AgentLoop, Ending
from codewhale.agent.message_queue import MessageQueue, QueuedMessage
from codewhale.agent.session_factory import SessionFactory
from codewhale.agent.tool_calls import ToolCallRunner
from codewhale.agent.turn import Turn
from codewhale.catalog.registry import Catalog
from codewhale.protocol.errors import SessionError, StorageFullError
from codewhale.protocol.events import MessageAdded, TurnFinished, TurnStarted
from codewhale.protocol.messages import Image
from codewhale.protocol.ops import OpenSession, SendMessage
from codewhale.session.prompt import context_text
from codewhale.session.session import BROKEN, STOPPED, Session
from codewhale.session.standing import last_asked

_STOP_SECONDS = 5.0
_T = TypeVar("_T")
DEEPEST = 8  # sessions that own one another


class LiveSession(Struct):
    """An open session, what waits in it, and its turn: the running one, or the last."""

    session: Session
    queue: MessageQueue
    turn: Turn


class Engine:
    """All open sessions of this process."""

    def __init__(
        self,
        factory: SessionFactory,
        catalog: Catalog,
        runner: ToolCallRunner,
        guide: SkillGuide,
        may_ask: Callable[[str], None] = lambda provider: None,
    ) -> None:
        """`may_ask(provider)` raises ConfigError when a provider cannot be asked as configured."""
        self._factory = factory
        self._catalog = catalog
        self._runner = runner
        self._guide = guide
        self._may_ask = may_ask
        self._live: dict[str, LiveSession] = {}
        self._closing: dict[str, asyncio.Future[None]] = {}
        self.direct = DirectCalls(self.session, catalog, runner)
        self._closers: list[Callable[[str], Awaitable[None]]] = [self.direct.end]
        self._at_ends: list[Callable[[Session], None]] = []
        self._after_turns: list[Callable[[Session], None]] = []

    # ------------------------------------------------------------------ what is open

    def session(self, session_id: str) -> Session:
        return self._find(session_id).session

    def turn(self, session_id: str) -> Turn:
        return self._find(session_id).turn

    def queue(self, session_id: str) -> MessageQueue:
        return self._find(session_id).queue

    def idle(self, session_id: str) -> Session:
        live = self._find(session_id)
        if not live.turn.idle:
            raise SessionError("a turn is running; stop it or wait until it ends")
        return live.session

    def root(self, session_id: str) -> Session:
        """The session of a person that an open one works for: itself where it has no owner that is open."""
        return self.session(self._owners(self.session(session_id))[-1])

    def owned(self, session_id: str) -> list[Session]:
        """The open sessions that work for another one, also through others, in the order of their opening."""
        sessions = [live.session for live in self._live.values()]
        return [one for one in sessions if session_id in self._owners(one)[1:]]

    def _owners(self, session: Session) -> list[str]:
        """The session, its owner, and so on, as far as they are open."""
        chain = [session.id]
        while (owner := self._live.get(session.state.owner)) is not None and len(chain) <= DEEPEST:
            session = owner.session
            chain.append(session.id)
        return chain

    def at(self, workspace: str = "") -> list[Session]:
        """The open sessions of a workspace; of all with ""."""
        sessions = [live.session for live in self._live.values()]
        return [one for one in sessions if workspace in ("", os.path.realpath(one.state.workspace))]

    def _find(self, session_id: str) -> LiveSession:
        if session_id not in self._live:
            raise SessionError(f"session {session_id} is not open here")
        return self._live[session_id]

    def on_close(self, closer: Callable[[str], Awaitable[None]]) -> None:
        """Call `closer(session id)` whenever a session closes, before its log does."""
        self._closers.append(closer)

    def off_close(self, closer: Callable[[str], Awaitable[None]]) -> None:
        self._closers.remove(closer)

    def at_end(self, hear: Callable[[Session], None]) -> None:
        """Call `hear(session)` as the end of a turn is recorded: before anybody sees it, and before the next begins."""
        self._at_ends.append(hear)

    def after_turn(self, hear: Callable[[Session], None]) -> None:
        """Call `hear(session)` whenever a turn has ended and none follows at once."""
        self._after_turns.append(hear)

    # ------------------------------------------------------------------ what a person does

    def open(self, op: OpenSession) -> Session:
        """Open a session and keep it. One that is owned ends with its owner, and goes no further than that may."""
        owner = self._find(op.owner).session if op.owner else None
        if owner is not None and len(self._owners(owner)) >= DEEPEST:
            raise SessionError(f"sessions may own one another {DEEPEST} deep; do this work in session {owner.id}")
        session = self._factory.open(op, owner)
        self._live[session.id] = LiveSession(session, MessageQueue(session), Turn(session))
        return session

    async def open_child(self, op: OpenSession) -> Session:
        """Open a session for the one that owns it, with its log read beside the event loop."""
        owner = self._find(op.owner).session
        session = await self._factory.open_aside(op, owner)
        if op.owner not in self._live or op.owner in self._closing:
            await session.aclose()
            raise SessionError(f"session {op.owner} is being closed")
        self._live[session.id] = LiveSession(session, MessageQueue(session), Turn(session))
        return session

    def report(self, session_id: str, message: MessageAdded, *, wake: bool = True) -> None:
        """Tell a session what a child of it came to: at its next step; else it begins a turn, or waits for the next
        one. One whose turn the person interrupted waits for the person."""
        live = self._find(session_id)
        live.queue.report(message)
        # A turn that is winding up takes it by itself, when its end is recorded.
        if wake and session_id not in self._closing and not (live.turn.busy or live.turn.stop_reason):
            self._next(live)

    async def send(self, op: SendMessage, images: tuple[Image, ...] = ()) -> None:
        """Take a person's message with its images; returns once it is safe on disk (or queued in memory behind a
        running turn). Raises ConfigError when the session's provider cannot be asked."""
        live = self._find(op.session)
        message = QueuedMessage(op, images)
        if live.turn.busy:
            live.queue.enqueue(message, live.turn)
            return
        self._may_ask(live.session.state.provider)
        self._begin(live, message)
        await live.session.barrier()

    async def retry(self, session_id: str) -> str:
        """Ask the message of the last turn again; it is said again only where something has answered it. Its text.
        Raises SessionError while a turn runs, and where there is no message."""
        session = self.idle(session_id)
        message, ends = last_asked(session.log, session.state)
        if message is None:
            raise SessionError("there is no message to retry")
        self._may_ask(session.state.provider)
        _reopen(session)
        self._start(self._find(session_id), message.text, *([] if ends else [MessageAdded(message)]))
        await session.barrier()
        return message.text

    async def aside(self, session_id: str, name: str, work: Callable[[Turn], Coroutine[object, object, _T]]) -> _T:
        """Do `work` in place of a turn: it can be interrupted, and what is sent meanwhile waits. Raises SessionError
        while a turn runs, and where it was interrupted."""
        session = self.idle(session_id)
        self._may_ask(session.state.provider)
        live = self._find(session_id)
        _reopen(session)
        turn = Turn(session, live.turn.asked, live.turn.effort)
        live.turn = turn
        task = turn.start(lambda: work(turn), name)
        await asyncio.wait([task])
        turn.wind_up()
        turn.end()
        if live.turn is turn:  # else one has begun since
            self._next(live)
        if task.cancelled():
            raise SessionError(f"the {name} was interrupted; nothing has changed")
        return task.result()

    def interrupt(self, session_id: str, reason: str = "interrupted") -> None:
        self._find(session_id).turn.stop(reason)

    async def close(self, session_id: str) -> None:
        """Interrupt, end what belongs to the session, sync and release it. Whoever closes it meanwhile, too, waits."""
        live = self._find(session_id)
        if session_id in self._closing:
            await asyncio.wait([self._closing[session_id]])
            return
        self._closing[session_id] = asyncio.get_running_loop().create_future()
        try:
            await self._close(live)
        finally:
            self._closing.pop(session_id).set_result(None)

    async def _close(self, live: LiveSession) -> None:
        session_id = live.session.id
        for owned in reversed(self.owned(session_id)):
            if owned.id in self._live:  # else its task ended meanwhile
                await self.close(owned.id)
        live.queue.clear()
        live.turn.stop("interrupted")
        await live.turn.wait(_STOP_SECONDS)
        for closer in list(self._closers):
            await closer(session_id)
        try:
            await live.session.aclose()
        finally:
            if self._live.get(session_id) is live:  # else it was opened again since its log was let go
                del self._live[session_id]
            self._factory.closed(live.session)

    async def barrier(self, session_id: str) -> None:
        """Return once what a session has emitted is on disk; one that has closed is."""
        if session_id in self._live:
            await self._live[session_id].session.barrier()

    async def aclose(self) -> None:
        for session_id in list(self._live):
            if session_id in self._live:  # else it ended with its owner
                await self.close(session_id)

    # ------------------------------------------------------------------ turns

    def _begin(self, live: LiveSession, message: QueuedMessage) -> None:
        _reopen(live.session)
        self._start(live, message.op.text, message.joins(live.session))

    def _start(self, live: LiveSession, text: str, *message: MessageAdded) -> None:
        """Begin a turn with a message, or with the one that the conversation ends with."""
        session, state = live.session, live.session.state
        self._factory.forget_cleared(session)
        session.emit(TurnStarted(state.turns + 1), *message)
        turn = Turn(session, text, turn_effort(state.effort, text))
        session.emit(*self._factory.beginning(session))
        live.turn = turn
        turn.start(lambda: self._run(live, turn), "turn")

    async def _run(self, live: LiveSession, turn: Turn) -> None:
        session, budget = turn.session, turn.session.budget
        budget.begin()
        window = self._factory.window(session)
        loop = AgentLoop(turn, live.queue, self._catalog, self._runner, window, self._guide)
        left = budget.seconds_left
        timer = None if left is None else asyncio.get_running_loop().call_later(left, turn.stop, "budget")
        try:
            await self._factory.begin(session)
            ending = await loop.run()
        except asyncio.CancelledError:
            if not turn.stop_reason:
                raise
            _swallow_cancellation()
            ending = _stopped(turn.stop_reason)
            with contextlib.suppress(SessionError):
                loop.salvage()
        except SessionError as error:
            ending = Ending("infra", str(error))
        except Exception as error:
            ending = Ending("failed", f"An internal error in CodeWhale ({type(error).__name__}: {error}).")
        finally:
            turn.wind_up()
            if timer is not None:
                timer.cancel()
        missing = self._factory.unverified(session)
        if missing and session.state.work.changes != session.state.work.told and not session.state.owner:
            session.notice("warning", _missing(missing), "unverified")
        result = loop.report.result(ending.status, "" if ending.status == "done" else ending.reason, missing)
        await self._finish(live, turn, TurnFinished(session.state.turns, ending.status, ending.reason, result))

    async def _finish(self, live: LiveSession, turn: Turn, end: TurnFinished) -> None:
        session = turn.session
        try:
            _record_end(turn, end)
            for hear in self._at_ends:
                hear(session)
            await session.barrier()
            turn.end()
            if live.turn is turn:  # else a person has begun another since its end was seen
                self._next(live)
        except SessionError as error:
            # Nothing more can be recorded: listeners are told by the end of their stream.
            turn.waiting_for = ""
            session.fanout.close(error)

    def _next(self, live: LiveSession) -> None:
        """Begin the next queued message's turn."""
        message = live.queue.next(live.turn)
        if message is not None:
            self._begin(live, message)
            live.queue.tell()
            return
        wanted = not live.turn.stop_reason and live.session.id not in self._closing
        if wanted and (report := live.queue.next_report()) is not None:
            self._start(live, "", report)
            return
        for hear in self._after_turns:
            hear(live.session)


def _reopen(session: Session) -> None:
    """A person asks again: the provider may answer now what it refused before."""
    if session.lane is not None and not session.state.owner:
        session.lane.reopen()


def _record_end(turn: Turn, end: TurnFinished) -> None:
    broken = STOPPED if turn.stop_reason else BROKEN
    try:
        turn.session.close_calls(broken)
        turn.session.emit(end)
    except StorageFullError:
        turn.session.close_calls(broken)  # the refusal made room
        turn.session.emit(end)


def _missing(unverified: list[dict[str, str]]) -> str:
    """What a person is told of a turn that changed files, and after which it was not verified as it should be."""
    rows = (f"{row['command']} ({': '.join(filter(None, (row['clause'], row['text'])))})" for row in unverified)
    return f"Not verified since the last change, as the project's constitution wants: {'; '.join(rows)}"


def _swallow_cancellation() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _stopped(reason: str) -> Ending:
    if reason == "budget":
        return Ending("budget", "Stopped: the time limit is reached. The session can be resumed.")
    if reason == "silence":
        return Ending("failed", "Stopped: nothing came from the model for too long. The session can be resumed.")
    if reason == "stopped":
        return Ending("interrupted", "Stopped before its end.")
    return Ending("interrupted", "You stopped it. The session can be resumed.")


def workspace_facts(branch: str | None) -> str:
    """The date and branch as the model is told them; changes at most daily and per branch."""
    facts = [("date", time.strftime("%Y-%m-%d"))]
    if branch:
        facts.append(("git branch", branch))
    return context_text(facts)
