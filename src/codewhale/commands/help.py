"""The /help command: every other one, read from the registry."""

from collections.abc import Callable, Sequence

from codewhale.commands.base import CommandContext, CommandSpec, command
from codewhale.protocol.ops import CommandOutput


class HelpCommand:
    """/help."""

    def __init__(self, specs: Callable[[], Sequence[CommandSpec]]) -> None:
        self._specs = specs

    @command("/help", "[COMMAND]")
    async def help(self, args: str, context: CommandContext) -> CommandOutput:
        """List the commands, or show one."""
        wanted = args if args.startswith("/") or not args else f"/{args}"
        specs = [spec for spec in self._specs() if not wanted or spec.name == wanted]
        if not specs:
            return CommandOutput(f"Unknown command {wanted}; /help lists all.", ok=False)
        width = max(len(f"{spec.name} {spec.usage}") for spec in specs)
        return CommandOutput("\n".join(f"{f'{spec.name} {spec.usage}':<{width}}  {spec.summary}" for spec in specs))
