"""Where skills stand. Apart from what reads them, which is loaded only where there is such a folder."""

import os
from collections.abc import Iterator

from msgspec import Struct

# The nearest first: beneath a workspace, and beneath a person's home.
WORKSPACE_FOLDERS = (
    ".agents/skills", "skills", ".opencode/skills", ".claude/skills", ".cursor/skills", ".codewhale/skills",
)  # fmt: skip
HOME_FOLDERS = (".agents/skills", ".claude/skills")


class Place(Struct, frozen=True):
    """A folder that may hold skills, how it is shown, and the workspace whose bounds and trust hold for it ("" is a
    person's own)."""

    folder: str
    shown: str
    workspace: str = ""


def places(workspace: str, home: str, person: str) -> Iterator[Place]:
    """The folders for a workspace, those that win first; `home` is the harness's own folder, `person` the person's."""
    for name in WORKSPACE_FOLDERS:
        yield Place(os.path.join(workspace, name), name, workspace)
    for name in HOME_FOLDERS:
        yield Place(os.path.join(person, name), f"~/{name}")
    own = os.path.join(home, "skills")
    yield Place(own, own)


def any_there(workspace: str, home: str, person: str) -> bool:
    """Whether one of the folders is there at all."""
    return any(os.path.isdir(place.folder) for place in places(workspace, home, person))
