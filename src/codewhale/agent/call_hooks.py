"""Hooks of calls: they may have an opinion before policy is asked, refuse a call that is about to run, and
add a note to its result. A person's hooks and snapshots are such; `app` says which belong to which call."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.tools import BoundCall, ToolResult

AFTER_SECONDS = 60.0


class CallHook(Protocol):
    """Watches calls. Hooks are asked one after another, in the order in which they are given; each bounds its own
    time, and none raises."""

    async def judge(self, call: CallView) -> Opinion | None:
        """What it says of a call before policy decides; None for nothing. It is part of the decision."""

    async def before(self, call: CallView) -> str | None:
        """The call is decided and approved, and runs next: None, or the reason why it must not."""

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        """The call that `before` saw has ended, without a result when it failed or was cut short: a note for the
        model, put below the result, or None."""


HooksOf = Callable[[CallView], Sequence[CallHook]]


def nobody(call: CallView) -> Sequence[CallHook]:
    """No hook."""
    return ()


class CallHooks:
    """The hooks of one call. `bind` makes the call of other arguments, or raises ToolError where they do not fit."""

    def __init__(
        self,
        hooks: HooksOf,
        call: CallView,
        bind: Callable[[dict[str, object]], BoundCall],
    ) -> None:
        self.call = call
        self._hooks = hooks(call)
        self._bind = bind
        self._notes: list[str] = []
        self._begun: list[CallHook] = []

    async def judge(self) -> tuple[Opinion, ...]:
        """Every opinion. What one puts in place of the arguments is what the next one sees."""
        opinions = []
        for hook in self._hooks:
            opinion = await hook.judge(self.call)
            if opinion is None:
                continue
            opinions.append(opinion)
            self._notes += [opinion.context] if opinion.context else []
            if opinion.arguments is not None:
                subjects = self._bind(opinion.arguments).subjects
                self.call = replace(self.call, arguments=opinion.arguments, subjects=subjects)
        return tuple(opinions)

    async def before(self) -> str:
        """Why the call must not run after all, "" when it may. Those that saw it begin are told of its end then."""
        for hook in self._hooks:
            self._begun.append(hook)
            reason = await hook.before(self.call)
            if reason:
                await self._end(None)
                return reason
        return ""

    async def around(self, work: Awaitable[ToolResult]) -> ToolResult:
        """The work's result with the hooks' notes. Its errors, and a cancellation, pass through once every
        hook has seen the end."""
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
