"""Slash commands about the session: its mode, its model, how it stands, which others there are."""

from collections.abc import Callable, Sequence

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.ports import SessionControl
from codewhale.protocol.views import SessionSummary

_YOLO = "In yolo mode every call runs without asking, with the network open. Use /mode yolo yes to switch it on."


Summaries = Callable[[str], Sequence[SessionSummary]]


class SessionCommands:
    """/mode, /yolo, /model, /retry, /rename, /status, /sessions."""

    def __init__(self, control: SessionControl, summaries: Summaries, mechanism: Callable[[], str]) -> None:
        self._control = control
        self._summaries = summaries
        self._mechanism = mechanism

    @command("/mode", "[plan|agent|yolo]")
    async def mode(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the mode, or change it."""
        modes = "|".join(Mode)
        if not args:
            return CommandOutput(f"mode: {self._control.status(context.session).mode} (one of {modes})")
        name, _, sure = args.partition(" ")
        if name not in list(Mode) or (sure and sure != "yes"):
            return misuse(f"Unknown mode {args!r}; choose one of {modes}.")
        if name == Mode.YOLO and not sure:
            return CommandOutput(_YOLO, ok=False)
        return self._try(lambda: self._control.set_mode(context.session, Mode(name)), f"mode: {name}")

    @command("/yolo", "[yes]")
    async def yolo(self, args: str, context: CommandContext) -> CommandOutput:
        """Run everything without asking: /mode yolo."""
        changed: CommandOutput = await self.mode(f"yolo {args}".strip(), context)
        return changed

    @command("/model", "[[PROVIDER] MODEL]")
    async def model(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the model, or change it (PROVIDER is a configured provider's name)."""
        status = self._control.status(context.session)
        if not args:
            return CommandOutput(f"model: {status.model} at {status.provider}")
        words = args.split()
        if len(words) > 2:
            return misuse("Use /model MODEL or /model PROVIDER MODEL.")
        provider, model = words if len(words) == 2 else ("", words[0])
        shown = f"model: {model} at {provider or status.provider}"
        return self._try(lambda: self._control.set_model(context.session, provider, model), shown)

    @command("/retry")
    async def retry(self, args: str, context: CommandContext) -> CommandOutput:
        """Retry your last message after a failed or interrupted turn."""
        if args:
            return misuse("Use /retry without arguments.")
        try:
            text = await self._control.retry(context.session)
        except CodeWhaleError as error:
            return CommandOutput(f"Not sent again: {error}.", ok=False)
        return CommandOutput(f"Sent again: {one_line(text)}", turn=True)

    @command("/rename", "TITLE")
    async def rename(self, args: str, context: CommandContext) -> CommandOutput:
        """Give the session a title."""
        return self._try(lambda: self._control.rename(context.session, args), f"Renamed to {one_line(args)}")

    @command("/status")
    async def status(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the state of the session."""
        view = self._control.status(context.session)
        rows = [
            ("session", view.session),
            ("workspace", view.workspace),
            ("mode", f"{view.mode} ({view.authority}, approval {view.approval})"),
            ("model", f"{view.model} at {view.provider}"),
            ("effort", view.effort or "the model's default"),
            ("turns", f"{view.turns}, {view.messages} messages, {view.requests} model calls"),
            ("tokens", f"{view.tokens_in} in, {view.tokens_out} out"),
            ("instructions", ", ".join(f"{name} ({size} bytes)" for name, size in view.instructions) or "none"),
            ("sandbox", self._mechanism() or "none on this machine: calls that need one ask first"),
            *(
                (("sub-agents", f"{', '.join(view.children)} run{'s' * (len(view.children) == 1)}"),)
                if view.children
                else ()
            ),
            ("state", f"waiting for {view.waiting_for}" if view.waiting_for else "busy" if view.busy else "idle"),
        ]
        return CommandOutput("\n".join(f"{name:<13} {value}" for name, value in rows))

    @command("/sessions", "[all]")
    async def sessions(self, args: str, context: CommandContext) -> CommandOutput:
        """List the sessions of this workspace, or of all."""
        rows = self._summaries("" if args == "all" else context.workspace)
        if not rows:
            return CommandOutput("No sessions yet.")
        lines = [f"{row.id}  {row.updated[:16].replace('T', ' ')}  {row.turns:>3} turns  {row.title}" for row in rows]
        return CommandOutput("\n".join(lines))

    @staticmethod
    def _try(change: Callable[[], None], done: str) -> CommandOutput:
        try:
            change()
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)
        return CommandOutput(done)
