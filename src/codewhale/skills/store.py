"""Skills: folders whose SKILL.md tells a model how to do one kind of task (the open Agent Skills form).

They are found, read and listed here; nothing of a skill is ever run.
"""

import contextlib
import os
import shlex
from functools import partial

from msgspec.structs import replace

from codewhale.lib.text import scrub_surrogates, told_line
from codewhale.permissions.markdown_files import split_head
from codewhale.permissions.skill_folders import companions
from codewhale.permissions.trust import TrustStore
from codewhale.skills.header import read_header, workflow_fault
from codewhale.skills.model import LoadedSkill, Skill, SkillList
from codewhale.skills.places import SkillFile, SkillPlaces, skill_files
from codewhale.skills.reading import FileReader, bounded, text_of, trusted_rows
from codewhale.skills.switches import Switches

_SKILLS, _COMPANIONS = 500, 100


class SkillStore:
    def __init__(self, places: SkillPlaces, trust: TrustStore) -> None:
        """`trust` knows which files of workspaces the person has approved."""
        self._places, self._trust = places, trust
        self._reader, self._switches = FileReader(), Switches(places.home)

    def of(self, workspace: str) -> SkillList:
        skills: dict[str, Skill] = {}
        shadowed: list[Skill] = []
        off: list[Skill] = []
        untrusted: list[Skill] = []
        switched = self._switches.read()
        problems = [switched.problem] if switched.problem else []
        full_names: set[str] = set()
        rows = trusted_rows(self._trust, problems)
        for file in skill_files(self._places.of(os.path.realpath(workspace)), problems):
            if len(full_names) == _SKILLS:
                problems.append(f"only the first {_SKILLS} skills are used")
                break
            skill, notes = self._standing(file)
            if skill is None:
                problems += [f"{file.shown}: {note}" for note in notes]
                continue
            if file.place.workspace and not self._trust.holds(file.path, skill.sha256, rows):
                untrusted.append(skill)
                problems.append(f"{file.shown}: not trusted; to use it: codewhale trust add {shlex.quote(file.path)}")
                continue
            skill = _addressed(skill, full_names)
            if switched.covers(skill, file.place.name):
                off.append(skill)
                continue
            first = skills.setdefault(skill.name, skill)
            if first is not skill:
                shadowed.append(skill)
                problems.append(f"{skill.path}: the skill {skill.name} of {first.path} comes first; "
                                f"this one is {skill.full_name}")  # fmt: skip
            if notes:
                problems.append(f"{skill.path}: loaded anyway: {'; '.join(notes)}")
        return SkillList(tuple(skills.values()), bounded(problems), tuple(off), tuple(shadowed), tuple(untrusted))

    def read(self, skill: Skill) -> LoadedSkill | None:
        """A skill with its text; None where the file is not what it was, or is a rule's."""
        text = text_of(skill) if skill.kind == "skill" else None
        if text is None:
            return None
        _, body = split_head(text)
        return LoadedSkill(skill, body, _beside(skill))

    def _standing(self, file: SkillFile) -> tuple[Skill | None, tuple[str, ...]]:
        """The skill of a file as it stands now and what is wrong with it, or None and why there is none."""
        if scrub_surrogates(file.path) != file.path:
            return None, ("its path is not UTF-8",)
        read = self._reader.read(file.path, partial(read_header, file.path))
        if read.skill is None:
            return None, read.notes
        shown = told_line(file.shown)
        skill, notes = replace(read.skill, path=shown, space=file.space, folder=file.place.workspace), read.notes
        if skill.workflow and (fault := workflow_fault(skill)):
            skill, notes = replace(skill, workflow=""), (*notes, fault)
        return skill, notes


def _addressed(skill: Skill, full_names: set[str]) -> Skill:
    """A skill with a namespace in which no other has its name: a number joins it where one has."""
    number, space = 1, skill.space
    while skill.full_name in full_names:
        number += 1
        skill = replace(skill, space=f"{space}-{number}")
    full_names.add(skill.full_name)
    return skill


def _beside(skill: Skill) -> tuple[str, ...]:
    paths: list[str] = []
    with contextlib.suppress(ValueError):
        paths.extend(companions(os.path.dirname(skill.file)))
    return tuple(sorted(paths)[:_COMPANIONS])
