"""The whole surface of the engine for every frontend: operations in, events out, questions answered."""

from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from codewhale.app.hooking import Hooking
from codewhale.commands.base import CommandContext, CommandRegistry
from codewhale.engine.asking import Asking
from codewhale.engine.engine import Engine
from codewhale.engine.fanout import deliver
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import Envelope, MessageAdded
from codewhale.protocol.messages import Message
from codewhale.protocol.ops import (
    Answer,
    CloseSession,
    CommandOutput,
    GetMessages,
    Interrupt,
    ListSessions,
    Op,
    OpenSession,
    Query,
    RunCommand,
    SendMessage,
    SessionStatus,
    SessionUsage,
    SetEffort,
    SetMode,
    SetModel,
    StatusView,
    UsageView,
)
from codewhale.protocol.views import SessionSummary
from codewhale.stores.sessions import SessionStore


class Client:
    """One application as its frontends see it."""

    def __init__(
        self, engine: Engine, asking: Asking, commands: CommandRegistry, sessions: SessionStore, hooking: Hooking
    ) -> None:
        self._engine = engine
        self._asking = asking
        self._commands = commands
        self._sessions = sessions
        self._hooking = hooking

    async def submit(self, op: Op) -> Any:
        """Do it. OpenSession answers the session id, RunCommand a CommandOutput, Answer whether anyone waited;
        SendMessage returns once the message is on disk. Raises SessionError and ConfigError."""
        match op:
            case OpenSession():
                session = self._engine.open(op)
                await session.barrier()
                workspace = session.state.workspace
                await self._hooking.opened(session.id, workspace, lambda: self.events(session.id, -1, durable=False))
                return session.id
            case SendMessage(session=session_id, text=text):
                workspace = self._engine.session(session_id).state.workspace
                passed = await self._hooking.submitted(session_id, workspace, text)
                await self._engine.send(op if passed == text else replace(op, text=passed))
            case Interrupt(session=session_id):
                self._engine.interrupt(session_id)
            case Answer(session=session_id):
                return self._asking.answer(self._engine.session(session_id), op)
            case SetMode(session=session_id, mode=mode):
                self._engine.set_mode(session_id, mode)
            case SetModel(session=session_id, model=model, provider=provider):
                self._engine.set_model(session_id, provider, model)
            case SetEffort(session=session_id, effort=effort):
                self._engine.set_effort(session_id, effort)
            case RunCommand(session=session_id, line=line):
                return await self._command(session_id, line)
            case CloseSession(session=session_id):
                await self._engine.close(session_id)
        return None

    async def _command(self, session_id: str, line: str) -> CommandOutput:
        session = self._engine.session(session_id)
        output = await self._commands.run(line, CommandContext(session_id, session.state.workspace))
        await session.barrier()
        return output

    async def query(self, query: Query) -> StatusView | UsageView | list[SessionSummary] | tuple[Message, ...]:
        """Answer it: a StatusView, a UsageView, SessionSummary rows newest first, or messages in order."""
        match query:
            case SessionStatus(session=session_id):
                return self._engine.status(session_id)
            case SessionUsage(session=session_id):
                return self._engine.usage(session_id)
            case ListSessions(workspace=workspace):
                return self._sessions.summaries(workspace)
            case GetMessages(session=session_id):
                events = (envelope.event for envelope in self._sessions.read(session_id))
                return tuple(event.message for event in events if isinstance(event, MessageAdded))

    async def events(self, session: str, from_seq: int = 0, durable: bool = True) -> AsyncIterator[Envelope]:
        """The session's durable events after `from_seq` (-1: none of the past), then everything as it happens,
        until it closes. With `durable` an event is told only once it is on disk; without, that holds for the end of a
        turn alone. Raises SessionError when the
        log could not be written any more."""
        here = self._engine.session(session)
        listener = here.fanout.subscribe()
        try:
            last = here.log.seq
            if from_seq >= 0:
                await here.barrier()
                for envelope in here.log.read(from_seq + 1):
                    if envelope.seq > last:
                        break
                    yield envelope
            async for envelope in deliver(listener, here.barrier, durable):
                yield envelope
            if isinstance(here.fault, SessionError):
                raise SessionError(f"the session ended early: {here.fault}") from here.fault
        finally:
            here.fanout.unsubscribe(listener)
