"""Skills: reading one that the system text lists."""

import asyncio
import posixpath
from difflib import get_close_matches
from typing import Annotated

from codewhale.lib.text import one_line
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, SkillLoaded, ToolResult
from codewhale.skills.library import SkillLibrary
from codewhale.skills.model import Activation, LoadedSkill
from codewhale.tools.base import Args, Doc, tool


class LoadSkill(Args, frozen=True):
    """Which skill, and which file of it."""

    name: Annotated[str, Doc("The skill's name, as it is listed.", min_length=1, max_length=200)]
    file: Annotated[str, Doc("A file that comes with it, as its text lists it.", max_length=400)] = ""


class SkillTools:
    """The tool that reads skills."""

    def __init__(self, skills: SkillLibrary) -> None:
        self._skills = skills

    @tool("load_skill", effects={Effect.READS}, parallel=True)
    async def load_skill(self, args: LoadSkill, call: CallContext) -> ToolResult:
        """Read a skill: instructions for one kind of task, with the files that come with it. Load a listed skill
        before you begin a task that it fits. Returns its text, or with `file` that of one of its files.
        """
        name = args.name.strip().removeprefix("$")
        found = await asyncio.to_thread(self._skills.load, call.workspace, name)
        if found is None:
            raise await asyncio.to_thread(self._missing, call.workspace, name)
        skill = found.skill
        if args.file:
            return await asyncio.to_thread(self._file, found, args.file)
        if skill.activation is Activation.MANUAL:
            raise ToolError(
                "permission_denied",
                f"The skill {skill.name} is for the user to activate, by ${skill.name} in a message or /skill "
                f"{skill.name}. Go on without it.",
            )
        metadata = {"skill_name": skill.name, "skill_path": skill.path, "companion_files": list(found.companions)}
        return ToolResult(_shown(found), metadata=metadata, updates=(SkillLoaded(skill.name),))

    def _file(self, found: LoadedSkill, file: str) -> ToolResult:
        name = posixpath.normpath(file)
        text = self._skills.companion(found.skill, name) if name in found.companions else None
        if text is not None:
            return ToolResult(text, metadata={"skill_name": found.skill.name, "file": name})
        close = get_close_matches(name, found.companions, 1)
        known = f"Its files are: {', '.join(found.companions[:50])}." if found.companions else "It has no other files."
        raise ToolError(
            "invalid_input",
            f"The skill {found.skill.name} has no file {one_line(file, 80)!r} that is text. {known}",
            field="file",
            expected="a file of the skill",
            received=one_line(file, 80),
            fix=NextCall("load_skill", {"name": found.skill.name, **({"file": close[0]} if close else {})}),
        )

    def _missing(self, workspace: str, name: str) -> ToolError:
        names = [skill.name for skill in self._skills.of(workspace).skills]
        close = get_close_matches(name, names, 1)
        known = f"The skills are: {', '.join(names)}." if names else "There are no skills in this session."
        return ToolError(
            "invalid_input",
            f"There is no skill named {name[:80]!r}. {known}",
            field="name",
            expected="the name of a skill",
            received=name[:80],
            fix=NextCall("load_skill", {"name": close[0]}) if close else None,
        )


def _shown(found: LoadedSkill) -> str:
    skill = found.skill
    lines = [f"# Skill: {skill.name}", "", skill.description, "", f"Source: {skill.file}", "", found.body.strip()]
    if found.companions:
        lines += ["", "Files beside it:", *(f"- {path}" for path in found.companions)]
    return "\n".join(lines)
