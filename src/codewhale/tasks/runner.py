"""One task at work: its conversation is opened or taken up, told what it must know, and followed to its end."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.journal.model import JournalError, Lease, LeaseLost, Run, RunJournal, RunState
from codewhale.lib import failpoints
from codewhale.lib.text import fenced, one_line
from codewhale.protocol.errors import CodeWhaleError, SessionBusyError, SessionError
from codewhale.protocol.events import AttemptRecorded, CallFinished, Envelope, Event, GateRecorded, TurnFinished
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import CloseSession, Interrupt, OpenSession, SendMessage
from codewhale.protocol.requests import Op
from codewhale.protocol.tasks import TASK_KIND
from codewhale.session.store import SessionStore
from codewhale.tasks.book import RESUMED
from codewhale.tasks.conversation import OWN_EVENTS, ending, read_conversation
from codewhale.tasks.model import TaskError, spec_of

T = TypeVar("T")
GO_ON = "Go on with the task."


class Conversations(Protocol):
    """Where conversations are held."""

    async def submit(self, op: Op[T], /) -> T: ...
    def events(
        self, session: str, from_seq: int = 0, durable: bool = True, owned: bool = False
    ) -> AsyncIterator[Envelope]: ...


class TaskParts(Struct, frozen=True):
    """What a task is run with. `creator_mode(session)` is how far the session that made it may go now."""

    journal: RunJournal
    sessions: SessionStore
    client: Conversations
    creator_mode: Callable[[str], Mode]
    lease_seconds: float


class TaskRunner:
    """Runs one claimed task. `session` is its conversation, "" before it is open."""

    def __init__(self, parts: TaskParts, run: Run, lease: Lease) -> None:
        self._parts = parts
        self._run = run
        self._spec = spec_of(run)
        self.lease = lease
        self.session = ""
        self.lost = False
        self._stopping = ""  # why its turn was stopped: "cancelled", "leaving"

    def may(self) -> Mode:
        """The mode that its calls are bound by."""
        creator = self._spec.creator
        return self._parts.creator_mode(creator) if creator else self._spec.mode

    async def work(self, opened: Callable[[str], None]) -> Run | None:
        """Run it to its end and record what came of it; None where that is not this process's to record any more.
        `opened(session)` is told of the conversation."""
        beating = asyncio.create_task(self._beat(), name=f"lease {self._run.id}")
        try:
            state, result = await self._attempt(opened)
            if self.lost:
                return None
            failpoints.hit("task.ended")
            try:
                return await asyncio.to_thread(self._parts.journal.runs.end, self.lease, state, result)
            except JournalError as error:
                if not (isinstance(error, LeaseLost) or self._parts.journal.gone):
                    raise
                return None
        finally:
            beating.cancel()
            if self.session:
                with contextlib.suppress(CodeWhaleError):
                    await self._parts.client.submit(CloseSession(self.session))

    async def cancel(self) -> None:
        """Its end is asked for."""
        if not self._stopping:
            self._stopping = "cancelled"
            await self._interrupt()

    async def leave(self) -> None:
        """The process ends: stop the task in order, so that it can be gone on with."""
        self._stopping = self._stopping or "leaving"
        await self._interrupt()

    # ------------------------------------------------------------------ the lease

    async def _beat(self) -> None:
        """Extend the lease until it is lost, and hear whether the task's end is wanted."""
        extended, seconds = monotonic(), self._parts.lease_seconds
        while not self.lost:
            await asyncio.sleep(seconds / 3)
            failpoints.hit("task.beat")
            begun = monotonic()
            try:
                run, self.lease = await asyncio.to_thread(self._parts.journal.runs.beat, self.lease, seconds)
            except JournalError as error:
                if isinstance(error, LeaseLost) or monotonic() - extended >= seconds:
                    self.lost = True
                    await self._interrupt()
            else:
                extended = begun
                if run.stop:
                    await self.cancel()

    async def _interrupt(self) -> None:
        if self.session:
            with contextlib.suppress(CodeWhaleError):
                await self._parts.client.submit(Interrupt(self.session))

    # ------------------------------------------------------------------ an attempt

    async def _attempt(self, opened: Callable[[str], None]) -> tuple[RunState, dict[str, object]]:
        failpoints.hit("task.claimed")
        try:
            known = await asyncio.to_thread(read_conversation, self._parts.sessions, self._spec.session)
            left = tuple(dict.fromkeys((*self._spec.left, *(known.unfinished if known is not None else ()))))
            done = ending(known) if known is not None and not self._spec.left else None
            if done is not None and done[0] == "completed":
                return done  # the record of its end was lost, not the end
            self._in_place()
            self.session = await self._open()
            opened(self.session)
            failpoints.hit("task.opened")
            data = {**self._run.data, "session": self.session, "left": []}
            await asyncio.to_thread(self._parts.journal.runs.change, self.lease, data)
            return await self._turn(left, first=known is None or not known.prompt)
        except LeaseLost:
            self.lost = True
            return "interrupted", {}
        except CodeWhaleError as error:
            return "failed", {"error": str(error)}
        except Exception as error:  # a fault of ours is told, and keeps nobody waiting for a lease to end
            return "failed", {"error": f"CodeWhale itself failed ({type(error).__name__}: {error})"}

    def _in_place(self) -> None:
        """Raises TaskError where its folder is not the one that it was made for."""
        folder = self._spec.workspace
        if os.path.isdir(folder) and os.path.realpath(folder) == folder:
            return
        how = "is a link by now" if os.path.isdir(folder) else "was moved or deleted"
        raise TaskError(
            f"`workspace`: {one_line(folder)} {how}, so nothing was done in it. Put it back, then let the task go on: "
            f"codewhale tasks resume {self._run.id}",
            "workspace",
        )

    async def _open(self) -> str:
        """Its conversation: taken up where there is one, copied where another process still holds it."""
        op, spec = self._opening(), self._spec
        if spec.session:
            try:
                return await self._parts.client.submit(replace(op, resume=spec.session))
            except SessionBusyError:
                return await self._parts.client.submit(replace(op, fork=spec.session))
            except SessionError:
                if not os.path.isdir(spec.workspace):
                    raise
        return await self._parts.client.submit(op)

    def _opening(self) -> OpenSession:
        spec = self._spec
        mode = min(spec.mode, self.may(), key=list(Mode).index)
        alone = spec.auto_approve
        return OpenSession(
            workspace=spec.workspace,
            mode=mode,
            authority=Authority.AUTO if alone else Authority.HEADLESS,
            approval=Approval.AUTO if alone else Approval.SUGGEST,
            provider=spec.provider,
            model=spec.model,
            effort=spec.effort,
            limits=spec.limits,
            kind=TASK_KIND,
            name=self._run.id,
            folders=tuple(one for one in spec.folders if os.path.isdir(one) and os.path.realpath(one) == one),
            scope=spec.scope,
        )

    async def _turn(self, left: tuple[str, ...], first: bool) -> tuple[RunState, dict[str, object]]:
        follower = asyncio.create_task(self._follow(), name=f"task {self._run.id}")
        try:
            await asyncio.sleep(0)  # it listens from here on
            text = self._spec.prompt if first else GO_ON
            await self._parts.client.submit(SendMessage(self.session, text, self._about(left, first)))
            if self._stopping or self.lost:
                await self._interrupt()
            end = await follower
        finally:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
        answer = str(end.result.get("answer", "")).strip()
        if end.status == "done":
            return "completed", {"answer": answer}
        if end.status == "interrupted":
            if self._stopping == "cancelled":
                return "cancelled", {"answer": answer, "error": "Its end was asked for."}
            return "interrupted", {"answer": answer, "error": f"The process that worked at it was stopped. {RESUMED}"}
        return "failed", {"answer": answer, "error": end.reason or f"It ended with status {end.status}."}

    def _about(self, left: tuple[str, ...], first: bool) -> str:
        """What the model is told beside the prompt: which attempt this is, and what the former one left."""
        about = f"This is attempt {self._run.attempt} of the durable task {self._run.id}. Nobody can be asked."
        if first and self._run.attempt == 1:
            return about
        about += " A former attempt did not finish; look at what it has done before you go on."
        if left:
            about += " These had begun and not ended, and may be half done; check each before you do it again:\n"
            about += fenced("\n".join(left))
        return about

    async def _follow(self) -> TurnFinished:
        """The end of the turn; meanwhile what tools write into the task is put there."""
        async for envelope in self._parts.client.events(self.session, -1, owned=True):
            event = envelope.event
            if envelope.session != self.session:  # a sub-agent's; what its own log says, the task's history shows
                await self._write(envelope.session, event)
            if isinstance(event, TurnFinished) and envelope.session == self.session:
                return event
        raise SessionError("its conversation was closed before its turn had ended")

    async def _write(self, session: str, event: Event) -> None:
        """Put what a tool of a sub-agent wrote into the task into its row."""
        updates: dict[str, object] = {}
        match event:
            case GateRecorded(gate=gate, call_id=call):
                updates = {"gate": msgspec.to_builtins(gate)}
            case AttemptRecorded(attempt=attempt, call_id=call):
                updates = {"attempt": msgspec.to_builtins(attempt)}
            case CallFinished(call_id=call, metadata={"task_updates": dict() as written}):
                updates = {str(kind): value for kind, value in written.items() if kind not in OWN_EVENTS}
        for kind, value in updates.items():
            with contextlib.suppress(JournalError):  # the sub-agent's own log says it, too
                note, key = self._parts.journal.ledger.note, f"{session}:{call}:{kind}"
                await asyncio.to_thread(note, self._run.id, kind, {"value": value}, key, self.lease)
