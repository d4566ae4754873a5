"""Skills: folders whose SKILL.md tells a model how to do one kind of task (the open Agent Skills form).

They are found, read and listed here; nothing of a skill is ever run.
"""

import os
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.text import one_line
from codewhale.permissions.markdown_files import read_markdown, split_head
from codewhale.permissions.skill_folders import FILES, SkillFolder, places, skill_files
from codewhale.permissions.trust import TrustStore
from codewhale.skills.header import read_header, workflow_fault
from codewhale.skills.model import LoadedSkill, Skill, SkillList

FILE_LIMIT = 1 << 20
_SKILLS, _COMPANIONS = 500, 100


class _SkillFile(Struct, frozen=True):
    """A file as it was read: what it is known by, its skill or why it is none, and what is wrong with it."""

    stamp: tuple[int, ...]
    skill: Skill | None
    notes: tuple[str, ...]


class SkillStore:
    def __init__(self, home: str, person: str, trust: TrustStore) -> None:
        """`home` is the harness's own folder, `person` the person's home folder; `trust` knows which files of
        workspaces the person has approved."""
        self._home, self._person = home, person
        self._trust = trust
        self._known: dict[str, _SkillFile] = {}

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
        data = read_markdown(skill.file, FILE_LIMIT) if skill.kind == "skill" else None
        if data is None or sha256(data).hexdigest() != skill.sha256:
            return None
        _, body = split_head(data.decode("utf-8", "replace"))
        return LoadedSkill(skill, body, tuple(_companions(os.path.dirname(skill.file))))

    def _standing(self, place: SkillFolder, file: str, shown: str) -> tuple[Skill | None, tuple[str, ...]]:
        """The skill of a file of a place as it stands now and what is wrong with it, or None and why there is none."""
        read = self._read(file)
        if read.skill is None:
            return None, read.notes
        if place.workspace and not self._trust.holds(file, read.skill.sha256):
            return None, ("not trusted; to use it: codewhale trust add " + one_line(file),)
        skill, notes = replace(read.skill, path=shown, folder=place.workspace), read.notes
        if skill.workflow and (fault := workflow_fault(skill)):
            skill, notes = replace(skill, workflow=""), (*notes, fault)
        return skill, notes

    def _read(self, file: str) -> _SkillFile:
        try:
            info = os.stat(file)
        except OSError as error:
            return _SkillFile((), None, (error.strerror or "it cannot be read",))
        stamp = (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
        known = self._known.get(file)
        if known is None or known.stamp != stamp:
            if len(self._known) > 4 * _SKILLS:
                self._known.clear()
            known = self._known[file] = _understood(file, stamp)
        return known


def _understood(file: str, stamp: tuple[int, ...]) -> _SkillFile:
    data = read_markdown(file, FILE_LIMIT)
    try:
        if data is None:
            raise ValueError(f"it must be a regular file of at most {FILE_LIMIT:,} bytes")
        return _SkillFile(stamp, *read_header(file, data))
    except ValueError as error:
        return _SkillFile(stamp, None, (str(error),))


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
