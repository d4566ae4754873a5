"""The /effort command: how hard the model thinks."""

from codewhale.commands.base import CommandContext, command
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.ports import SessionControl

_OWN = "default"


class EffortCommand:
    """/effort."""

    def __init__(self, control: SessionControl) -> None:
        self._control = control

    @command("/effort", "[off|low|medium|high|max|auto|default]")
    async def effort(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the reasoning effort, or change it from the next turn on."""
        if args:
            try:
                self._control.set_effort(context.session, "" if args == _OWN else args.lower())
            except CodeWhaleError as error:
                return CommandOutput(str(error), ok=False)
        return CommandOutput(f"effort: {self._control.status(context.session).effort or _OWN}")
