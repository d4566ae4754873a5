"""/agents: the sub-agents of a session as a person sees them, ended and written to."""

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import one_line
from codewhale.protocol.children import ChildView, ListChildren, StopChild, TellChild
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.requests import Ask, Do

USAGE = "Use /agents [list], /agents show NAME, /agents stop NAME or /agents tell NAME TEXT."


class AgentsCommand:
    """/agents."""

    def __init__(self, ask: Ask, do: Do) -> None:
        self._ask = ask
        self._do = do

    @command("/agents", "[list | show NAME | stop NAME | tell NAME TEXT]")
    async def agents(self, args: str, context: CommandContext) -> CommandOutput:
        """List the sub-agents of this session, show what one came to, stop one or send it a message."""
        verb, name, text = (*args.split(maxsplit=2), "", "", "")[:3]
        views = await self._ask(ListChildren(context.session))
        if verb in ("", "list") and not name:
            return CommandOutput("\n".join(map(_row, views)) or "This session has no sub-agents.")
        view = next((view for view in views if name in (view.name, view.id, view.session)), None)
        if verb not in ("show", "stop", "tell") or not name or bool(text) is not (verb == "tell"):
            return misuse(USAGE)
        if view is None:
            return misuse(f"This session has no sub-agent {one_line(name, 80)!r}. {USAGE}")
        if verb == "show":
            return CommandOutput(
                "\n".join(filter(None, (_row(view), f"task: {view.objective}", view.error, view.answer)))
            )
        if verb == "stop" and view.over:
            return CommandOutput(f"{view.name} has already ended: {view.status}.")
        wanted = StopChild(context.session, name) if verb == "stop" else TellChild(context.session, name, text)
        try:
            return CommandOutput(_row(await self._do(wanted)))
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)


def _row(view: ChildView) -> str:
    used = f"{view.steps} steps, {view.tokens:,} tokens, {view.seconds:.0f} s"
    about = view.doing or view.answer or view.error or view.objective
    return f"{view.name} ({view.role})  {view.status}, {used}: {one_line(' '.join(about.split()), 160)}"
