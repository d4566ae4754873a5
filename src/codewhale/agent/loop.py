"""The turn: ask the model, run what it calls, repeat until it answers. The only such loop there is."""

import asyncio
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from codewhale.agent.collect import ModelAnswer, RawCall
from codewhale.agent.context_window import ContextWindow, explain
from codewhale.agent.guard import STOP_AT, LoopGuard
from codewhale.agent.guidance import SkillGuide
from codewhale.agent.incomplete_turn import LOST_CALL, REASONS, TurnAnswers
from codewhale.agent.message_queue import MessageQueue
from codewhale.agent.model_call import ModelCalls
from codewhale.agent.pending_call import ENDED, PendingCall, prepare, unread
from codewhale.agent.refusals import beyond
from codewhale.agent.report import Report, Status
from codewhale.agent.tool_calls import ToolCallRunner
from codewhale.agent.turn import Turn
from codewhale.catalog.registry import Catalog
from codewhale.protocol.errors import StorageFullError
from codewhale.protocol.events import MessageAdded, RepairRecorded
from codewhale.protocol.messages import Message
from codewhale.protocol.modes import Authority
from codewhale.protocol.stream import Retrying
from codewhale.session.budget import BudgetExceeded

MOST_CALLS = 64  # of one answer that run
CHILDREN = "sub-agents"  # how what a turn waits for begins where it waits for them


class Ending(Struct, frozen=True):
    """Why a turn is over; `reason` is told to the person when the status is not done."""

    status: Status
    reason: str = ""


class AgentLoop:
    """Drives one turn."""

    def __init__(
        self,
        turn: Turn,
        queue: MessageQueue,
        catalog: Catalog,
        runner: ToolCallRunner,
        window: ContextWindow,
        guide: SkillGuide,
    ) -> None:
        self.report = Report(turn.session)
        self._turn = turn
        self._session = turn.session
        self._queue = queue
        self._calls = ModelCalls(turn)
        self._catalog = catalog
        self._runner = runner
        self._window = window
        self._guide = guide
        self._guard = LoopGuard()
        self._answers = TurnAnswers(turn, catalog, runner)
        self._said = ""

    async def run(self) -> Ending:
        """Run to the end. Cancellation leaves through here; see `salvage`."""
        texts = [self._turn.asked]
        while True:
            self._turn.check()
            for text in (*texts, *self._queue.take_steers(self._turn)):
                await self._guide.hear(self._session, text)
            texts = []
            answer = await self._ask()
            if isinstance(answer, Ending):
                return answer
            answer = self._answers.with_calls(answer)
            prepared = self._accept(answer)
            ending = await self._run_calls(prepared) if prepared else self._judge(answer)
            if ending is not None and not await self._children_go_on(ending):
                return ending

    async def _children_go_on(self, ending: Ending) -> bool:
        """Where no person is there to go on, wait for the next end of a child that the conversation does not hold."""
        session = self._session
        alone = session.state.owner or session.rights.authority is not Authority.PERSON
        if ending.status not in ("done", "denied") or not alone:
            return False
        while not self._queue.steers_wait:
            names = [one.opened.name for one in session.state.children.values() if not one.reported]
            if not names:
                return False
            self._turn.waiting_for = f"{CHILDREN} {', '.join(names)}"
            await self._queue.changed()
            self._turn.waiting_for = ""
        return True

    # ------------------------------------------------------------------ the model

    async def _ask(self) -> ModelAnswer | Ending:
        """The model's answer. What is too long for it is made shorter first, and again where it was refused as such."""
        while True:
            try:
                await self._window.make_room(self._calls)
                answer = await self._calls.ask()
                failure = answer.failure
                if failure is None:
                    return answer
                if failure.kind == "lost_call":
                    said = tuple(item for item in answer.items if not isinstance(item, RawCall))
                    return msgspec.structs.replace(answer, items=said, failure=None, finish=LOST_CALL)
                too_long = failure.kind == "context_length" and not failure.started
                if not too_long or not await self._window.overflowed(self._calls, failure):
                    return self._failed(answer)
            except BudgetExceeded as over:
                return Ending("budget", f"Stopped before the next model call: {over}. The session can be resumed.")

    def _failed(self, answer: ModelAnswer) -> Ending:
        failure = answer.failure
        assert failure is not None
        if failure.retryable and failure.started:
            self._calls.drop(answer, Retrying(0, 0, 0.0, failure.message, True))
        else:
            self._keep_partial(answer, failure.kind)
        return Ending("infra" if failure.retryable else "failed", explain(self._session, failure, self._window.now))

    def _keep_partial(self, answer: ModelAnswer, finish: str) -> None:
        """What was streamed before the person or the provider stopped it stays in the conversation; its unfinished
        calls do not."""
        self._answers.show(answer)
        if answer.text.strip():
            self._session.emit(MessageAdded(Message("assistant", answer.parts(())), finish, answer.thought))
            self.report.answer = answer.text

    def salvage(self) -> None:
        """After a cancellation: keep what was streamed and settle what was held."""
        answer = self._calls.salvage()
        if answer is not None and not self._window.asking:
            self._keep_partial(answer, "interrupted")

    def _accept(self, answer: ModelAnswer) -> list[PendingCall]:
        self._said = answer.text
        cut = answer.finish == "length"
        used = self._session.state.call_ids
        shown = self._session.state.shown
        prepared: list[PendingCall] = []
        fresh: set[str] = set()
        for came in answer.calls:
            # Of a call in text the finish says nothing: its own marks tell whether it is whole.
            raw = msgspec.structs.replace(came, ended=answer.finish in ENDED and not came.code)
            call_id = raw.id
            if not call_id or call_id in used or call_id in fresh:
                call_id = f"call_{self._session.state.last_call + len(fresh) + 1}"
                while call_id in used or call_id in fresh:
                    call_id += "x"
            runs = len(fresh) < MOST_CALLS
            fresh.add(call_id)
            prepared.append(
                prepare(raw, call_id, self._catalog, cut, self._runner.repairer, shown)
                if runs
                else unread(raw, call_id)
            )
        parts = answer.parts([item.call for item in prepared])
        if parts:
            self._session.emit(MessageAdded(Message("assistant", parts), answer.finish, answer.thought))
        for item in prepared:
            if item.repairs:
                call = item.call
                self._session.emit(RepairRecorded(call.id, item.repairs, item.lossy, call.name, call.arguments))
        return prepared

    def _judge(self, answer: ModelAnswer) -> Ending | None:
        """What an answer without calls means for the turn; None to go on."""
        if self._queue.steers_wait:
            return None
        short, goes_on = self._answers.lacks(answer)
        if goes_on:
            return None
        self.report.answer = self._answers.answer(answer)
        if short:
            return Ending("failed", f"The model {REASONS[short]}, even after a reminder.")
        if self.report.denied:
            return Ending("denied", self.report.denied)
        return Ending("failed", "The answer hit its length limit.") if answer.finish == "length" else Ending("done")

    # ------------------------------------------------------------------ the calls

    async def _run_calls(self, prepared: list[PendingCall]) -> Ending | None:
        end_turn = False
        for batch in _batches(prepared[:MOST_CALLS]):
            await self._run_batch(batch)
            self._answers.note(self._said, batch)
            end_turn = end_turn or any(call.end_turn for call in batch)
            worst = max(batch, key=lambda call: call.repeats)
            if worst.repeats >= STOP_AT:
                self._session.close_calls("")
                return Ending(
                    "failed", f"Stopped: {worst.name} was called {worst.repeats} times with the same outcome."
                )
        if len(prepared) > MOST_CALLS:
            self._refuse(prepared[MOST_CALLS:])
        if end_turn:
            self.report.answer = self._said
            return Ending("done")
        await self._guide.after(self._session, prepared)
        return None

    def _refuse(self, calls: list[PendingCall]) -> None:
        self._session.emit(*beyond([item.call for item in calls], MOST_CALLS))
        for item in calls:
            self.report.add(item, item.call.sent_name)

    async def _run_batch(self, batch: list[PendingCall]) -> None:
        """Run calls side by side (a batch of one runs alone) and record them in their order. What ends while the turn
        is being cancelled is recorded too: a write that was under way has happened."""
        self._turn.waiting_for = batch[0].name if len(batch) == 1 else f"{len(batch)} tools"
        tasks = [asyncio.create_task(self._runner.run(self._turn, item, self._guard)) for item in batch]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=2.0)
            for item, task in zip(batch, tasks, strict=True):
                if task.done() and not task.cancelled() and task.exception() is None:
                    self._emit_outcome(item)
            raise
        failures = [task.exception() for task in tasks]
        for item, failure in zip(batch, failures, strict=True):
            if failure is None:
                await self._record(item)
        for failure in filter(None, failures):
            raise failure

    async def _record(self, item: PendingCall) -> None:
        self._emit_outcome(item)
        if item.spec is not None and item.spec.touches:
            await self._session.barrier()
        else:
            self._session.log.sync_soon()

    def _emit_outcome(self, item: PendingCall) -> None:
        try:
            self._session.emit(*item.events)
        except StorageFullError:
            # The call has run and the refusal made room: its result is recorded before the turn ends.
            self._session.emit(*item.events)
            self.report.add(item)
            raise
        self._turn.waiting_for = ""
        self.report.add(item)


def _batches(prepared: list[PendingCall]) -> Iterator[list[PendingCall]]:
    """Neighbouring calls that may run side by side together, every other one alone, in order."""
    batch: list[PendingCall] = []
    for item in prepared:
        parallel = item.error is None and item.spec is not None and item.spec.parallel
        if batch and not parallel:
            yield batch
            batch = []
        batch.append(item)
        if not parallel:
            yield batch
            batch = []
    if batch:
        yield batch
