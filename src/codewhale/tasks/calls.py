"""What stands between a task and its calls: each that changes things is written down before it begins, by the lease
under which it runs, and none goes beyond what the task's creator may at that moment."""

import asyncio
from collections.abc import Callable

from codewhale.journal.model import Data, JournalError, Lease, RunJournal
from codewhale.lib import failpoints
from codewhale.lib.text import one_line
from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import Effect, ToolResult

_ARGUMENTS = 400


def changes(call: CallView) -> bool:
    """Whether a call may leave something behind."""
    return bool({Effect.WRITES, Effect.EXECUTES}.intersection(call.effects))


class TaskCalls:
    """Watches the calls of one task, and of the sub-agents that work for it. `may()` is the mode of its creator now."""

    def __init__(self, journal: RunJournal, lease: Callable[[], Lease], may: Callable[[], Mode]) -> None:
        self._journal = journal
        self._lease = lease
        self._may = may

    async def judge(self, call: CallView) -> Opinion | None:
        """What the creator's mode says of it."""
        if changes(call) and await asyncio.to_thread(self._may) is Mode.PLAN:
            return Opinion(
                "deny",
                "task.creator",
                "The session that created this task is in plan mode now, and a task never does more than its creator "
                "may. Go on without it; what should be done, say in your answer.",
            )
        return None

    async def before(self, call: CallView) -> str | None:
        """Write down that it begins, under a lease that holds."""
        if not changes(call):
            return None
        about = {"tool": call.tool, "arguments": one_line(str(call.arguments), _ARGUMENTS)}
        try:
            intend = self._journal.ledger.intend
            await asyncio.to_thread(intend, self._lease(), _key(call), {**about, "session": call.session})
        except JournalError as error:
            return f"This process does not have the task any more ({error}), so the call does not run."
        failpoints.hit("task.intent")
        return None

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        """Write down that it has ended."""
        if changes(call):
            failpoints.hit("task.result")
            ended: Data = {"ok": result is not None and result.ok}
            settled = asyncio.to_thread(self._journal.ledger.settled, self._lease(), _key(call), ended)
            try:
                await asyncio.shield(settled)
            except JournalError:
                return None  # the lease is another's by now, who knows that this may be half done
        return None


def _key(call: CallView) -> str:
    return f"{call.session}:{call.call_id}"
