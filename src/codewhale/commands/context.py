"""Slash commands about the context: how full it is, and making it shorter."""

from codewhale.commands.base import CommandContext, command, told
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.ports import SessionControl
from codewhale.protocol.views import ContextView

_SOURCES = {
    "configured": "as configured",
    "reported": "reported by the endpoint",
    "catalog": "from the model table",
    "name": "guessed from the model's name, unverified",
    "fallback": "a guess, unverified: set context_window in the provider's table",
    "overflow": "learned from a request that was too long",
}


class ContextCommands:
    """/context and /compact."""

    def __init__(self, control: SessionControl) -> None:
        self._control = control

    @command("/context", "[json]")
    async def context(self, args: str, context: CommandContext) -> CommandOutput:
        """Show how full the context is, layer by layer."""
        running = self._control.status(context.session).children
        more = f"\n{'sub-agents':<22} {', '.join(running)} (each has a context of its own)" if running else ""
        return told("/context", args, self._control.context(context.session), lambda view: _shown(view) + more)

    @command("/compact", "[FOCUS|undo]")
    async def compact(self, args: str, context: CommandContext) -> CommandOutput:
        """Compact the conversation, keeping FOCUS in detail; undo restores the exact conversation."""
        try:
            if args == "undo":
                number = self._control.undo_compaction(context.session)
                if not number:
                    return CommandOutput("No compaction to undo.", ok=False)
                text = f"Compaction {number} undone. Automatic compaction is off until the next /compact."
                return CommandOutput(text)
            before, after = await self._control.compact(context.session, args)
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)
        return CommandOutput(f"Compacted: about {before} tokens before, {after} now. /compact undo takes it back.")


def _shown(view: ContextView) -> str:
    percent = 100 * view.used // max(1, view.spendable)
    by = "counted by the provider" if view.calibrated else "estimated until the provider counts a request"
    makes_room = f"automatic at {view.threshold} tokens" if view.threshold else "automatic compaction is off"
    rows = [
        ("model", f"{view.model} at {view.provider}"),
        ("window", f"{view.window} tokens ({_SOURCES.get(view.window_source, view.window_source)})"),
        ("for answers", f"{view.reserved} tokens"),
        ("next request", f"{view.used} of {view.spendable} tokens, {percent} % ({by})"),
        *((f"  {name}", str(tokens)) for name, tokens in view.layers),
        ("room", makes_room + (f"; {view.compactions} compactions in effect" if view.compactions else "")),
        ("last call", f"{view.last_hit} tokens from the cache, {view.last_miss} not"),
        ("billed so far", f"{view.billed_input} tokens in, {view.billed_output} out"),
    ]
    return "\n".join(f"{name:<22} {value}" for name, value in rows)
