"""The children of sessions: conversations that run for another one. Each is an ordinary session with an owner; its log
is what it came to, and the log of its owner says which there are and of which ends its conversation knows."""

import asyncio
import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from codewhale.agent.childtask import Outcome, brief, closed, fitting, fold, misfit, outcome_of, report_text
from codewhale.agent.engine import Engine
from codewhale.agent.opening import WRITER, OpeningChecks
from codewhale.agent.turn import Turn
from codewhale.lib import failpoints
from codewhale.protocol.children import ChildPlan, ChildRequest, ChildView, agent_id
from codewhale.protocol.errors import CodeWhaleError, NextCall, SessionError, ToolError
from codewhale.protocol.events import (
    CallStarted,
    ChildOpened,
    ChildProgress,
    ChildReleased,
    Envelope,
    Event,
    FileChanged,
    MessageAdded,
    TurnFinished,
    UsageReported,
)
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage
from codewhale.session.accounting import Accounts
from codewhale.session.session import Session
from codewhale.session.state import ChildState
from codewhale.session.store import SessionStore
from codewhale.session.work import WorkState

_STOP_SECONDS = 2.0
_ARGUMENTS = 2_000  # characters of a call's arguments that people are shown something of
_MODEL = ("the model", "the next try")  # what a turn waits for where silence counts


class _Running(Struct):
    """A child under way. `over` is set once its end is recorded; `doing` is told to people."""

    session: Session
    owner: Session
    opened: ChildOpened
    over: asyncio.Event
    silence: float
    began: float
    heard: float = 0.0
    doing: str = ""
    arguments: str = ""
    stopped: bool = False
    closing: bool = False
    changed: bool = False
    retried: bool = False
    watch: asyncio.Task[None] | None = None


class Children:
    """Implements ChildRunner."""

    def __init__(self, engine: Engine, store: SessionStore, checks: OpeningChecks) -> None:
        self._engine = engine
        self._store = store
        self._checks = checks
        self._running: dict[str, _Running] = {}
        self._ended: dict[str, ChildView] = {}  # by session, of those whose owner is open
        self._opening: dict[str, list[str]] = {}  # names, by root
        engine.on_close(self._forget)

    # ------------------------------------------------------------------ opening

    def plan(self, request: ChildRequest) -> ChildPlan:
        owner = self._engine.session(request.parent)
        return self._checks.plan(request, owner, self._names(owner), self._under_way(owner), self._writers())

    async def open(self, request: ChildRequest) -> ChildView:
        plan = self.plan(request)
        request, owner = plan.request, self._engine.session(request.parent)
        root = _root(owner)
        self._opening.setdefault(root, []).append(request.name)
        try:
            folder = await self._checks.folder(request, owner)
            kept = request.fork and request.model == owner.state.model
            op = OpenSession(  # its rights are those of its owner at the moment of a call
                workspace=folder, mode=Mode.YOLO, authority=Authority.AUTO, approval=Approval.AUTO,
                provider="" if request.fork else plan.provider, model="" if kept else request.model,
                fork=owner.id if request.fork else "", until=owner.asked_at if request.fork else 0,
                effort=request.effort, limits=request.limits, owner=owner.id, kind=request.kind, name=request.name,
                scope=plan.scope,
            )  # fmt: skip
            child = await self._engine.open_child(op)
            opened = ChildOpened(
                child.id, request.name, request.objective, request.role, 1, request.fork, request.schema, request.kind
            )
            role = self._checks.role(request.role, owner.state.workspace)
            return await self._begin(child, owner, opened, brief(plan, role))
        except CodeWhaleError as error:
            raise ToolError("execution_failed", f"The sub-agent could not be opened: {error}") from error
        finally:
            self._opening[root].remove(request.name)

    async def _begin(self, child: Session, owner: Session, opened: ChildOpened, task: SendMessage) -> ChildView:
        silence = self._checks.settings(owner.state.workspace).silence_seconds
        running = _Running(child, owner, opened, asyncio.Event(), silence, child.clock.now())
        self._running[child.id] = running
        self._ended.pop(child.id, None)
        try:
            await child.barrier()  # whoever reads the owner's log finds the child's
            owner.emit(opened)
            running.watch = asyncio.create_task(self._watch(running), name=f"child {child.id}")
            await self._engine.send(replace(task, session=child.id))
        except BaseException as error:
            self._running.pop(child.id, None)
            if running.watch is not None:
                running.watch.cancel()
                failed = Outcome("failed", "", f"It could not begin: {error or 'stopped'}")
                self._end(owner, self._over(running, failed), child.accounts, child.state.work)
            await self._engine.close(child.id)
            raise
        return self._view(running)

    def _names(self, owner: Session) -> Mapping[str, str]:
        """The children of a session that are not released, by name."""
        return {one.opened.name: session for session, one in owner.state.children.items()}

    def _under_way(self, owner: Session) -> list[str]:
        """The names of the children of the whole tree that run or are being opened."""
        root = _root(owner)
        running = [one.opened.name for one in self._running.values() if _root(one.owner) == root]
        return [*running, *self._opening.get(root, ())]

    def _writers(self) -> dict[str, list[str]]:
        """The folders in which running children change files: those that are there to do so, or have done so."""
        writers = {}
        for one in self._running.values():
            state, scope = one.session.state, one.session.scope
            if one.opened.role == WRITER or one.changed:
                below = scope.paths if scope is not None else ()
                writers[one.opened.name] = [
                    os.path.normpath(os.path.join(state.workspace, path)) for path in below or ("",)
                ]
        return writers

    # ------------------------------------------------------------------ while one runs

    async def _watch(self, running: _Running) -> None:
        """Follow a child until its task is over, then record its end and tell its owner."""
        child, now = running.session, asyncio.get_running_loop().time
        listener = child.fanout.subscribe()
        running.heard = now()
        silence = asyncio.create_task(self._mind_silence(running), name=f"silence {child.id}")
        try:
            while True:
                batch = await listener.drain()
                running.heard = now()
                ended = [self._heard(running, one) for one in batch if one.session == child.id]
                if (not batch or any(ended)) and (await self._settled(running) or not batch):
                    return
        except Exception as error:
            fault = Outcome("failed", "", f"A fault in CodeWhale itself ({type(error).__name__}: {error}).")
            self._end(running.owner, self._over(running, fault), child.accounts, child.state.work)
        finally:
            silence.cancel()
            child.fanout.unsubscribe(listener)
            if self._running.get(child.id) is running:
                del self._running[child.id]
            running.over.set()

    async def _mind_silence(self, running: _Running) -> None:
        """One clock for all that is heard of a child, which goes on for as long as something is."""
        now = asyncio.get_running_loop().time
        while True:
            left = running.heard + running.silence - now()
            if left <= 0:
                self._silent(running)
                running.heard, left = now(), running.silence
            await asyncio.sleep(left)

    def _silent(self, running: _Running) -> None:
        turn = self._turn(running)
        if turn is not None and turn.waiting_for.startswith(_MODEL):
            turn.stop("silence")

    def _turn(self, running: _Running) -> Turn | None:
        with contextlib.suppress(SessionError):
            return self._engine.turn(running.session.id)
        return None

    def _heard(self, running: _Running, envelope: Envelope) -> bool:
        """Note what a child does; whether its turn has ended."""
        match envelope.event:
            case CallStarted(name=name, arguments=arguments):
                running.doing, running.arguments = name, arguments if len(arguments) <= _ARGUMENTS else ""
                self._tell_doing(running)
            case UsageReported():
                self._tell_doing(running)
            case FileChanged():
                running.changed = True
            case TurnFinished():
                return True
        return False

    def _tell_doing(self, running: _Running) -> None:
        accounts, steps = running.session.accounts, running.session.accounts.turn.calls
        if running.owner.fanout.heard:
            used = accounts.with_children({}).as_one()
            self._tell(running.owner, ChildProgress(running.session.id, running.doing, running.arguments, steps, used))

    async def _settled(self, running: _Running) -> bool:
        """Record the end of a child whose turn has ended; False where it goes on: with a message that waited, or to
        answer in the form that is wanted."""
        child, turn = running.session, self._turn(running)
        if turn is not None:
            await turn.wait(_STOP_SECONDS)
            if self._turn(running) is not turn:
                return False
        outcome = outcome_of(child.state, running.stopped)
        if child.fanout.failure is not None:
            outcome = Outcome("failed", outcome.answer, str(child.fanout.failure))
        wrong = misfit(outcome, running.opened.schema)
        if wrong and not running.retried and not running.stopped:
            running.retried = True
            with contextlib.suppress(CodeWhaleError):
                await self._engine.send(SendMessage(child.id, wrong))
                return False
        view = self._over(running, fitting(outcome, wrong))
        running.closing = True
        with contextlib.suppress(SessionError):
            await self._engine.close(child.id)
        self._end(running.owner, view, child.accounts, child.state.work)
        return True

    def _over(self, running: _Running, outcome: Outcome) -> ChildView:
        return replace(self._view(running), status=outcome.status, answer=outcome.answer, error=outcome.error, doing="")

    def _end(self, owner: Session, view: ChildView, accounts: Accounts, work: WorkState, *, wake: bool = True) -> None:
        """Record an end in the owner's log, and let its conversation be told."""
        self._ended[view.session] = view
        self._running.pop(view.session, None)
        failpoints.hit("child.end")
        with contextlib.suppress(SessionError):  # the owner is being closed: it is told when it is opened again
            known = owner.state.children.get(view.session)
            if known is not None and known.ended is None:
                owner.emit(closed(view, accounts, work))
            failpoints.hit("child.end")
            text = Text(report_text(view), source="harness")
            message = MessageAdded(Message("user", (text,)), child=view.session)
            self._engine.report(owner.id, message, wake=wake)

    def _tell(self, owner: Session, event: Event) -> None:
        with contextlib.suppress(SessionError):
            owner.emit(event)

    # ------------------------------------------------------------------ how they stand

    def view(self, parent: str, name: str) -> ChildView:
        return self._stands(self._engine.session(parent), self._named(parent, name))

    def views(self, parent: str) -> tuple[ChildView, ...]:
        owner = self._engine.session(parent)
        return tuple(self._stands(owner, session) for session in owner.state.children)

    def _named(self, parent: str, name: str) -> str:
        """The session of a child by its name or id. Raises ToolError."""
        owner = self._engine.session(parent)
        for session, one in owner.state.children.items():
            if name in (one.opened.name, agent_id(session), session):
                return session
        names = [one.opened.name for one in owner.state.children.values()]
        known = f"Those of this session are: {', '.join(names)}." if names else "This session has opened none."
        fix = NextCall("agent_eval", {"name": names[-1]} if names else {"block": False})
        raise ToolError(
            "invalid_input",
            f"`name`: there is no sub-agent {name[:80]!r}. {known} Open a new one with agent_open.",
            field="name",
            expected="the name or id of a sub-agent",
            received=repr(name[:80]),
            fix=fix,
        )

    def _stands(self, owner: Session, session: str) -> ChildView:
        state = owner.state.children[session]
        if (running := self._running.get(session)) is not None:
            return self._view(running)
        if session not in self._ended:
            self._ended[session] = self._from_log(session, state, owner)[0]
        return replace(self._ended[session], reported=state.reported)

    def _view(self, running: _Running) -> ChildView:
        child, opened = running.session, running.opened
        turn = self._turn(running)
        waits = "" if turn is None else turn.waiting_for
        return ChildView(
            session=child.id, name=opened.name, role=opened.role, objective=opened.objective, status="running",
            kind=opened.kind, model=child.state.model,
            folder="" if child.state.workspace == running.owner.state.workspace else child.state.workspace,
            forked=opened.forked, task=opened.turn, seconds=round(child.clock.now() - running.began, 1),
            doing=waits or running.doing, **_used(child.accounts),
        )  # fmt: skip

    def _from_log(self, session: str, state: ChildState, owner: Session) -> tuple[ChildView, Accounts, WorkState]:
        """How a child of an earlier process stands, and what it has used and changed."""
        opened = state.opened
        view = ChildView(session, opened.name, opened.role, opened.objective, "interrupted", opened.kind)
        view = replace(view, forked=opened.forked, task=opened.turn)
        try:
            child, accounts = fold(self._store.read(session))
        except SessionError as error:
            return replace(view, status="failed", error=f"Its log cannot be read: {error}"), Accounts(), WorkState()
        outcome = outcome_of(child, False)
        outcome = fitting(outcome, misfit(outcome, opened.schema))
        status = outcome.status if state.ended is None else state.ended.status
        view = replace(view, status=status, answer=outcome.answer, error=outcome.error)
        folder = "" if child.workspace == owner.state.workspace else child.workspace
        return replace(view, model=child.model, folder=folder, **_used(accounts)), accounts, child.work

    # ------------------------------------------------------------------ waiting

    async def wait(
        self, parent: str, names: Sequence[str], seconds: float, *, every: bool = False
    ) -> tuple[ChildView, ...]:
        owner = self._engine.session(parent)
        sessions = [self._named(parent, name) for name in names] or list(owner.state.children)
        running = [self._running[session] for session in sessions if session in self._running]
        news = any(not (session in self._running or owner.state.children[session].reported) for session in sessions)
        if running and seconds > 0 and (every or not news):
            waits = [asyncio.ensure_future(one.over.wait()) for one in running]
            when = asyncio.ALL_COMPLETED if every else asyncio.FIRST_COMPLETED
            try:
                await asyncio.wait(waits, timeout=seconds, return_when=when)
            finally:
                for wait in waits:
                    wait.cancel()
        return tuple(self._stands(owner, session) for session in sessions)

    # ------------------------------------------------------------------ messages and ends

    async def tell(self, parent: str, name: str, text: str) -> ChildView:
        session = self._named(parent, name)
        running = self._running.get(session)
        if running is not None and running.closing:
            await running.over.wait()
            running = self._running.get(session)
        if running is not None:
            await self._engine.send(SendMessage(session, text, delivery="steer"))
            return self._view(running)
        owner = self._engine.session(parent)
        self._checks.room(self._under_way(owner), owner.state.workspace)
        opened = replace(owner.state.children[session].opened, turn=owner.state.children[session].opened.turn + 1)
        root = _root(owner)
        self._opening.setdefault(root, []).append(opened.name)
        try:
            op = self._checks.waking(session, owner, opened)
            child = await self._engine.open_child(op)
            await self.restore(child)
            self._engine.queue(parent).take_reports()  # the last end is told before another one can come
            return await self._begin(child, owner, opened, SendMessage(session, text))
        except CodeWhaleError as error:
            raise ToolError("execution_failed", f"The sub-agent {opened.name} could not go on: {error}") from error
        finally:
            self._opening[root].remove(opened.name)

    async def stop(self, parent: str, name: str) -> ChildView:
        session = self._named(parent, name)
        await self._stop([session])
        return self._stands(self._engine.session(parent), session)

    async def release(self, parent: str, name: str) -> ChildView:
        if self.view(parent, name).over:
            self._engine.queue(parent).take_reports()  # a result outlives its name, whatever becomes of this call
        view = await self.stop(parent, name)
        owner = self._engine.session(parent)
        owner.emit(ChildReleased(view.session))
        self._engine.queue(parent).nudge()
        self._ended.pop(view.session, None)
        return view

    async def stop_all(self, parent: str) -> int:
        """Stop every child of a session; how many ran."""
        running = [session for session, one in self._running.items() if one.owner.id == parent]
        await self._stop(running)
        return len(running)

    async def _stop(self, sessions: Iterable[str]) -> None:
        running = [self._running[session] for session in sessions if session in self._running]
        owned = [session for one in running for session in self._engine.owned(one.session.id)]
        below = [one for one in self._running.values() if one.session in owned]
        for one in (*below, *running):
            one.stopped = True
            with contextlib.suppress(SessionError):
                self._engine.interrupt(one.session.id, "stopped")
        waits = [asyncio.ensure_future(one.over.wait()) for one in (*below, *running)]
        if waits:
            await asyncio.wait(waits, timeout=_STOP_SECONDS * 2)
            for wait in waits:
                wait.cancel()

    # ------------------------------------------------------------------ an earlier process

    async def restore(self, owner: Session) -> None:
        """Let a session that is opened again be told, at its next turn, of the ends that it does not know of."""
        for session, state in list(owner.state.children.items()):
            if state.reported or session in self._running:
                continue
            view, accounts, work = await asyncio.to_thread(self._from_log, session, state, owner)
            self._end(owner, view, accounts, work, wake=False)

    async def _forget(self, session: str) -> None:
        """A session closes: those that worked for it have been closed before it."""
        for one in [one for one in self._running.values() if session in (one.owner.id, one.session.id)]:
            if one.owner.id == session and one.watch is not None:
                await asyncio.wait([one.watch], timeout=_STOP_SECONDS)


def _root(session: Session) -> str:
    return (session.id, *session.owners)[-1]


def _used(accounts: Accounts) -> dict[str, Any]:
    """What the last task of a child has used."""
    sums = accounts.with_children({}, turn=True)
    one = sums.as_one()
    return {
        "steps": accounts.turn.calls, "tokens": one.input + one.output, "cached": one.cache_hit, "cost": one.cost,
        "currency": one.currency,
    }  # fmt: skip
