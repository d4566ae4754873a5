"""/relay: what this session leaves to the next one."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput

LONGEST = 2_000


class RelayFile(Protocol):  # both answer with what to say of it
    def write(self, session: str, focus: str, /) -> Awaitable[str]: ...
    def read(self, session: str, /) -> Awaitable[str]: ...


class RelayCommand:
    """/relay, /batonpass and /接力."""

    def __init__(self, relays: Callable[[], RelayFile]) -> None:
        self._relays = relays

    @command("/relay", "[FOCUS|read]")
    async def relay(self, args: str, context: CommandContext) -> CommandOutput:
        """Write .codewhale/handoff.md for the next session, with FOCUS in detail; read gives it to this one."""
        if len(args) > LONGEST:
            return misuse(f"A focus may have {LONGEST:,} characters; this one has {len(args):,}.")
        relays = self._relays()
        try:
            text = await (relays.read(context.session) if args == "read" else relays.write(context.session, args))
        except CodeWhaleError as error:
            return CommandOutput(f"No relay: {error}", ok=False)
        return CommandOutput(text)

    @command("/batonpass", "[FOCUS|read]")
    async def batonpass(self, args: str, context: CommandContext) -> CommandOutput:
        """The same as /relay."""
        output: CommandOutput = await self.relay(args, context)
        return output

    @command("/接力", "[FOCUS|read]")
    async def jieli(self, args: str, context: CommandContext) -> CommandOutput:
        """与 /relay 相同。"""
        output: CommandOutput = await self.relay(args, context)
        return output
