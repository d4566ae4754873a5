"""/new, /clear and /fork: a session to begin afresh with, or a copy of this one; the old one stays as it is."""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from codewhale.commands.base import CommandContext, command
from codewhale.lib.text import one_line
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

    @command("/fork", "[N]")
    async def fork(self, args: str, context: CommandContext) -> CommandOutput:
        """Fork this session and continue in the fork; N is the message (/rewind lists them) to fork before."""
        former = {str(row.turn): row for row in self._control.former(context.session)} if args else {}
        if args and args not in former:
            return CommandOutput(f"No message of this conversation has number {one_line(args, 40)}.", ok=False)
        now = self._control.status(context.session)
        op = OpenSession(
            now.workspace, now.mode, now.authority, fork=context.session, effort=now.effort, approval=now.approval
        )
        opened = await self._opened(op, context, "A copy of this session")
        if args and opened.session:
            row = self._control.rewind(opened.session, former[args].turn, False)
            opened = replace(opened, draft=row.text)
        return opened

    async def _opened(self, op: OpenSession, context: CommandContext, what: str = "A new session") -> CommandOutput:
        try:
            session = await self._open(op)
        except CodeWhaleError as error:
            return CommandOutput(f"No session was started: {error}", ok=False)
        return CommandOutput(f"{what}: {session}. The previous session is saved: {context.session}.", session=session)

    @command("/clear")
    async def clear(self, args: str, context: CommandContext) -> CommandOutput:
        """Start with an empty conversation; same as /new."""
        cleared: CommandOutput = await self.new(args, context)
        return cleared
