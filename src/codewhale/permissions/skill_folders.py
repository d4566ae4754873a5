"""Where skills stand, and which files they are."""

import os
from collections.abc import Iterator

from msgspec import Struct

# The nearest first: beneath a workspace, and beneath a person's home.
WORKSPACE_FOLDERS = (
    ".agents/skills", "skills", ".opencode/skills", ".claude/skills", ".cursor/skills", ".codewhale/skills",
)  # fmt: skip
HOME_FOLDERS = (".agents/skills", ".claude/skills")
FILES = ("SKILL.md", "skill.md")
_DEPTH, _FOLDERS = 8, 2_000


class SkillFolder(Struct, frozen=True):
    """A folder that may hold skills, how it is shown, and the workspace whose bounds and trust hold for it ("" is a
    person's own)."""

    folder: str
    shown: str
    workspace: str = ""


def workspace_places(workspace: str) -> Iterator[SkillFolder]:
    """The folders of a workspace, those that win first."""
    for name in WORKSPACE_FOLDERS:
        yield SkillFolder(os.path.join(workspace, name), name, workspace)


def places(workspace: str, home: str, person: str) -> Iterator[SkillFolder]:
    """The folders for a workspace, those that win first; `home` is the harness's own folder, `person` the person's."""
    yield from workspace_places(workspace)
    for name in HOME_FOLDERS:
        yield SkillFolder(os.path.join(person, name), f"~/{name}")
    own = os.path.join(home, "skills")
    yield SkillFolder(own, own)


def any_there(workspace: str, home: str, person: str) -> bool:
    return any(os.path.isdir(place.folder) for place in places(workspace, home, person))


def skill_files(place: SkillFolder) -> Iterator[tuple[str, str]]:
    """Each skill file beneath a place, with the path it is shown by: hidden folders and the insides of a skill are left
    out; a link out of a workspace is not followed, nor one that was gone through before."""
    within = os.path.realpath(place.workspace) if place.workspace else ""
    seen: set[str] = set()
    todo = [(place.folder, place.shown, 0)]
    while todo and len(seen) < _FOLDERS:
        folder, shown, depth = todo.pop()
        real = os.path.realpath(folder)
        if real in seen or (within and os.path.commonpath((within, real)) != within):
            continue
        seen.add(real)
        try:
            names = sorted(os.listdir(folder), reverse=True)
        except OSError:
            continue
        file = next((name for name in FILES if name in names), "")
        path = os.path.join(folder, file)
        if file and not (within and os.path.islink(path)):
            yield path, f"{shown}/{file}"
        elif depth < _DEPTH:
            todo += [(os.path.join(folder, name), f"{shown}/{name}", depth + 1) for name in names if name[0] != "."]
