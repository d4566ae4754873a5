"""Where skills stand, and which files they are. All of it is only ever read."""

import os
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.permissions.skill_folders import FILES
from codewhale.skills.rule_folders import rule_paths, upwards

# Each with the namespace of its skills, those first that win: beneath a workspace, beneath a person's home.
_WORKSPACE = {
    ".agents/skills": "agents", "skills": "project", ".opencode/skills": "opencode", ".claude/skills": "claude",
    ".cursor/skills": "cursor", ".codewhale/skills": "codewhale",
}  # fmt: skip
_HOME = {".agents/skills": "user-agents", ".claude/skills": "user-claude"}
_OTHERS = {".codex/skills": "codex", ".kimi/skills": "kimi"}
_DEPTH, _FOLDERS = 8, 2_000
_SPACE = lazy(r"[^\W_][\w-]{0,63}")


class SkillFolder(Struct, frozen=True):
    """A folder that may hold skills, how it is shown, the namespace of its skills, and the workspace whose bounds and
    trust hold for it ("" is a person's own)."""

    folder: str
    shown: str
    space: str
    workspace: str = ""

    @property
    def name(self) -> str:
        """How a person names it: the same for the folders above a workspace."""
        return re.sub(r"\A(?:\.\./)+", "", self.shown)


class SkillFile(Struct, frozen=True):
    """The file of a skill, its place, its namespace, and the path it is shown by."""

    path: str
    shown: str
    space: str
    place: SkillFolder


class SkillPlaces(Struct, frozen=True):
    """All places of skills: `home` is the harness's own folder, `person` the person's, `configured` a folder that the
    person's settings name ("" is none)."""

    home: str
    person: str
    configured: str = ""
    system: str = "/etc/codewhale/skills"

    def of(self, workspace: str) -> list[SkillFolder]:
        """The places for a workspace, those that win first. A folder of the person's own is that, wherever one
        works."""
        own = [SkillFolder(os.path.join(self.person, name), f"~/{name}", space) for name, space in _HOME.items()]
        mine = os.path.join(self.home, "skills")
        own.append(SkillFolder(mine, mine, "user"))
        own.append(SkillFolder(os.path.join(self.person, ".deepseek/skills"), "~/.deepseek/skills", "user-deepseek"))
        own.append(SkillFolder(self.system, self.system, "system"))
        listed = [
            SkillFolder(os.path.join(self.person, name), f"~/{name}", "user-" + _OTHERS[name]) for name in _OTHERS
        ]
        if self.configured:
            folder = self.person + self.configured[1:] if self.configured[0] == "~" else self.configured
            listed.append(SkillFolder(folder, self.configured, "configured"))
        persons = {place.folder for place in (*own, *listed)}
        first, last = (
            [place for place in _beneath(workspace, names) if place.folder not in persons]
            for names in (_WORKSPACE, _OTHERS)
        )
        return [*first, *own, *last, *listed]

    def any_there(self, workspace: str) -> bool:
        return any(os.path.isdir(place.folder) for place in self.of(workspace))


def project_texts(workspace: str) -> list[str]:
    """The paths of the skills and rules of a workspace, and of the folders above it in its repository."""
    places = _beneath(os.path.realpath(workspace), {**_WORKSPACE, **_OTHERS})
    return [*(file.path for file in skill_files(places)), *rule_paths(workspace)]


def _beneath(workspace: str, names: dict[str, str]) -> list[SkillFolder]:
    places = []
    for folder in upwards(workspace):
        for name, space in names.items():
            path = os.path.join(folder, name)
            places.append(SkillFolder(path, os.path.relpath(path, workspace), space, folder))
    return places


def skill_files(places: Iterable[SkillFolder], problems: list[str] | None = None) -> Iterator[SkillFile]:
    """Each skill file beneath these places, once: hidden folders and the insides of a skill are left out; no link out
    of a workspace is followed, and within one no link that has the name of a skill's file. `problems` takes a line for
    each that was not followed."""
    problems = [] if problems is None else problems
    seen: set[str] = set()
    for place in places:
        yield from _files(place, seen, problems)


def _files(place: SkillFolder, seen: set[str], problems: list[str]) -> Iterator[SkillFile]:
    within = os.path.realpath(place.workspace) if place.workspace else ""
    todo, looked = [("", 0)], 0
    while todo:
        beneath, depth = todo.pop()
        folder, shown = os.path.join(place.folder, beneath), os.path.join(place.shown, beneath).rstrip("/")
        try:
            names = sorted(os.listdir(folder), reverse=True)
        except OSError:
            continue
        real = os.path.realpath(folder)
        if within and os.path.commonpath((within, real)) != within:
            problems.append(f"{shown}: a link out of the workspace is not followed")
            continue
        if real in seen:
            continue
        seen.add(real)
        looked += 1
        if looked > _FOLDERS:
            problems.append(f"{place.shown}: only the first {_FOLDERS:,} of its folders are looked at")
            return
        file = next((name for name in FILES if name in names), "")
        path = os.path.join(folder, file)
        if file and within and os.path.islink(path):
            problems.append(f"{shown}/{file}: it is a link, and not followed")
        elif file:
            yield SkillFile(path, f"{shown}/{file}", _space(place, beneath), place)
        elif depth < _DEPTH:
            todo += [(os.path.join(beneath, name), depth + 1) for name in names if name[0] != "."]


def _space(place: SkillFolder, beneath: str) -> str:
    """The namespace of a skill: that of its place, or the folder which stands between the two."""
    between, _, rest = beneath.partition("/")
    return between if rest and _SPACE().fullmatch(between) else place.space
