"""What stays as it is inside a writable workspace: the files that make others run things, also where there are none."""

import os

from msgspec import Struct

from codewhale.process.sandbox.profiles import GitPlace, Site, beneath
from codewhale.protocol.protected import (
    GIT_FILES,
    GIT_FOLDERS,
    HOME_FOLDERS,
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    RULE_FILES,
)

# Names that are taken while a command runs, if nothing stands there: what programs of many people act on unasked.
HELD = (
    ".git", ".codewhale", ".vscode", ".idea", ".gitmodules", ".gitconfig", ".mcp.json", ".ripgreprc", ".bashrc",
    ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv", "AGENTS.md",
)  # fmt: skip
_NAMES = frozenset(name.lower() for name in (*PROTECTED_FOLDERS, *PROTECTED_FILES, *RULE_FILES))
_HELD = frozenset(name.lower() for name in HELD)
_MOST_OPEN = 1000


class Guards(Struct, frozen=True):
    """`writable` are git directories to open (the workspace's own lies in it already and is pinned, so that it cannot
    be renamed away); `fixed` exist and must not change; `folders` and `pointers` are absent and must stay so. Of
    a `home` folder in the workspace only what is `open` may change."""

    writable: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    home: str = ""
    open: tuple[str, ...] = ()


def find_guards(site: Site) -> Guards:
    """The guards of a workspace that a command may write. Reads its top level and its git directories alone."""
    root = site.workspace
    names = sorted(entry.name for entry in os.scandir(root))
    free = {name for name in names if name.lower() in _HELD and vacant(os.path.join(root, name))}
    present = {name.lower() for name in names if name.lower() in _HELD and name not in free}
    taken = {name for name in free.intersection(HELD) if not os.path.islink(os.path.join(root, name))}
    paths = [os.path.join(root, name) for name in names if name.lower() in _NAMES and name not in taken]
    fixed = [real for path in paths for real in _fixed(root, path)]
    folders = [os.path.join(root, name) for name in HELD if name.lower() not in present and root != site.home]
    dot_git = os.path.join(root, ".git")
    if os.path.isfile(dot_git):
        fixed.append(dot_git)
    home, opened = _home(site)
    git = _git(site.git)
    if site.state and beneath(site.state, root) and os.path.isdir(site.state):
        fixed.append(site.state)
    return Guards(
        writable=git.writable,
        fixed=tuple(dict.fromkeys((*fixed, *git.fixed))),
        folders=tuple(dict.fromkeys((*folders, *git.folders))),
        pointers=git.pointers,
        home=home,
        open=opened,
    )


def _fixed(root: str, path: str) -> list[str]:
    """The path, or for a link what it leads to in the workspace."""
    real = os.path.realpath(path)
    return [real] if beneath(real, root) and real != root and os.path.exists(real) else []


def vacant(path: str) -> bool:
    """Whether nothing stands there, or an empty folder: another command of ours may just have put it there."""
    try:
        return not os.listdir(path)
    except NotADirectoryError:
        return False
    except OSError:
        return not os.path.lexists(path)


def _git(places: tuple[GitPlace, ...]) -> Guards:
    fixed: list[str] = []
    folders: list[str] = []
    pointers: list[str] = []
    pinned: list[str] = []
    for place in places:
        below = [os.path.join(place.path, name) for name in (*GIT_FILES, *GIT_FOLDERS)]
        fixed += [path for path in below if os.path.exists(path)]
        if not place.linked:
            absent = [os.path.join(place.path, name) for name in GIT_FOLDERS]
            folders += [path for path in absent if vacant(path)]
            pointers.append(os.path.join(place.path, "commondir"))
        modules = os.path.join(place.path, "modules")
        pinned += (place.path, modules) if os.path.isdir(modules) else (place.path,)
    return Guards(tuple(pinned), tuple(fixed), tuple(folders), tuple(pointers))


def _home(site: Site) -> tuple[str, tuple[str, ...]]:
    """A home folder in the workspace, in which nothing new can be made and nothing changes that programs act on by
    themselves; and what else stands in it, which is open."""
    if not site.home or not beneath(site.home, site.workspace):
        return "", ()
    rows = [entry for entry in os.scandir(site.home) if not entry.is_symlink() and not entry.name.startswith(".")]
    return site.home, tuple(entry.path for entry in rows if entry.name not in HOME_FOLDERS)[:_MOST_OPEN]
