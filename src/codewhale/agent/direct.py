"""Calls that no model made. Each is prepared, decided, run and recorded like one of a turn, beside whatever the session
does; its events stand in the log without a message that made it."""

import asyncio
from collections.abc import Callable

import msgspec

from codewhale.agent.collect import RawCall
from codewhale.agent.guard import LoopGuard
from codewhale.agent.pending_call import PendingCall, prepare
from codewhale.agent.tool_calls import ToolCallRunner
from codewhale.agent.turn import Turn
from codewhale.catalog.registry import Catalog
from codewhale.protocol.directcalls import RunCall
from codewhale.protocol.errors import SessionError, StorageFullError, ToolError
from codewhale.protocol.events import CallFinished, Event
from codewhale.protocol.tools import Effect
from codewhale.session.session import STOPPED, Session

_STOP_SECONDS = 10.0


class DirectCalls:
    """The calls under way in all open sessions. Those that write files run one at a time in a session."""

    def __init__(self, find: Callable[[str], Session], catalog: Catalog, runner: ToolCallRunner) -> None:
        """`find` gives an open session by its id."""
        self._find = find
        self._catalog = catalog
        self._runner = runner
        self._running: dict[str, set[Turn]] = {}
        self._writing: dict[str, asyncio.Lock] = {}

    async def run(self, op: RunCall) -> PendingCall:
        """The call with its outcome, which is on disk where the call may have had an effect."""
        session = self._find(op.session)
        turn = Turn(session)
        running = self._running.setdefault(op.session, set())
        running.add(turn)
        task = turn.start(lambda: self._in_order(turn, op), "call")
        task.add_done_callback(lambda done: running.discard(turn))
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            turn.stop("interrupted")
            await turn.wait(_STOP_SECONDS)
            raise
        turn.wind_up()
        turn.end()
        if task.cancelled():
            raise SessionError(f"the call of {op.name} was stopped: session {op.session} is being closed")
        return task.result()

    async def end(self, session: str) -> None:
        """Stop the calls of a session that is being closed."""
        turns = list(self._running.pop(session, ()))
        self._writing.pop(session, None)
        for turn in turns:
            turn.stop("interrupted")
        for turn in turns:
            await turn.wait(_STOP_SECONDS)

    async def _in_order(self, turn: Turn, op: RunCall) -> PendingCall:
        call = self._prepared(op)
        if call.spec is None or Effect.WRITES not in call.spec.effects:
            return await self._recorded(turn, call)
        async with self._writing.setdefault(op.session, asyncio.Lock()):
            return await self._recorded(turn, call)

    def _prepared(self, op: RunCall) -> PendingCall:
        raw = RawCall("", op.name, msgspec.json.encode(op.arguments).decode(), ended=True)
        call = prepare(raw, op.call_id, self._catalog, False, self._runner.repairer, (op.name,))
        call.direct = True
        if call.error is None and call.name != op.name:
            text = f"This is a call of {call.name}; call that tool where it is offered. Nothing was run."
            call.error = ToolError("invalid_input", text)
        return call

    async def _recorded(self, turn: Turn, call: PendingCall) -> PendingCall:
        session = turn.session
        try:
            await self._runner.run(turn, call, LoopGuard())
        except asyncio.CancelledError:
            _emit(session, CallFinished(call.id, call.name, False, STOPPED, error="interrupted"))
            raise
        _emit(session, *call.events)
        if call.spec is not None and call.spec.touches:
            await session.barrier()
        return call


def _emit(session: Session, *events: Event) -> None:
    try:
        session.emit(*events)
    except StorageFullError:
        session.emit(*events)  # the call has run, and the refusal made room
