"""/task: durable tasks, queued, looked at, ended and gone on with."""

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.requests import Ask, Do
from codewhale.protocol.tasks import MOST_TASKS, AddTask, CancelTask, GetTask, ListTasks, ResumeTask
from codewhale.tasks.shown import board_text, record_text

USAGE = (
    "Use /task [list], /task add [--auto] [--on-death-resume] PROMPT, /task show TASK, /task cancel TASK or "
    "/task resume TASK. --auto lets it run what no rule asks about without asking."
)
_FLAGS = ("--auto", "--on-death-resume")


class TaskCommand:
    """/task."""

    def __init__(self, ask: Ask, do: Do) -> None:
        self._ask = ask
        self._do = do

    @command("/task", "[list | add PROMPT | show TASK | cancel TASK | resume TASK]")
    async def task(self, args: str, context: CommandContext) -> CommandOutput:
        """Queue a durable task, list them, show one, end one or let it go on."""
        verb, _, rest = args.strip().partition(" ")
        rest = rest.strip()
        try:
            if verb == "add" and rest:
                return await self._add(rest, context)
            if verb in ("", "list") and not rest:
                return CommandOutput(board_text(await self._ask(ListTasks(MOST_TASKS))))
            if verb not in ("show", "cancel", "resume") or not rest or " " in rest:
                return misuse(USAGE)
            if verb == "cancel":
                await self._do(CancelTask(rest))
            elif verb == "resume":
                await self._do(ResumeTask(rest))
            return CommandOutput(record_text(await self._ask(GetTask(rest))))
        except CodeWhaleError as error:
            return CommandOutput(str(error), ok=False)

    async def _add(self, text: str, context: CommandContext) -> CommandOutput:
        chosen = set()
        while (word := text.split(maxsplit=1)[0]) in _FLAGS:
            chosen.add(word)
            text = text.removeprefix(word).strip()
            if not text:
                return misuse(USAGE)
        if word.startswith("--"):
            return misuse(f"/task add has no {one_line(word, 60)}. {USAGE}")
        on_death = "resume" if "--on-death-resume" in chosen else "ask"
        view = await self._do(AddTask(context.session, text, "--auto" in chosen, on_death))  # type: ignore[arg-type]
        board = await self._ask(ListTasks(1))
        return CommandOutput("\n".join(filter(None, (f"{view.id} is queued.", board.notice))))
