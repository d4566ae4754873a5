"""The engine: operations in, sessions and their turns, events out. Frontends reach it through the client."""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable

from codewhale.agent.activation import tools_view
from codewhale.agent.dispatch import Dispatcher
from codewhale.agent.effort import CHOICES, facts_at, turn_effort, wakes
from codewhale.agent.loop import Ending, Turn
from codewhale.agent.modelcall import bound_session
from codewhale.agent.opening import Opener
from codewhale.agent.outgoing import last_asked, letter_message, post, take_steers, tell_queue
from codewhale.agent.report import usage_view
from codewhale.agent.room import CompactionFailed
from codewhale.catalog.registry import Catalog
from codewhale.protocol.errors import SessionError, StorageFullError
from codewhale.protocol.events import (
    ContextAppended,
    EffortChanged,
    Event,
    MessageAdded,
    ModeChanged,
    ModelChanged,
    Queued,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.messages import Image
from codewhale.protocol.modes import Approval, Mode
from codewhale.protocol.ops import Limits, OpenSession, SendMessage, StatusView, UsageView
from codewhale.protocol.views import ContextView, ToolsView
from codewhale.session.prompt import context_text, mode_text
from codewhale.session.session import BROKEN, STOPPED, Letter, Session

_STOP_SECONDS = 5.0


class Engine:
    """All open sessions of this process."""

    def __init__(
        self,
        opener: Opener,
        catalog: Catalog,
        dispatcher: Dispatcher,
        facts: Callable[[str], str],
        may_ask: Callable[[str], None] = lambda provider: None,
    ) -> None:
        """`facts(workspace)` is what a message is told of the moment; `may_ask(provider)` raises ConfigError when a
        provider cannot be asked as configured."""
        self._opener = opener
        self._catalog = catalog
        self._dispatcher = dispatcher
        self._facts = facts
        self._may_ask = may_ask
        self._sessions: dict[str, Session] = {}
        self._closers: list[Callable[[str], Awaitable[None]]] = []
        self._after_turns: list[Callable[[Session], None]] = []

    def session(self, session_id: str) -> Session:
        """An open session. Raises SessionError for any other id."""
        if session_id not in self._sessions:
            raise SessionError(f"session {session_id} is not open here")
        return self._sessions[session_id]

    def at(self, workspace: str) -> list[Session]:
        """The open sessions of a workspace, its real path."""
        return [one for one in self._sessions.values() if os.path.realpath(one.state.workspace) == workspace]

    def on_close(self, closer: Callable[[str], Awaitable[None]]) -> None:
        """Call `closer(session id)` whenever a session closes, before its log does."""
        self._closers.append(closer)

    def after_turn(self, hear: Callable[[Session], None]) -> None:
        """Call `hear(session)` whenever a turn has ended and none follows at once."""
        self._after_turns.append(hear)

    def open(self, op: OpenSession) -> Session:
        """Open a session and keep it."""
        session = self._opener.open(op)
        self._sessions[session.id] = session
        return session

    async def send(self, op: SendMessage, images: tuple[Image, ...] = ()) -> None:
        """Take a person's message with its images; returns once it is safe on disk (or queued in memory behind a
        running turn). Raises ConfigError when the session's provider cannot be asked."""
        session = self.session(op.session)
        letter = Letter(op, images)
        if not session.busy:
            self._may_ask(session.state.provider)
            self._begin(session, letter)
            await session.barrier()
        elif post(session, letter):
            session.emit(Queued(op.text, len(session.queue)))
        else:
            tell_queue(session)

    async def retry(self, session: str) -> str:
        """Ask the message of the last turn again; it is said again only where something has answered it. Its text.
        Raises SessionError while a turn runs, and where there is no message."""
        here = self._idle(session)
        message, ends = last_asked(here)
        if message is None:
            raise SessionError("there is no message to ask again")
        self._may_ask(here.state.provider)
        self._start(here, message.text, *([] if ends else [MessageAdded(message)]))
        await here.barrier()
        return message.text

    def interrupt(self, session_id: str) -> None:
        """Stop the running turn, if any."""
        self.session(session_id).stop("interrupted")

    async def close(self, session_id: str) -> None:
        """Interrupt, end what belongs to the session, sync and release it."""
        session = self.session(session_id)
        session.steers.clear()
        session.queue.clear()
        session.stop("interrupted")
        if session.task is not None:
            await asyncio.wait([session.task], timeout=_STOP_SECONDS)
        for closer in self._closers:
            await closer(session_id)
        try:
            await session.barrier()
        finally:
            session.fanout.close()
            session.log.close()
            del self._sessions[session_id]
            self._opener.closed(session)
            for provider in session.providers:
                await provider.aclose()

    async def aclose(self) -> None:
        """Close every session."""
        for session_id in list(self._sessions):
            await self.close(session_id)

    # ------------------------------------------------------------------ SessionControl

    def set_mode(self, session: str, mode: Mode) -> None:
        """Change the mode. Raises SessionError while a turn runs."""
        here = self._idle(session)
        if here.state.mode is not mode:
            here.emit(ModeChanged(mode, here.state.mode))

    def set_approval(self, session: str, approval: Approval) -> None:
        """Change what becomes of calls that no rule decides. Raises SessionError while a turn runs."""
        self._idle(session).approval = approval

    def set_model(self, session: str, provider: str, model: str) -> None:
        """Change the model; the one at hand is taken up anew when its facts are no longer those it was pinned with.
        Raises SessionError while a turn runs, ConfigError for an unknown provider."""
        here = self._idle(session)
        before = (here.state.provider, here.state.model)
        wanted = (provider or here.state.provider, model)
        ready = self._opener.provider(*wanted)
        pinned = here.state.header.facts if here.state.header is not None else None
        if wanted == before and pinned == facts_at(here.state.effort, ready.settings.facts):
            return
        here.emit(ModelChanged(*wanted))
        self._opener.attach(here, ready)

    def reconnect(self, session: str, provider: str, model: str) -> None:
        """Take a provider up anew, with the key and the address it has now. Raises SessionError while a turn runs,
        ConfigError where it cannot be used."""
        here = self._idle(session)
        ready = self._opener.provider(provider, model)
        if (provider, model) != (here.state.provider, here.state.model):
            here.emit(ModelChanged(provider, model))
        self._opener.attach(here, ready)

    def set_effort(self, session: str, effort: str) -> None:
        """Change how hard the model thinks, from the next turn on. Raises SessionError for an unknown level, and while
        a turn runs if thinking begins: the conversation so far must be said otherwise."""
        here = self.session(session)
        state = here.state
        if effort not in CHOICES:
            raise SessionError(f"there is no effort {effort!r}; choose one of {', '.join(CHOICES[1:])}")
        if effort == state.effort:
            return
        if state.header is None or not wakes(effort, state.header.facts):
            here.emit(EffortChanged(effort))
            return
        ready = self._opener.provider(self._idle(session).state.provider, state.model)
        here.emit(EffortChanged(effort))
        self._opener.attach(here, ready)

    def status(self, session: str) -> StatusView:
        """How a session stands."""
        here = self.session(session)
        state = here.state
        chain = self._opener.instructions(state.workspace)
        return StatusView(
            session=here.id,
            workspace=state.workspace,
            mode=state.mode,
            authority=here.authority,
            provider=state.provider,
            model=state.model,
            turns=state.turns,
            messages=state.messages,
            requests=state.requests,
            busy=not here.idle,
            waiting_for=here.waiting_for,
            instructions=tuple((item.name, item.bytes) for item in chain),
            tokens_in=state.usage.input,
            tokens_out=state.usage.output,
            effort=state.effort,
            approval=here.rights.approval,
            waiting_since=here.waiting[1],
            queue=len(here.queue) + len(here.steers),
            jobs=len(state.jobs),
            seq=here.log.seq,
        )

    def context(self, session: str, brief: bool = False) -> ContextView:
        """How full a session's context is; a `brief` view has no layers."""
        return self._opener.context(self.session(session), brief)

    def tools(self, session: str) -> ToolsView:
        """The tools array of a session's requests."""
        return tools_view(self.session(session))

    async def compact(self, session: str, focus: str) -> tuple[int, int]:
        """Say the conversation shorter in place of a turn: it can be interrupted, and what is sent meanwhile waits.
        Tokens before and after. Raises SessionError, also when nothing came of it."""
        here = self._idle(session)
        self._may_ask(here.state.provider)
        here.stop_reason, here.running, here.ending, here.fault = "", True, False, None
        work = asyncio.create_task(self._opener.room(here).maker.asked(focus), name=f"compaction {here.id}")
        here.task = work
        await asyncio.wait([work])
        if here.task is work:  # else a turn has begun since
            here.ending, here.waiting_for = True, ""
            self._next(here)
        if work.cancelled():
            raise SessionError("the compaction was interrupted; nothing has changed")
        try:
            done = work.result()
        except CompactionFailed as error:
            raise SessionError(f"not compacted: {error}; nothing has changed") from None
        return done.tokens_before, done.tokens_after

    def undo_compaction(self, session: str) -> int:
        """Take the last compaction back; its number, 0 when none stands. Raises SessionError while a turn runs."""
        return self._opener.room(self._idle(session)).undo()

    def usage(self, session: str) -> UsageView:
        """What a session's model calls took."""
        return usage_view(self.session(session))

    def set_budget(self, session: str, limits: Limits) -> None:
        """Bound a session's whole life. Raises SessionError for a bound on money where the price is unknown."""
        bound_session(self.session(session), limits)

    def _idle(self, session: str) -> Session:
        here = self.session(session)
        if not here.idle:
            raise SessionError("a turn is running; interrupt it or wait for its end")
        return here

    # ------------------------------------------------------------------ turns

    def _begin(self, session: Session, letter: Letter) -> None:
        self._start(session, letter.op.text, letter_message(session, letter))

    def _start(self, session: Session, text: str, *message: MessageAdded) -> None:
        """Begin a turn with a message, or with the one that the conversation ends with."""
        state = session.state
        session.emit(TurnStarted(state.turns + 1), *message)
        session.asked = text
        session.request_effort = turn_effort(state.effort, text)
        told: list[Event] = []
        if state.told.get("mode") != mode_text(state.mode):
            told.append(ContextAppended("mode", mode_text(state.mode)))
        told += self._opener.updates(session)
        facts = self._facts(state.workspace)
        if state.told.get("facts") != facts:
            told.append(ContextAppended("facts", facts))
        session.emit(*told)
        session.stop_reason, session.running, session.ending, session.fault = "", False, False, None
        session.task = asyncio.create_task(self._run(session), name=f"turn {session.id}")

    async def _run(self, session: Session) -> None:
        assert session.budget is not None
        session.running = True
        session.budget.begin()
        turn = Turn(session, session.budget, self._catalog, self._dispatcher, self._opener.room(session))
        left = session.budget.seconds_left
        timer = None if left is None else asyncio.get_running_loop().call_later(left, session.stop, "budget")
        try:
            ending = await turn.run(lambda: take_steers(session))
        except asyncio.CancelledError:
            if not session.stop_reason:
                raise
            _swallow_cancellation()
            ending = _stopped(session.stop_reason)
            with contextlib.suppress(SessionError):
                turn.salvage()
        except SessionError as error:
            ending = Ending("infra", str(error))
        except Exception as error:
            ending = Ending("failed", f"A fault in CodeWhale itself ({type(error).__name__}: {error}).")
            session.fault = error
        finally:
            session.ending = True
            if timer is not None:
                timer.cancel()
        await self._finish(session, turn, ending)

    async def _finish(self, session: Session, turn: Turn, ending: Ending) -> None:
        result = turn.report.result(ending.status, "" if ending.status == "done" else ending.reason)
        end = TurnFinished(session.state.turns, ending.status, ending.reason, result)
        try:
            _record_end(session, end)
            await session.barrier()
            session.waiting_for = ""
            self._next(session)
        except SessionError as error:
            # Nothing more can be recorded: listeners are told by the end of their stream.
            session.waiting_for = ""
            session.fault = error
            session.fanout.close()

    def _next(self, session: Session) -> None:
        """Begin the next queued message's turn; steers that came too late are turns of their own."""
        while session.steers:
            session.queue.appendleft(session.steers.pop())
        if session.queue and not session.stop_reason:
            self._begin(session, session.queue.popleft())
            tell_queue(session)
            return
        for hear in self._after_turns:
            hear(session)


def _record_end(session: Session, end: TurnFinished) -> None:
    try:
        session.close_calls(STOPPED if session.stop_reason else BROKEN)
        session.emit(end)
    except StorageFullError:
        session.close_calls(STOPPED if session.stop_reason else BROKEN)  # the refusal made room
        session.emit(end)


def _swallow_cancellation() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _stopped(reason: str) -> Ending:
    if reason == "budget":
        return Ending("budget", "Stopped: the time bound is reached. The session can be resumed.")
    return Ending("interrupted", "Interrupted by the person. The session can be resumed.")


def workspace_facts(branch: str | None) -> str:
    """The date and branch as the model is told them; changes at most daily and per branch."""
    facts = [("date", time.strftime("%Y-%m-%d"))]
    if branch:
        facts.append(("git branch", branch))
    return context_text(facts)
