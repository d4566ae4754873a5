"""/skills: what skills there are, what one reads, restricts and pre-approves, which are off and which left out."""

import asyncio
import os
from collections.abc import Iterable

from codewhale.commands.base import CommandContext, command, misuse, told
from codewhale.lib.text import counted, one_line
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.ops import CommandOutput
from codewhale.skills.library import SkillLibrary
from codewhale.skills.model import Activation, LoadedSkill, Skill, SkillList
from codewhale.skills.places import SkillPlaces
from codewhale.skills.restriction import PreApproval, Token
from codewhale.skills.rule_folders import RULE_PLACES
from codewhale.skills.store import SkillStore
from codewhale.skills.switches import Key, Off, Switches

_APPLIES = {
    Activation.ALWAYS: "always",
    Activation.GLOB: "when a file that matches is read, changed, found or named: ",
    Activation.MODEL: "when the model loads it, or you name it",
    Activation.MANUAL: "only when you name it: $NAME in a message, or /skill NAME",
}
_NONE = "No skills. A skill is a folder with a SKILL.md, in ~/.agents/skills."


class SkillsCommand:
    """/skills."""

    def __init__(self, skills: SkillStore, library: SkillLibrary, places: SkillPlaces) -> None:
        self._skills, self._library, self._places = skills, library, places
        self._switches = Switches(places.home)

    @command("/skills", "[json | SKILL | off SKILL | on SKILL]")
    async def skills(self, args: str, context: CommandContext) -> CommandOutput:
        """List this workspace's skills and your own, with what was skipped and why; show one; switch one off or on."""
        found = await asyncio.to_thread(self._skills.of, context.workspace)
        if args in ("", "json"):
            return told("/skills", args, found, _shown)
        verb, _, name = args.partition(" ")
        if verb in ("off", "on") and name.strip():
            name = name.strip().removeprefix("$")
            return await asyncio.to_thread(self._switch, found, name, verb == "off", context.workspace)
        one = await asyncio.to_thread(self._library.load, context.workspace, args.removeprefix("$"))
        if one is None:
            lines = [line for line in found.problems if f"/{args.removeprefix('$')}/" in line]
            return misuse("\n".join([f"Unknown skill {one_line(args, 80)!r}; /skills lists them.", *lines[:10]]))
        return CommandOutput(f"{_table(one, *self._library.terms(one.skill))}\n\n{one.body.strip()}".strip())

    def _switch(self, found: SkillList, name: str, off: bool, workspace: str) -> CommandOutput:
        now = self._switches.read()
        rules = self._library.of(workspace)
        skills = (*found.skills, *found.shadowed, *found.off, *rules.skills, *rules.off)
        places = {*RULE_PLACES, *(place.name for place in self._places.of(os.path.realpath(workspace)))}
        key: Key = "disabled"
        if name in places and not any(name in (skill.name, skill.full_name) for skill in skills):
            key = "places_off"
        elif off and not any(name in (skill.name, skill.full_name) for skill in skills):
            return misuse(f"Unknown skill or place {one_line(name, 80)!r}; /skills lists them.")
        if not off and name not in getattr(now, key) and not now.problem:
            other = next((one for one in (*found.off, *rules.off) if name in (one.name, one.full_name)), None)
            if other is not None and other.name in now.disabled:
                return self._switch(found, other.name, off, workspace)
            why = f"; {other.full_name} is off by another name, or by its place" if other is not None else ""
            return misuse(f"{one_line(name, 80)} is not switched off{why}. Off: {_listed_off(now) or 'nothing'}.")
        try:
            self._switches.change(key, name, off=off)
        except ConfigError as error:
            return CommandOutput(one_line(str(error), 400), ok=False)
        until = f"; to switch it on: /skills on {name}" if off else ""
        return CommandOutput(f"Switched {'off' if off else 'on'}, in all sessions: {one_line(name, 80)}{until}.")


def _shown(found: SkillList) -> str:
    lines = [_line(skill) for skill in found.skills]
    lines += [f"off: {one.full_name}  ({one.path})" for one in found.off]
    lines += [("" if ": loaded anyway: " in line else "left out: ") + one_line(line, 400) for line in found.problems]
    return "\n".join(lines) or _NONE


def _line(skill: Skill) -> str:
    about = one_line(skill.description, 120)
    about = about if skill.tools is None else f"restricts to {counted(len(skill.tools), 'tool')}: {about}"
    return f"{one_line(skill.name):<24} {skill.activation:<6} {skill.size:>7,} bytes  {about}  ({skill.path})"


def _table(one: LoadedSkill, tools: Iterable[Token], approved: Iterable[PreApproval]) -> str:
    skill = one.skill
    rows = [
        ("skill", [f"{skill.full_name}: {one_line(skill.description, 1024)}"]),
        ("source", [skill.path, f"{skill.size:,} bytes, sha256 {skill.sha256[:12]}"]),
        ("applies", [_APPLIES[skill.activation] + ", ".join(map(one_line, skill.globs))]),
        ("reads", [counted(len(one.companions), "file") + " of its folder", *map(one_line, one.companions)]),
        ("restricts", ["nothing"] if skill.tools is None else ["to what is listed", *map(_restricted, tools)]),
        ("pre-approves", [*map(_approved, approved)] or ["nothing"]),
        (
            "may start",
            [f"{one_line(skill.workflow)}: registered when workflows exist" if skill.workflow else "nothing"],
        ),
        ("needs", [one_line(skill.compatibility, 500)] if skill.compatibility else []),
        ("license", [one_line(skill.license)] if skill.license else []),
    ]
    return "\n".join(f"{name if at == 0 else '':<13} {line}" for name, lines in rows for at, line in enumerate(lines))


def _restricted(token: Token) -> str:
    if not token.tools:
        return f"{one_line(token.text)}: names no tool"
    return f"{one_line(token.text)}: {', '.join(token.tools)}"


def _approved(one: PreApproval) -> str:
    honoured = f"not honoured: {one.problem}" if one.problem else "honoured when you name the skill"
    return f"{one_line(one.token.text)}: {honoured}"


def _listed_off(now: Off) -> str:
    return ", ".join(one_line(name, 80) for name in (*now.disabled, *now.places_off))
