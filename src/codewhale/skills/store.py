"""Skills: folders whose SKILL.md tells a model how to do one kind of task (the open Agent Skills form).

They are found, read and listed here; nothing of a skill is ever run.
"""

import os
from functools import partial

from msgspec.structs import replace

from codewhale.lib.text import one_line
from codewhale.permissions.markdown_files import split_head
from codewhale.permissions.skill_folders import FILES, SkillFolder, places, skill_files
from codewhale.permissions.trust import TrustStore
from codewhale.skills.header import read_header, workflow_fault
from codewhale.skills.model import LoadedSkill, Skill, SkillList
from codewhale.skills.reading import FileReader, text_of

_SKILLS, _COMPANIONS = 500, 100


class SkillStore:
    def __init__(self, home: str, person: str, trust: TrustStore) -> None:
        """`home` is the harness's own folder, `person` the person's home folder; `trust` knows which files of
        workspaces the person has approved."""
        self._home, self._person = home, person
        self._trust = trust
        self._reader = FileReader()

    def of(self, workspace: str) -> SkillList:
        skills: dict[str, Skill] = {}
        shadowed: list[Skill] = []
        problems: list[str] = []
        for place in places(os.path.realpath(workspace), self._home, self._person):
            for file, shown in skill_files(place):
                if len(skills) == _SKILLS:
                    problems.append(f"only the first {_SKILLS} skills are used")
                    return SkillList(tuple(skills.values()), tuple(problems), (), tuple(shadowed))
                skill, notes = self._standing(place, file, shown)
                if skill is None:
                    problems += [f"{shown}: {note}" for note in notes]
                    continue
                first = skills.setdefault(skill.name, skill)
                if first is not skill:
                    shadowed.append(skill)
                    problems.append(f"{shown}: the skill {skill.name} of {first.path} comes first")
                if notes:
                    problems.append(f"{shown}: loaded anyway: {'; '.join(notes)}")
        return SkillList(tuple(skills.values()), tuple(problems), (), tuple(shadowed))

    def read(self, skill: Skill) -> LoadedSkill | None:
        """A skill with its text; None where the file is not what it was, or is a rule's."""
        text = text_of(skill) if skill.kind == "skill" else None
        if text is None:
            return None
        _, body = split_head(text)
        return LoadedSkill(skill, body, tuple(_companions(os.path.dirname(skill.file))))

    def _standing(self, place: SkillFolder, file: str, shown: str) -> tuple[Skill | None, tuple[str, ...]]:
        """The skill of a file of a place as it stands now and what is wrong with it, or None and why there is none."""
        read = self._reader.read(file, partial(read_header, file))
        if read.skill is None:
            return None, read.notes
        if place.workspace and not self._trust.holds(file, read.skill.sha256):
            return None, ("not trusted; to use it: codewhale trust add " + one_line(file),)
        skill, notes = replace(read.skill, path=shown, folder=place.workspace), read.notes
        if skill.workflow and (fault := workflow_fault(skill)):
            skill, notes = replace(skill, workflow=""), (*notes, fault)
        return skill, notes


def _companions(folder: str) -> list[str]:
    paths: list[str] = []
    for above, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        for name in sorted(files):
            path = os.path.relpath(os.path.join(above, name), folder)
            if path not in FILES:
                paths.append(path)
            if len(paths) == _COMPANIONS:
                return paths
    return paths
