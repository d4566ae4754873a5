"""The whole surface of the engine for every frontend: operations in, events out, queries answered."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from inspect import isawaitable
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec.structs import replace

from codewhale.agent.turn import TurnState
from codewhale.app.container import Container
from codewhale.catalog.lifecycle import closed_gate
from codewhale.commands.base import CommandContext, CommandRegistry, Families
from codewhale.protocol import ops, views
from codewhale.protocol.automations import ListAutomations, SwitchAutomation
from codewhale.protocol.children import ChildView, ListChildren, ReadEvents, StopChild, TellChild
from codewhale.protocol.directcalls import DirectOutcome, ListTools, RunCall
from codewhale.protocol.errors import CodeWhaleError, SessionError, ToolError
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    Envelope,
    MessageAdded,
    QuestionAnswered,
    QuestionAsked,
)
from codewhale.protocol.memory import DecideFact, GetFacts, GetWaiting, MemoryItem
from codewhale.protocol.messages import Image, Message
from codewhale.protocol.modes import Authority
from codewhale.protocol.requests import Op, Query, Request
from codewhale.protocol.reviews import Review
from codewhale.protocol.tasks import AddTask, CancelTask, GetTask, ListTasks, ResumeTask
from codewhale.protocol.tools import ToolSpec
from codewhale.session.fanout import Subscription, deliver
from codewhale.session.session import Session
from codewhale.session.standing import standing

if TYPE_CHECKING:
    from codewhale.app.connecting import Connections
    from codewhale.app.provider_queries import ProviderQueries
    from codewhale.app.work_queries import WorkQueries
    from codewhale.commands.review import ReviewCommand

T = TypeVar("T")
MOST_EVENTS = 5_000  # of one ReadEvents
ASKS = (ApprovalAsked, ApprovalAnswered, QuestionAsked, QuestionAnswered)


class OfSession(Protocol):  # a request about one session
    @property
    def session(self) -> str: ...


class EngineClient:
    """One application as its frontends see it. `commands` are the slash commands with their families, which
    `families(client)` builds."""

    def __init__(self, parts: Container, commands: Mapping[str, str], families: "FamiliesOf") -> None:
        self.parts = parts
        self.commands = CommandRegistry(commands, partial(families, self))
        self._engine = parts.engine
        self._does: dict[type[Request[Any]], Callable[[Any], Any]] = dict((*self._operations(), *self._queries()))

    async def submit(self, op: Op[T], /) -> T:
        """Do it, answered as the operation says; SendMessage returns once the message is on disk. Raises SessionError
        and ConfigError."""
        return await self._answer(op)

    async def query(self, query: Query[T], /) -> T:
        return await self._answer(query)

    async def _answer(self, request: Request[T]) -> T:
        do = self._does.get(type(request))
        if do is None:
            raise SessionError(f"{type(request).__name__} is not supported here")
        answer: T | Awaitable[T] = do(request)
        return await answer if isawaitable(answer) else answer

    def _operations(self) -> Sequence[tuple[type[Request[Any]], Callable[[Any], Any]]]:
        engine, control, services = self._engine, self.parts.control, self.parts.services
        return (
            ops.OpenSession.done_by(self._open),
            ops.SendMessage.done_by(self._send),
            ops.Interrupt.done_by(self._interrupt),
            ops.Answer.done_by(self._person_answered),
            ops.SetMode.done_by(lambda op: control.set_mode(op.session, op.mode)),
            ops.SetModel.done_by(lambda op: control.set_model(op.session, op.provider, op.model)),
            ops.SetEffort.done_by(lambda op: control.set_effort(op.session, op.effort)),
            ops.RunCommand.done_by(self._command),
            ops.CloseSession.done_by(lambda op: engine.close(op.session)),
            TellChild.done_by(lambda op: self._of_child(self.parts.children.tell(op.session, op.name, op.text))),
            StopChild.done_by(lambda op: self._of_child(self.parts.children.stop(op.session, op.name))),
            ops.EditQueue.done_by(self.edit_queue),
            ops.RunShell.done_by(self._run_shell),
            ops.NoteFile.done_by(lambda op: services.mentions.note(self._root(op), op.path)),
            ops.ConnectProvider.done_by(self._connect),
            ops.ChangeSetting.done_by(lambda op: asyncio.to_thread(self.providers.change, op.key, op.value)),
            ops.StartDemo.done_by(self._start_demo),
            DecideFact.done_by(self._decide_fact),
            RunCall.done_by(self._run_call),
            AddTask.done_by(self.parts.tasking.add),
            CancelTask.done_by(lambda op: self.parts.tasking.cancel(op.task)),
            ResumeTask.done_by(lambda op: self.parts.tasking.resume(op.task)),
            SwitchAutomation.done_by(lambda op: self.parts.tasking.switch(op.automation, op.paused)),
            Review.done_by(lambda op: self.reviews.review(op, self._root(op))),
        )

    def _queries(self) -> Sequence[tuple[type[Request[Any]], Callable[[Any], Any]]]:
        control, sessions, services = self.parts.control, self.parts.sessions, self.parts.services
        return (
            ops.SessionStatus.done_by(self._status),
            ops.SessionUsage.done_by(lambda query: control.usage(query.session)),
            ListChildren.done_by(self._children),
            ReadEvents.done_by(self._read),
            ops.ListSessions.done_by(lambda query: sessions.summaries(query.workspace)),
            ops.GetMessages.done_by(self._messages),
            views.PreviewSession.done_by(lambda query: self.work.session(query.id, query.last)),
            views.ListServers.done_by(lambda query: self.work.servers(self.parts.mcp)),
            views.GetSettings.done_by(lambda query: asyncio.to_thread(self.providers.settings, self._root(query))),
            views.FindLocal.done_by(lambda query: self.providers.found()),
            views.CheckEndpoint.done_by(lambda query: self.connections.check(query)),
            views.GetQueue.done_by(lambda query: self.queued(query.session)),
            views.GetContext.done_by(lambda query: control.context(query.session, query.brief)),
            ListTools.done_by(self._callable),
            views.GetTools.done_by(lambda query: control.tools(query.session)),
            views.ListCommands.done_by(self._commands),
            views.CompleteCommand.done_by(self._complete),
            views.ListProviders.done_by(lambda query: self.providers.providers(self._session(query).state.provider)),
            views.ListModels.done_by(self._models),
            views.ReadOutput.done_by(lambda query: self.work.output(query)),
            views.ListJobs.done_by(lambda query: self.work.jobs(query.session)),
            views.LookAtMentions.done_by(self._mentions),
            views.FindFiles.done_by(lambda query: services.mentions.find(self._root(query), query.text, query.limit)),
            views.GetWorkspace.done_by(lambda query: self.work.workspace(self._root(query))),
            views.GetDiff.done_by(lambda query: self.work.diff(query.session, self._root(query), query.path)),
            views.GetClosing.done_by(lambda query: self.work.closing(query.session, self._root(query), control.usage)),
            views.ListFormer.done_by(lambda query: control.former(query.session)),
            views.PreviewRewind.done_by(self._rewind),
            GetFacts.done_by(self._facts),
            ListAutomations.done_by(lambda query: self.parts.tasking.schedules(query.most)),
            ListTasks.done_by(lambda query: self.parts.tasking.board(query.most)),
            GetTask.done_by(lambda query: self.parts.tasking.record(query.task)),
            GetWaiting.done_by(lambda query: asyncio.to_thread(self.parts.memory.waiting.shown, query.workspace)),
            views.PreviewUndo.done_by(lambda query: self.work.undo(query, self._root(query))),
        )

    def _session(self, request: OfSession) -> Session:
        return self._engine.session(request.session)

    def _root(self, request: OfSession) -> str:
        return self._session(request).state.workspace

    # ------------------------------------------------------------------ what is done

    async def _open(self, op: ops.OpenSession) -> str:
        self.parts.read_settings(op.workspace)
        clauses = self.parts.permissions.liftable(op.workspace, op.clauses) if op.clauses else []
        if not op.owner:
            await self.parts.mcp.require()
            if op.resume or op.fork:
                self.parts.mcp.at()  # what the session knows of servers is called by name
        session = self._engine.open(op)
        workspace = session.state.workspace
        session.lifted.extend(clauses)
        config = self.parts.settings(workspace).config
        for notice in config.notices if config is not self.parts.config else ():
            session.notice("warning", notice, "config")
        await session.barrier()
        if op.resume and session.state.children:
            await self.parts.children.restore(session)
        await self.parts.hooking.opened(session.id, workspace, lambda: self.events(session.id, -1, durable=False))
        return session.id

    async def _send(self, op: ops.SendMessage) -> None:
        passed = await self.parts.hooking.submitted(op.session, self._root(op), op.text)
        op = op if passed == op.text else replace(op, text=passed)
        await self.parts.guide.check(self._session(op), op.text)
        images: tuple[Image, ...] = ()
        if "@" in op.text:
            from codewhale.commands.mentions import with_named_files

            op = await asyncio.to_thread(with_named_files, op, self._root(op))
        if op.attachments:
            session = self._session(op)
            takes = session.provider.settings.facts.get("images", True)
            refusal = f"{session.state.model} cannot read images; choose another model (/model), or remove the image"
            enclose = partial(self.parts.services.attaching.enclose, op.attachments, self._root(op))
            enclosed = await asyncio.to_thread(enclose, "" if takes else refusal)
            images = enclosed.images
            op = replace(op, context="\n\n".join(filter(None, (op.context, enclosed.text))), attachments=())
        await self._engine.send(op, images)

    async def _mentions(self, query: views.LookAtMentions) -> tuple[views.FileMention, ...]:
        from codewhale.commands.mentions import mentioned

        return tuple(one for one, _ in await asyncio.to_thread(mentioned, query.text, self._root(query)))

    async def _interrupt(self, op: ops.Interrupt) -> None:
        """Stop the turn; where none runs that could be stopped, what a command waits for; else the children."""
        children, turn = self._session(op).state.children, self._engine.turn(op.session)
        awaited = [one.id for one in self._engine.owned(op.session) if one.state.owner == op.session]
        awaited = [session for session in awaited if session not in children]
        owner = self._session(op).state.owner
        if owner and op.session in self._engine.session(owner).state.children:
            await self.parts.children.stop(owner, op.session)
        elif turn.busy and turn.state in (TurnState.READY, TurnState.RUNNING):
            self._engine.interrupt(op.session)
        elif awaited:
            for session in awaited:
                self._engine.interrupt(session)
        elif self.parts.built("children"):
            await self.parts.children.stop_all(op.session)
        if self.parts.services.built("own_shell"):
            await self.parts.services.own_shell.interrupt(op.session)

    def _children(self, query: ListChildren) -> tuple[ChildView, ...]:
        return self.parts.children.views(query.session) if self._session(query).state.children else ()

    async def _read(self, query: ReadEvents) -> tuple[Envelope, ...]:
        def read() -> tuple[Envelope, ...]:
            events = self.parts.sessions.read(query.session)
            return tuple(islice((envelope for envelope in events if envelope.seq > query.seq), MOST_EVENTS))

        return await asyncio.to_thread(read)

    async def _of_child(self, work: Awaitable[ChildView]) -> ChildView:
        try:
            return await work
        except ToolError as error:
            raise SessionError(error.message) from error

    async def _command(self, op: ops.RunCommand) -> ops.CommandOutput:
        session = self._session(op)
        output = await self.commands.run(op.line, CommandContext(op.session, session.state.workspace))
        await session.barrier()
        return output

    async def _run_call(self, op: RunCall) -> DirectOutcome:
        call = await self._engine.direct.run(op)
        finished = next(event for event in call.events if isinstance(event, CallFinished))
        get = self.parts.artifacts.get
        images = [(image.media_type, await asyncio.to_thread(get, image.artifact)) for image in finished.images]
        return DirectOutcome(finished.ok, finished.content, finished.error, tuple(images))

    def _callable(self, query: ListTools) -> tuple[ToolSpec, ...]:
        session = self._session(query)
        facts, model = session.provider.settings.facts, session.state.model
        off = self.parts.settings(session.state.workspace).tools.disabled
        rows = self.parts.catalog.rows.values()
        return tuple(row for row in rows if row.name not in off and not closed_gate(row.name, row.gate, facts, model))

    async def _run_shell(self, op: ops.RunShell) -> int | None:
        session = self._session(op)
        code = await self.parts.services.own_shell.run(op.session, session.state.workspace, op.command)
        await session.barrier()
        return code

    async def _decide_fact(self, op: DecideFact) -> None:
        decided = await asyncio.to_thread(self.parts.memory.waiting.decide, op)
        if op.session:
            session = self._engine.session(op.session)
            session.emit(decided)
            await session.barrier()

    async def _connect(self, op: ops.ConnectProvider) -> str:
        session = self._session(op)
        if not self._engine.turn(op.session).idle:
            return "A turn is running; stop it or wait until it ends."
        try:
            provider, model = await self.connections.connect(op)
            state = session.state
            if op.use or provider == state.provider:
                self.parts.control.reconnect(op.session, provider, model if op.use else state.model)
            await session.barrier()
        except CodeWhaleError as error:
            return str(error)
        return ""

    @cached_property
    def reviews(self) -> "ReviewCommand":
        from codewhale.commands.review import ReviewCommand

        return ReviewCommand(self, self.parts.control, self.parts.tell, self.parts.redact)

    async def _start_demo(self, op: ops.StartDemo) -> ops.DemoStarted:
        from codewhale.app.demonstration import start_demo

        return await start_demo(self._open)

    def edit_queue(self, op: ops.EditQueue) -> str:
        return self._engine.queue(op.session).edit(op, self._engine.turn(op.session))

    # ------------------------------------------------------------------ what is asked

    @cached_property
    def providers(self) -> "ProviderQueries":
        from codewhale.app.provider_queries import ProviderQueries

        return ProviderQueries(self.parts.place, self.parts.routes)

    @cached_property
    def connections(self) -> "Connections":
        from codewhale.app.connecting import Connections

        return Connections(self.parts.place, self.parts.routes, self.parts.redactors)

    @cached_property
    def work(self) -> "WorkQueries":
        from codewhale.app.work_queries import WorkQueries

        return WorkQueries(self.parts.services, self.parts.sessions, self.parts.redact, self.parts.artifacts)

    async def examine(self, session: str) -> tuple[str, bool]:
        """The doctor's words about the machine and the session's provider, and whether all is well."""
        from codewhale.app.doctor import examine, read_aloud

        place, state = self.parts.place, self._engine.session(session).state
        found = await examine(place.home, state.workspace, place.environ, state.provider, state.model)
        return read_aloud(found), found.ok

    def queued(self, session: str) -> tuple[views.QueuedRow, ...]:
        return self._engine.queue(session).rows()

    async def _status(self, query: ops.SessionStatus) -> ops.StatusView:
        status = self.parts.control.status(query.session)
        if status.authority is not Authority.PERSON:
            return status
        branch, sandbox = await asyncio.to_thread(_surroundings, status.workspace)
        return replace(status, branch=branch, sandbox=sandbox)

    def _messages(self, query: ops.GetMessages) -> tuple[Message, ...]:
        events = standing(envelope.event for envelope in self.parts.sessions.read(query.session))
        return tuple(event.message for event in events if isinstance(event, MessageAdded))

    async def _rewind(self, query: views.PreviewRewind) -> views.RewindView:
        former = [row for row in self.parts.control.former(query.session) if row.turn >= query.turn]
        return await self.work.rewind(query, self._root(query), tuple(row.text for row in former))

    async def _models(self, query: views.ListModels) -> tuple[views.ModelRow, ...]:
        state = self._session(query).state
        return await self.providers.models((state.provider, state.model), query)

    async def _commands(self, query: views.ListCommands) -> tuple[views.CommandRow, ...]:
        specs = await self.commands.specs(self._root(query))
        return tuple(views.CommandRow(spec.name, spec.usage, spec.summary) for spec in specs)

    async def _complete(self, query: views.CompleteCommand) -> tuple[views.Choice, ...]:
        from codewhale.commands.completing import complete_command

        specs = await self.commands.specs(self._root(query))
        return await complete_command(query, specs, self.query, self._skills)

    async def _skills(self, session: str, words: Sequence[str]) -> Sequence[views.Choice]:
        from codewhale.skills.mentions import described

        state = self._engine.session(session).state
        skills = await asyncio.to_thread(self.parts.services.skills.of, state.workspace)
        match list(words[:-1]):
            case ["/skill", "off"]:
                return [views.Choice(one.name, one.path) for one in state.skills.values()]
            case ["/skills", "on"]:
                return [views.Choice(one.full_name, one.path) for one in skills.off]
        return [views.Choice(*row) for row in described(skills)]

    def events(
        self, session: str, from_seq: int = 0, durable: bool = True, owned: bool = False
    ) -> AsyncIterator[Envelope]:
        """The session's durable events after `from_seq` (-1: none of the past), then everything that happens from this
        call on, until it closes; of the sessions that it owns what they ask and how that was answered, or all that
        happens (`owned`). With `durable` an event is told only once it is on disk; without, that holds for the end of a
        turn alone. The stream raises SessionError when the log could not be written any more."""
        watched = self._engine.session(session)
        return self._events(watched, watched.fanout.subscribe(), watched.log.seq, from_seq, durable, owned)

    async def _events(
        self, watched: Session, listener: Subscription, last: int, from_seq: int, durable: bool, owned: bool
    ) -> AsyncIterator[Envelope]:
        try:
            if from_seq >= 0:
                await watched.barrier()
                for envelope in watched.log.read(from_seq + 1):
                    if envelope.seq > last:
                        break
                    yield envelope
                for envelope in self._waiting(watched.id):
                    yield envelope
            async for envelope in deliver(listener, self._engine.barrier, durable):
                if owned or envelope.session == watched.id or isinstance(envelope.event, ASKS):
                    yield envelope
            if watched.fanout.failure is not None:
                raise SessionError(f"the session ended early: {watched.fanout.failure}") from watched.fanout.failure
        finally:
            watched.fanout.unsubscribe(listener)

    async def _person_answered(self, op: ops.Answer) -> bool:
        if self.parts.services.built("plans") and await self.parts.services.plans.answer(op):
            return True
        sessions = (self._session(op), *self._engine.owned(op.session))
        return any(self.parts.asking.answer(session, op) for session in sessions)

    async def _facts(self, query: GetFacts) -> tuple[MemoryItem, ...]:
        return tuple(await asyncio.to_thread(self.parts.memory.items, query.workspace, "", "user-memory"))

    def _waiting(self, session: str) -> Sequence[Envelope]:
        """What the sessions that a session owns have asked and nobody has answered."""
        return [
            envelope
            for one in self._engine.owned(session)
            if (requests := self.parts.asking.waiting(one.id))
            for envelope in one.log.read()
            if isinstance(envelope.event, ApprovalAsked | QuestionAsked) and envelope.event.request_id in requests
        ]


def _surroundings(workspace: str) -> tuple[str, str]:
    """The branch of a workspace and the mechanism that holds commands on this machine."""
    from codewhale.process.confinement import sandbox
    from codewhale.process.repository import branch_of

    return branch_of(workspace), sandbox().mechanism


FamiliesOf = Callable[[EngineClient], Families]
