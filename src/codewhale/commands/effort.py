"""The /effort command: how hard the model thinks."""

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.ports import SessionControl

_LEVELS = ("off", "low", "medium", "high", "max", "auto")
_OWN = "default"


class EffortCommand:
    """/effort."""

    def __init__(self, control: SessionControl) -> None:
        self._control = control

    @command("/effort", f"[{'|'.join((*_LEVELS, _OWN))}]")
    async def effort(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the reasoning effort, or change it from the next turn on."""
        if args:
            if args.lower() not in (*_LEVELS, _OWN):
                return misuse(f"Unknown effort {args!r}; choose one of {', '.join((*_LEVELS, _OWN))}.")
            try:
                self._control.set_effort(context.session, "" if args == _OWN else args.lower())
            except CodeWhaleError as error:
                return CommandOutput(str(error), ok=False)
        return CommandOutput(f"effort: {self._control.status(context.session).effort or _OWN}")
