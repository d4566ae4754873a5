"""/skills: what skills there are, what one says, and which files are left out."""

import asyncio

from codewhale.commands.base import CommandContext, command, misuse, told
from codewhale.lib.text import one_line
from codewhale.protocol.ops import CommandOutput
from codewhale.skills.library import SkillLibrary
from codewhale.skills.model import SkillList


class SkillsCommand:
    """/skills."""

    def __init__(self, skills: SkillLibrary) -> None:
        self._skills = skills

    @command("/skills", "[json | SKILL]")
    async def skills(self, args: str, context: CommandContext) -> CommandOutput:
        """List this workspace's skills and your own, with what was skipped and why; or show one."""
        if args in ("", "json"):
            return told("/skills", args, await asyncio.to_thread(self._skills.of, context.workspace), _shown)
        one = await asyncio.to_thread(self._skills.load, context.workspace, args.removeprefix("$"))
        if one is None:
            return misuse(f"Unknown skill {one_line(args, 80)!r}; /skills lists them.")
        beside = "".join(f"\n- {path}" for path in one.companions)
        return CommandOutput(
            "\n\n".join(filter(None, (one.skill.path, one.body.strip(), beside and f"Files with it:{beside}")))
        )


def _shown(found: SkillList) -> str:
    lines = [f"{skill.name:<24} {one_line(skill.description, 120)}  ({skill.path})" for skill in found.skills]
    lines += [("" if ": loaded anyway: " in line else "left out: ") + one_line(line, 400) for line in found.problems]
    return "\n".join(lines) or "No skills. A skill is a folder with a SKILL.md, in ~/.agents/skills."
