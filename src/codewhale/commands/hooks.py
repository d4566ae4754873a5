"""/hooks: the commands that run at moments of a session."""

from typing import Protocol

from codewhale.commands.base import CommandContext, command
from codewhale.lib.text import one_line
from codewhale.protocol.ops import CommandOutput
from codewhale.services.hooks import Hooks
from codewhale.services.hooks.config import Condition


class HooksOf(Protocol):
    """Where the hooks of a workspace are."""

    def at(self, workspace: str) -> Hooks | None:
        """Them, None where there is not one."""
        ...


class HooksCommand:
    """/hooks."""

    def __init__(self, hooking: HooksOf) -> None:
        self._hooking = hooking

    @command("/hooks")
    async def hooks(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the active hooks, and the ignored ones with the reason."""
        found = self._hooking.at(context.workspace)
        hooks, ignored = ((), ()) if found is None else found.at(context.workspace)
        lines = [
            f"{hook.event:<17} {hook.name}: {one_line(hook.command, 120)}"
            f"  [{_when(hook.condition)}; {hook.sandbox}{' with network' if hook.network else ''}; {hook.seconds:g} s"
            f"{'; background' if hook.background else ''}; {hook.origin}]"
            for hook in hooks
        ]
        return CommandOutput("\n".join((*lines, *ignored)) or "No hooks.")


def _when(condition: Condition) -> str:
    if condition.parts:
        return f"{condition.kind} of {', '.join(map(_when, condition.parts))}"
    return "always" if condition.kind == "always" else f"{condition.kind} {condition.value}"
