"""/new and /clear: a session to begin afresh with; the old one stays as it is."""

from collections.abc import Awaitable, Callable

from codewhale.commands.base import CommandContext, command
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput, OpenSession
from codewhale.protocol.ports import SessionControl


class NewCommands:
    """/new, /clear. `open_session(op)` opens one and gives its id."""

    def __init__(self, control: SessionControl, open_session: Callable[[OpenSession], Awaitable[str]]) -> None:
        self._control = control
        self._open = open_session

    @command("/new")
    async def new(self, args: str, context: CommandContext) -> CommandOutput:
        """Begin a new session here, with the same mode and model; /sessions still lists this one."""
        now = self._control.status(context.session)
        op = OpenSession(
            now.workspace, now.mode, now.authority, now.provider, now.model, effort=now.effort, approval=now.approval
        )
        try:
            session = await self._open(op)
        except CodeWhaleError as error:
            return CommandOutput(f"No new session was begun: {error}", ok=False)
        text = f"A new session: {session}. The former one is kept: {context.session}."
        return CommandOutput(text, session=session)

    @command("/clear")
    async def clear(self, args: str, context: CommandContext) -> CommandOutput:
        """Begin with an empty conversation: the same as /new."""
        cleared: CommandOutput = await self.new(args, context)
        return cleared
