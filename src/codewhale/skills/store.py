"""Skills: folders whose SKILL.md tells a model how to do one kind of task (the open Agent Skills form).

They are found, read and listed here; nothing of a skill is ever run, and what it says about rights is not heard.
"""

import os
import re
from hashlib import sha256
from typing import Any

from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.permissions.markdown_files import HEAD_LIMIT, head_members, read_markdown, split_head
from codewhale.permissions.skill_folders import FILES, SkillFolder, places, skill_files
from codewhale.permissions.trust import TrustStore
from codewhale.skills.model import LoadedSkill, Skill, SkillList

FILE_LIMIT = 1 << 20
_SKILLS, _COMPANIONS = 500, 100
_NAME = re.compile(r"\w(?:[\w.:-]{0,62}\w)?")


class _SkillFile(Struct, frozen=True):
    """A file as it was read: what it is known by, its digest, and its skill or why it is none."""

    stamp: tuple[int, int, int]
    digest: str
    name: str = ""
    description: str = ""
    problem: str = ""


class SkillStore:
    def __init__(self, home: str, person: str, trust: TrustStore) -> None:
        """`home` is the harness's own folder, `person` the person's home folder; `trust` knows which files of
        workspaces the person has approved."""
        self._home, self._person = home, person
        self._trust = trust
        self._known: dict[str, _SkillFile] = {}

    def of(self, workspace: str) -> SkillList:
        skills: dict[str, Skill] = {}
        problems: list[str] = []
        for place in places(os.path.realpath(workspace), self._home, self._person):
            for file, shown in skill_files(place):
                if len(skills) == _SKILLS:
                    return SkillList(tuple(skills.values()), (*problems, f"only the first {_SKILLS} skills are used"))
                read = self._read(file)
                problem = read.problem or self._untrusted(place, file, read) or _shadowed(read, skills)
                if problem:
                    problems.append(f"{shown}: {problem}")
                else:
                    skills[read.name] = Skill(
                        read.name, read.description, shown, file, size=read.stamp[1], sha256=read.digest
                    )
        return SkillList(tuple(skills.values()), tuple(problems))

    def read(self, skill: Skill) -> LoadedSkill | None:
        """A skill with its text; None where the file is not what it was, or is a rule's."""
        data = read_markdown(skill.file, FILE_LIMIT) if skill.kind == "skill" else None
        if data is None or sha256(data).hexdigest() != skill.sha256:
            return None
        _, body = split_head(data.decode("utf-8", "replace"))
        return LoadedSkill(skill, body, tuple(_companions(os.path.dirname(skill.file))))

    def _read(self, file: str) -> _SkillFile:
        try:
            info = os.stat(file)
        except OSError as error:
            return _SkillFile((0, 0, 0), "", problem=error.strerror or "it cannot be read")
        stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
        known = self._known.get(file)
        if known is None or known.stamp != stamp:
            if len(self._known) > 4 * _SKILLS:
                self._known.clear()
            known = self._known[file] = _understood(file, stamp)
        return known

    def _untrusted(self, place: SkillFolder, file: str, read: _SkillFile) -> str:
        if not place.workspace or self._trust.holds(file, read.digest):
            return ""
        return "not trusted; to use it: codewhale trust add " + one_line(file)


def _shadowed(read: _SkillFile, skills: dict[str, Skill]) -> str:
    other = skills.get(read.name)
    return f"the skill {read.name} of {other.path} comes first" if other else ""


def _understood(file: str, stamp: tuple[int, int, int]) -> _SkillFile:
    data = read_markdown(file, FILE_LIMIT)
    if data is None:
        return _SkillFile(stamp, "", problem=f"it is it must be a regular file of at most {FILE_LIMIT:,} bytes")
    digest, text = sha256(data).hexdigest(), data.decode("utf-8", "replace")
    folder = os.path.basename(os.path.dirname(file))
    head, _ = split_head(text)
    if head is None:
        title = re.search(r"^#+[ \t]+(\S.*)$", text[:HEAD_LIMIT], re.MULTILINE)
        members: dict[str, Any] = {"description": title.group(1)} if title else {}
    elif len(head) > HEAD_LIMIT:
        return _SkillFile(stamp, digest, problem=f"its header is longer than {HEAD_LIMIT:,} characters")
    else:
        members = head_members(head)
    name, description = members.get("name", folder), members.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return _SkillFile(stamp, digest, problem="the name must be 1 to 64 letters, digits, hyphens, dots or colons")
    if not isinstance(description, str) or not description.strip():
        return _SkillFile(stamp, digest, problem="it has no description")
    return _SkillFile(stamp, digest, name, description.strip())


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
