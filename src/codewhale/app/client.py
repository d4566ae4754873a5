"""The whole surface of the engine for every frontend: operations in, events out, questions answered."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from codewhale.agent.asking import Asking
from codewhale.agent.engine import Engine
from codewhale.agent.outgoing import edit
from codewhale.app.hooking import Hooking
from codewhale.app.parts import Parts
from codewhale.app.table import LOOKUPS, target
from codewhale.commands.base import CommandContext, CommandRegistry
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import Envelope, MessageAdded
from codewhale.protocol.messages import Image
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import (
    Answer,
    CloseSession,
    CommandOutput,
    EditQueue,
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
)
from codewhale.session.fanout import deliver
from codewhale.session.store import SessionStore

if TYPE_CHECKING:
    from codewhale.app.answers import Answers


class Client:
    """One application as its frontends see it."""

    def __init__(
        self,
        engine: Engine,
        asking: Asking,
        commands: CommandRegistry,
        sessions: SessionStore,
        hooking: Hooking,
        parts: Parts,
    ) -> None:
        self._engine = engine
        self._asking = asking
        self._commands = commands
        self._sessions = sessions
        self._hooking = hooking
        self._parts = parts

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
            case SendMessage():
                await self._send(op)
            case Interrupt(session=session_id):
                self._engine.interrupt(session_id)
                if (own := self._parts.built("own_shell")) is not None:
                    await own.interrupt(session_id)
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
            case EditQueue(session=session_id):
                return edit(self._engine.session(session_id), op)
            case CloseSession(session=session_id):
                await self._engine.close(session_id)
            case _:
                return await self._answers.do(op)
        return None

    @property
    def _answers(self) -> "Answers":
        found: Answers = self._parts.part("answers")  # type: ignore[assignment]
        return found

    async def _send(self, op: SendMessage) -> None:
        workspace = self._engine.session(op.session).state.workspace
        passed = await self._hooking.submitted(op.session, workspace, op.text)
        op = op if passed == op.text else replace(op, text=passed)
        images: tuple[Image, ...] = ()
        if op.attachments:
            enclosed = await self._answers.enclose(op)
            images = enclosed.images
            op = replace(op, context="\n\n".join(filter(None, (op.context, enclosed.text))), attachments=())
        await self._engine.send(op, images)

    async def _command(self, session_id: str, line: str) -> CommandOutput:
        session = self._engine.session(session_id)
        output = await self._commands.run(line, CommandContext(session_id, session.state.workspace))
        await session.barrier()
        return output

    async def query(self, query: Query) -> Any:
        """Answer it: a StatusView, a UsageView, SessionSummary rows newest first, messages in order, or what the
        queries of views.py say. Raises CodeWhaleError."""
        match query:
            case SessionStatus(session=session_id):
                return await self._status(session_id)
            case SessionUsage(session=session_id):
                return self._engine.usage(session_id)
            case ListSessions(workspace=workspace):
                return self._sessions.summaries(workspace)
            case GetMessages(session=session_id):
                events = (envelope.event for envelope in self._sessions.read(session_id))
                return tuple(event.message for event in events if isinstance(event, MessageAdded))
            case _:
                return await self._answers.answer(query)

    async def _status(self, session_id: str) -> StatusView:
        """How a session stands. What takes time to find out is found out for a person alone, who looks at it."""
        status = self._engine.status(session_id)
        if status.authority is not Authority.PERSON:
            return status
        branch, sandbox = await asyncio.to_thread(_surroundings, status.workspace)
        return replace(status, branch=branch, sandbox=sandbox)

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


def _surroundings(workspace: str) -> tuple[str, str]:
    """The branch of a workspace and the mechanism that holds commands on this machine."""
    return target(LOOKUPS["branch"])(workspace), target(LOOKUPS["sandbox"])().mechanism
