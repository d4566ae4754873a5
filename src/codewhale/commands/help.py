"""The /help command: every other one, read from the registry."""

from collections.abc import Awaitable, Callable, Sequence

from codewhale.commands.base import CommandContext, CommandSpec, command, misuse, unknown
from codewhale.protocol.ops import CommandOutput


class HelpCommand:
    """/help."""

    def __init__(self, specs: Callable[[str], Awaitable[Sequence[CommandSpec]]]) -> None:
        self._specs = specs

    @command("/help", "[COMMAND]")
    async def help(self, args: str, context: CommandContext) -> CommandOutput:
        """List the commands, or show one."""
        wanted = args if args.startswith("/") or not args else f"/{args}"
        every = await self._specs(context.workspace)
        specs = [spec for spec in every if not wanted or spec.name == wanted]
        if not specs:
            return misuse(unknown(wanted, [spec.name for spec in every]))
        width = max(len(f"{spec.name} {spec.usage}") for spec in specs)
        return CommandOutput("\n".join(f"{f'{spec.name} {spec.usage}':<{width}}  {spec.summary}" for spec in specs))
