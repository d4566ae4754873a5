"""Where rules stand, ours and those of other programs, and which files they are."""

import os
from collections import deque
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from codewhale.permissions.skill_folders import settled
from codewhale.process.repository import find_root
from codewhale.process.sandbox.profiles import beneath

MOST_FILES = 500
_DEPTH, _PARENTS, _FOLDERS, _FEW_FOLDERS, _ENTRIES = 8, 32, 2_000, 300, 20_000
# A program, where its rules stand below a folder (a file, or a folder of files with these endings), and whether it
# looks into the folders of that folder.
_PLACES: tuple[tuple[str, str, tuple[str, ...], bool], ...] = (
    ("codewhale", ".codewhale/rules", (".md",), False),
    ("claude", ".claude/rules", (".md",), True),
    ("copilot", ".github/copilot-instructions.md", (), False),
    ("copilot", ".github/instructions", (".instructions.md",), True),
    ("cursor", ".cursorrules", (), False),
    ("cursor", ".cursor/rules", (".mdc",), True),
    ("windsurf", ".windsurfrules", (), False),
    ("windsurf", ".windsurf/rules", (".md",), False),
    ("cline", ".clinerules", (".md", ".txt"), True),
    ("cline", ".cline/rules", (".md", ".txt"), True),
)
RULE_PLACES = tuple(place[1] for place in _PLACES)
# Folders of Cline's that hold no rules, and folders of others that nobody writes rules in.
_NOT_CLINE = ("workflows", "hooks", "skills")
_SKIPPED = frozenset(("node_modules", "__pycache__", "venv", "target", "dist", "build"))
# What is known of folders: when they changed, the folders in them, and whether one is a program's that nests its rules.
KnownFolders = dict[str, tuple[int, tuple[str, ...], bool]]


class RuleFile(Struct, frozen=True):
    """A file of rules: of which program, where, how it is shown, and the folder that its globs start from ("" for a
    person's own). `within` is the place it belongs to, itself for a file that stands alone; `nested` says that the
    folder lies below the workspace."""

    program: str
    path: str
    shown: str
    folder: str
    within: str
    nested: bool = False

    @property
    def place(self) -> str:
        """How a person names the place: the same in each folder."""
        return os.path.relpath(self.within, self.folder) if self.folder else self.within


class RuleFiles(Struct, frozen=True):
    """The files for a workspace, those that win first, and a line for what was left out."""

    files: tuple[RuleFile, ...] = ()
    problems: tuple[str, ...] = ()


def rule_files(workspace: str, home: str = "", known: KnownFolders | None = None) -> RuleFiles:
    """The rules of a workspace, of the folders above it up to the root of its repository and of those in it, then those
    in the harness's own folder `home`."""
    workspace = os.path.realpath(workspace)
    folders, problems, files = upwards(workspace), list[str](), list[RuleFile]()
    top = folders[-1]
    for folder in folders:
        for place in _PLACES:
            files += _at(folder, place, workspace, top, problems)
    nesting, whole = _nesting(workspace, {} if known is None else known)
    if not whole:
        problems.append(f"rules in sub-folders are looked for in the first {_FOLDERS:,} folders alone")
    for folder in nesting:
        for place in _PLACES:
            if place[1] in (".cursor/rules", ".windsurf/rules"):
                files += _at(folder, place, workspace, top, problems)
    own = os.path.join(os.path.realpath(home), "rules") if home else ""
    files = [file for file in files if file.within != own]
    if os.path.isdir(own):
        files += (RuleFile("codewhale", path, path, "", own) for path in _files(own, (".md",), False, "", problems))
    if len(files) > MOST_FILES:
        problems.append(f"only the first {MOST_FILES} of {len(files):,} rule files are used")
    return RuleFiles(tuple(files[:MOST_FILES]), tuple(problems))


def rule_paths(workspace: str) -> list[str]:
    """The paths of a workspace's rules, which count once they are trusted."""
    return [file.path for file in rule_files(workspace).files]


def any_rules(workspace: str, home: str) -> bool:
    """Whether rules may stand in a workspace, above it, in the home, or in the first folders below."""
    workspace = os.path.realpath(workspace)
    there = (os.path.lexists(os.path.join(folder, name)) for folder in upwards(workspace) for name in RULE_PLACES)
    return os.path.isdir(os.path.join(home, "rules")) or any(there) or bool(_nesting(workspace, {}, _FEW_FOLDERS)[0])


def upwards(workspace: str) -> list[str]:
    """A workspace and the folders above it up to the top of its repository."""
    folders, top = [workspace], find_root(workspace)
    while top and folders[-1] != top and len(folders) < _PARENTS:
        folders.append(os.path.dirname(folders[-1]))
    return folders


def _at(
    folder: str, place: tuple[str, str, tuple[str, ...], bool], workspace: str, top: str, problems: list[str]
) -> Iterator[RuleFile]:
    program, name, endings, deep = place
    within = os.path.join(folder, name)
    if not os.path.lexists(within):
        return
    for path in _files(within, endings, deep, top, problems):
        if program != "cline" or os.path.relpath(path, within).split("/")[0] not in _NOT_CLINE:
            nested = folder != workspace and beneath(folder, workspace)
            yield RuleFile(program, path, os.path.relpath(path, workspace), folder, within, nested)


def _files(place: str, endings: tuple[str, ...], deep: bool, top: str, problems: list[str]) -> list[str]:
    """The files at a place by name; what a link leads to outside of `top` is none."""
    if not endings or not os.path.isdir(place):
        return [place] if not os.path.isdir(place) and _inside(place, top, problems) else []
    files: list[str] = []
    seen: set[str] = set()
    todo = [place]
    while todo and len(seen) < _FOLDERS:
        folder = todo.pop()
        real = os.path.realpath(folder)
        if real in seen or not _inside(folder, top, problems):
            continue
        seen.add(real)
        for entry in _entries(folder):
            if entry.is_dir():
                todo += [entry.path] if deep else []
            elif entry.name.endswith(endings) and (not entry.is_symlink() or _inside(entry.path, top, problems)):
                files.append(entry.path)
    return sorted(files)


def _inside(path: str, top: str, problems: list[str]) -> bool:
    if not top or beneath(os.path.realpath(path), top):
        return True
    problems.append(f"{path}: it is a link out of the workspace")
    return False


def _nesting(workspace: str, known: KnownFolders, most: int = _FOLDERS) -> tuple[list[str], bool]:
    """The folders below a workspace that hold rules of programs that nest them, the outer ones first, and whether all
    were looked at. What is known of a folder holds until it changes, so that looking again costs a stat for each."""
    nesting: list[str] = []
    todo = deque([(workspace, 0)])
    for _ in range(most):
        if not todo:
            break
        folder, depth = todo.popleft()
        try:
            info = os.stat(folder)
        except OSError:
            continue
        found = known.get(folder)
        if found is None or found[0] != info.st_mtime_ns:
            folders = [entry.name for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]
            inner = tuple(sorted(name for name in folders if name[0] != "." and name not in _SKIPPED))
            found = (info.st_mtime_ns, inner, ".cursor" in folders or ".windsurf" in folders)
            if settled(info):
                known[folder] = found
        _, inner, holds = found
        if holds and folder != workspace:
            nesting.append(folder)
        if depth < _DEPTH:
            todo += [(os.path.join(folder, name), depth + 1) for name in inner]
    return nesting, not todo


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, _ENTRIES))
    except OSError:
        return []
