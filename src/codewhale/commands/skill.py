"""/skill: activate a skill until it is switched off, and switch it off."""

from collections.abc import Awaitable, Callable

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import one_line
from codewhale.protocol.errors import SessionError
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.skills import Guided


class SkillCommand:
    """/skill."""

    def __init__(
        self, activate: Callable[[str, str], Awaitable[Guided]], release: Callable[[str, str], tuple[str, ...]]
    ) -> None:
        """`activate(session, name)` raises SessionError; `release(session, name)` gives those that were active, "" is
        all of them."""
        self._activate = activate
        self._release = release

    @command("/skill", "SKILL | off [SKILL]")
    async def skill(self, args: str, context: CommandContext) -> CommandOutput:
        """Activate a skill until /skill off; its text guides, and what it restricts holds."""
        words = args.split()
        if words[:1] == ["off"] and len(words) <= 2:
            name = words[1].removeprefix("$") if len(words) == 2 else ""
            released = self._release(context.session, name)
            if not released:
                what = f"The skill {one_line(name, 80)} is" if name else "No skill is"
                return CommandOutput(f"{what} {'not ' if name else ''}active.")
            return CommandOutput(f"Switched off: {', '.join(released)}.")
        if len(words) != 1:
            return misuse("Use /skill NAME, or /skill off [NAME]; /skills lists them.")
        try:
            guided = await self._activate(context.session, words[0].removeprefix("$"))
        except SessionError as error:
            return misuse(one_line(str(error), 400))
        return CommandOutput(f"{guided.event.name} is active until /skill off.")
