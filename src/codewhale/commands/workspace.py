"""/diff: what the workspace differs in."""

from collections.abc import Awaitable, Callable

from codewhale.commands.base import CommandContext, command
from codewhale.lib.text import sanitise
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput

ROOM = 64_000


class WorkspaceCommands:
    """/diff. `diff(session, workspace, path)` gives a block for each file."""

    def __init__(self, diff: Callable[[str, str, str], Awaitable[tuple[DiffBlock, ...]]]) -> None:
        self._diff = diff

    @command("/diff", "[PATH]")
    async def diff(self, args: str, context: CommandContext) -> CommandOutput:
        """Show changes since the last commit; without git, what the agent changed."""
        try:
            blocks = await self._diff(context.session, context.workspace, args)
        except (CodeWhaleError, ValueError) as error:
            return CommandOutput(f"Nothing to show: {error}", ok=False)
        if not blocks:
            return CommandOutput(f"No differences{f' in {args}' if args else ''}.")
        return CommandOutput(_shown(blocks))


def _shown(blocks: tuple[DiffBlock, ...]) -> str:
    text, room = [], ROOM
    for at, block in enumerate(blocks):
        piece = sanitise(block.diff.rstrip("\n"))
        if len(piece) > room:
            text.append(piece[:room])
            text.append(f"(cut here; {len(blocks) - at - 1} more files differ: /diff PATH shows one)")
            break
        text.append(piece)
        room -= len(piece)
    return "\n".join(text)
