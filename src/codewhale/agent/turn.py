"""One turn of a session, or a compaction in place of one: its state, its task, what it waits for and why it stops."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import TypeVar

from codewhale.session.session import Session

_T = TypeVar("_T")


class TurnState(StrEnum):
    """How far a turn has come. `STOPPING`: it was told to stop, and what was under way is wound up. `ENDING`: its
    work is over and its end is being recorded; a message sent now begins the next turn."""

    READY = "ready"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDING = "ending"
    OVER = "over"


_NEXT = {
    TurnState.READY: (TurnState.RUNNING, TurnState.STOPPING, TurnState.ENDING),
    TurnState.RUNNING: (TurnState.STOPPING, TurnState.ENDING),
    TurnState.STOPPING: (TurnState.ENDING,),
    TurnState.ENDING: (TurnState.OVER,),
    TurnState.OVER: (),
}


class Turn:
    """`asked` is what the person said last in it, `effort` how hard the model thinks; `goes_on` says that the next
    queued message begins although this turn was stopped."""

    def __init__(self, session: Session, asked: str = "", effort: str = "") -> None:
        self.session = session
        self.asked = asked
        self.effort = effort
        self.state = TurnState.READY
        self.stop_reason = ""
        self.goes_on = False
        self.waiting = ("", 0.0)
        self._task: asyncio.Task[object] | None = None

    def _move(self, state: TurnState) -> None:
        if state not in _NEXT[self.state]:
            raise RuntimeError(f"a turn that is {self.state} cannot become {state}")
        self.state = state

    # ------------------------------------------------------------------ what it does

    def start(self, work: Callable[[], Coroutine[object, object, _T]], name: str) -> asyncio.Task[_T]:
        """Run `work` as the turn's task."""

        async def run() -> _T:
            if self.state is TurnState.READY:
                self._move(TurnState.RUNNING)
            return await work()

        task = asyncio.create_task(run(), name=f"{name} {self.session.id}")
        self._task = task
        return task

    def check(self) -> None:
        """Raises CancelledError where the turn was told to stop, also before its task ran."""
        if self.stop_reason:
            raise asyncio.CancelledError

    def stop(self, reason: str) -> None:
        """End the turn; `reason` is interrupted or budget. The second time does nothing: it is being wound up."""
        if self._task is None or self._task.done() or self.state not in (TurnState.READY, TurnState.RUNNING):
            return
        begun = self.state is TurnState.RUNNING
        self._move(TurnState.STOPPING)
        self.stop_reason = reason
        if begun:
            self._task.cancel()

    def wind_up(self) -> None:
        """Its work is over: only its end is left to be recorded."""
        self._move(TurnState.ENDING)

    def end(self) -> None:
        """Its end is recorded, or cannot be."""
        self._move(TurnState.OVER)
        self.waiting_for = ""

    # ------------------------------------------------------------------ how it stands

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def winding_up(self) -> bool:
        return self.state in (TurnState.ENDING, TurnState.OVER)

    @property
    def idle(self) -> bool:
        """Whether nothing of it is left to be done but its end to be recorded."""
        return self.winding_up or not self.busy

    @property
    def waiting_for(self) -> str:
        """What it waits for; `waiting` holds since when, too."""
        return self.waiting[0]

    @waiting_for.setter
    def waiting_for(self, what: str) -> None:
        self.waiting = (what, self.session.clock.now() if what else 0.0)

    async def wait(self, seconds: float) -> None:
        """Until its task has ended, for so long at most."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=seconds)
