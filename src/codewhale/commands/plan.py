"""/plan: the plan that was presented last, and its approval."""

from collections.abc import Awaitable, Callable, Sequence

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput


class PlanCommand:
    """/plan. `steps(session)` are those of the plan, `run(session)` carries it out."""

    def __init__(self, steps: Callable[[str], Sequence[str]], run: Callable[[str], Awaitable[None]]) -> None:
        self._steps = steps
        self._run = run

    @command("/plan", "[run]")
    async def plan(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the plan, or approve it: agent mode, with its steps as the checklist."""
        if args not in ("", "run"):
            return misuse("Say /plan or /plan run.")
        if not args:
            lines = [f"{number:>3}. {step}" for number, step in enumerate(self._steps(context.session), 1)]
            return CommandOutput("\n".join([*lines, "Carry it out: /plan run"] if lines else ["There is no plan yet."]))
        try:
            await self._run(context.session)
        except CodeWhaleError as error:
            return CommandOutput(f"Not carried out: {error}.", ok=False)
        return CommandOutput("The plan is being carried out.", turn=True)
