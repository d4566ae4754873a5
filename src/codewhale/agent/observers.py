"""Those who watch calls: they may have an opinion before policy is asked, refuse a call that is about to run, and
add a note to its result. Hooks and snapshots are such; `app` says who watches which call."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.tools import Subject, ToolResult

AFTER_SECONDS = 60.0


class CallObserver(Protocol):
    """Watches calls. Observers are asked one after another, in the order in which they are given; each bounds its own
    time, and none raises."""

    async def judge(self, call: CallView) -> Opinion | None:
        """What it says of a call before policy decides; None for nothing. It is part of the decision."""
        ...

    async def before(self, call: CallView) -> str | None:
        """The call is decided and approved, and runs next: None, or the reason why it must not."""
        ...

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        """The call that `before` saw has ended, without a result when it failed or was cut short: a note for the
        model, put below the result, or None."""
        ...


Observers = Callable[[CallView], Sequence[CallObserver]]


def nobody(call: CallView) -> Sequence[CallObserver]:
    """No observer."""
    return ()


class Watch:
    """The observers of one call. `subjects` are those of other arguments, or a ToolError where they do not fit."""

    def __init__(
        self,
        observers: Sequence[CallObserver],
        call: CallView,
        subjects: Callable[[dict[str, Any]], tuple[Subject, ...]],
    ) -> None:
        self.call = call
        self._observers = observers
        self._subjects = subjects
        self._notes: list[str] = []
        self._begun: list[CallObserver] = []

    async def judge(self) -> tuple[Opinion, ...]:
        """Every opinion. What one puts in place of the arguments is what the next one sees."""
        said = []
        for observer in self._observers:
            opinion = await observer.judge(self.call)
            if opinion is None:
                continue
            said.append(opinion)
            self._notes += [opinion.context] if opinion.context else []
            if opinion.arguments is not None:
                subjects = self._subjects(opinion.arguments)
                self.call = replace(self.call, arguments=opinion.arguments, subjects=subjects)
        return tuple(said)

    async def before(self) -> str:
        """Why the call must not run after all, "" when it may. Those that saw it begin are told of its end then."""
        for observer in self._observers:
            self._begun.append(observer)
            reason = await observer.before(self.call)
            if reason:
                await self._end(None)
                return reason
        return ""

    async def around(self, work: Awaitable[ToolResult]) -> ToolResult:
        """The work's result with the observers' notes. Its errors, and a cancellation, pass through once every
        observer has seen the end."""
        if not self._begun and not self._notes:
            return await work
        try:
            result = await work
        except BaseException:
            await asyncio.shield(self._end(None))
            raise
        notes = self._notes + await self._end(result)
        return replace(result, content="\n\n".join((result.content, *notes))) if notes else result

    async def _end(self, result: ToolResult | None) -> list[str]:
        notes = []
        while self._begun:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AFTER_SECONDS):
                    notes.append(await self._begun.pop().after(self.call, result))
        return [note for note in notes if note]
