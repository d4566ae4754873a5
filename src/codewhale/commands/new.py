"""/new, /clear and /fork: a session to begin afresh with, or a copy of this one; the old one stays as it is."""

from collections.abc import Awaitable, Callable

from codewhale.commands.base import CommandContext, command
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput, OpenSession
from codewhale.protocol.ports import SessionControl


class NewCommands:
    """/new, /clear, /fork. `open_session(op)` opens one and gives its id."""

    def __init__(self, control: SessionControl, open_session: Callable[[OpenSession], Awaitable[str]]) -> None:
        self._control = control
        self._open = open_session

    @command("/new")
    async def new(self, args: str, context: CommandContext) -> CommandOutput:
        """Start a new session with the same mode and model; /sessions still lists this one."""
        now = self._control.status(context.session)
        op = OpenSession(
            now.workspace, now.mode, now.authority, now.provider, now.model, effort=now.effort, approval=now.approval
        )
        return await self._opened(op, context)

    @command("/fork")
    async def fork(self, args: str, context: CommandContext) -> CommandOutput:
        """Fork this session and continue in the fork."""
        now = self._control.status(context.session)
        op = OpenSession(
            now.workspace, now.mode, now.authority, fork=context.session, effort=now.effort, approval=now.approval
        )
        return await self._opened(op, context, "A copy of this session")

    async def _opened(self, op: OpenSession, context: CommandContext, what: str = "A new session") -> CommandOutput:
        try:
            session = await self._open(op)
        except CodeWhaleError as error:
            return CommandOutput(f"No session was begun: {error}", ok=False)
        return CommandOutput(f"{what}: {session}. The previous session is saved: {context.session}.", session=session)

    @command("/clear")
    async def clear(self, args: str, context: CommandContext) -> CommandOutput:
        """Start with an empty conversation; same as /new."""
        cleared: CommandOutput = await self.new(args, context)
        return cleared
