"""/tools: the array of tools that requests carry."""

from codewhale.commands.base import CommandContext, command, told
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.ports import SessionControl
from codewhale.protocol.views import ToolsView


class ToolsCommand:
    """/tools."""

    def __init__(self, control: SessionControl) -> None:
        self._control = control

    @command("/tools", "[json]")
    async def tools(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the tools that the last request carried, in order, with their bytes."""
        return told("/tools", args, self._control.tools(context.session), _shown)


def _shown(view: ToolsView) -> str:
    when = f"request {view.request}" if view.request else "the first request"
    lines = [f"{len(view.tools)} tools, {view.bytes:,} bytes in {when} (profile {view.profile}, {view.dialect})"]
    for name, size in view.tools:
        lines.append(f"{name:<26}{size:>7,}{'  found in this session' if name in view.activated else ''}")
    return "\n".join(lines)
