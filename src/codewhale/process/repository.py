"""Finding a git repository and reading what stands in its plain files, without starting git.

Separate from `git`, which runs the program: both must mean the same repository, so git is told the one found here.
"""

import os
import re

from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.process.sandbox.gitconfig import entries, named_files
from codewhale.process.sandbox.gitplaces import names_back

_SMALL = 1 << 20
_MOST_INCLUDED = 32
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class Repository(Struct, frozen=True):
    """`root` is the top of the work tree, `gitdir` its own git directory, `common` the one that holds config and
    objects (they differ in a linked worktree). All absolute."""

    root: str
    gitdir: str
    common: str


def find_repository(path: str) -> Repository | None:
    """The repository whose work tree holds directory `path`, or None. One found above `path` counts only when it
    belongs to this user or to the owner of `path`, so that nobody can plant one over a shared folder; and one that
    stands elsewhere only when it points back, for a `.git` file could name anybody's."""
    found = _find(path)
    return found if found is not None and _points_back(found) else None


def named_elsewhere(path: str) -> str:
    """The git directory that the `.git` at or above `path` names without belonging to it, "" where there is none."""
    found = _find(path)
    return "" if found is None or _points_back(found) else found.gitdir


def _points_back(found: Repository) -> bool:
    """Whether the git directories are those of this work tree: they lie in it, or name it."""
    root, gitdir, common = (os.path.realpath(path) for path in (found.root, found.gitdir, found.common))
    if gitdir == common and gitdir.startswith(root.rstrip("/") + "/"):
        return True
    return names_back(gitdir, root) and common in (gitdir, os.path.dirname(os.path.dirname(gitdir)))


def _find(path: str) -> Repository | None:
    folder = start = os.path.realpath(path)
    while True:
        found = _repository_at(folder)
        if found is not None:
            return found if folder == start or _trusted_owner(found.gitdir, start) else None
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def find_root(path: str) -> str | None:
    """The top of the work tree that holds directory `path`, or None outside a repository."""
    found = find_repository(path)
    return None if found is None else found.root


def read_head(repository: Repository) -> str | None:
    """The branch that is checked out, or the full commit id when none is; None when plain files do not tell."""
    data = read_small(os.path.join(repository.gitdir, "HEAD"))
    text = (data or b"").decode("utf-8", "replace").strip()
    if text.startswith("ref: refs/heads/") and text != "ref: refs/heads/.invalid":
        return text[len("ref: refs/heads/") :]
    return text if _SHA.fullmatch(text) else None


def config_files(repository: Repository) -> list[str]:
    """The files git takes its configuration from here, the system's own left out; some may be absent."""
    home = os.environ.get("HOME", "")
    xdg = os.environ.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else "")
    files = [os.path.join(repository.common, "config"), os.path.join(repository.gitdir, "config.worktree")]
    if xdg:
        files.append(os.path.join(xdg, "git", "config"))
    if home:
        files.append(os.path.join(home, ".gitconfig"))
    return files


def steering(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files that the configuration of the repository around `path` includes, at most 32, and the folders that it
    takes hooks from, both absolute."""
    found = find_repository(path)
    if found is None:
        return (), ()
    todo = [os.path.join(found.common, "config"), os.path.join(found.gitdir, "config.worktree")]
    included, hooks = list[str](), list[str]()
    while todo:
        file = todo.pop()
        files, folders = named_files(read_small(file) or b"", os.path.dirname(file))
        hooks += [os.path.normpath(os.path.join(found.root, os.path.expanduser(folder))) for folder in folders]
        fresh = [name for name in map(os.path.normpath, files) if name not in included]
        included += fresh[: _MOST_INCLUDED - len(included)]
        todo += fresh if len(included) < _MOST_INCLUDED else []
    return tuple(included), tuple(hooks)


def config_entries(path: str) -> list[tuple[str, str]]:
    """The settings of one configuration file, (name, value); none of one that git could not read either."""
    try:
        return entries(read_small(path) or b"")
    except ValueError:
        return []


def read_small(path: str) -> bytes | None:
    """The bytes of a regular file of at most 1 MiB, else None; never waits on a FIFO or a device."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    return read_regular(fd, _SMALL)


def _repository_at(folder: str) -> Repository | None:
    gitdir: str | None = os.path.join(folder, ".git")
    assert gitdir is not None
    if os.path.isfile(gitdir):
        gitdir = _pointed(gitdir, b"gitdir:")
    if gitdir is None or not os.path.lexists(os.path.join(gitdir, "HEAD")):
        return None
    common = _pointed(os.path.join(gitdir, "commondir"), b"") or gitdir
    if not os.path.isdir(os.path.join(common, "objects")):
        return None
    return Repository(folder, gitdir, common)


def _pointed(file: str, prefix: bytes) -> str | None:
    data = read_small(file)
    if data is None or not data.startswith(prefix):
        return None
    target = os.fsdecode(data[len(prefix) :].strip())
    return os.path.normpath(os.path.join(os.path.dirname(file), target)) if target and "\0" not in target else None


def _trusted_owner(gitdir: str, start: str) -> bool:
    try:
        return os.stat(gitdir).st_uid in (os.geteuid(), os.stat(start).st_uid)
    except OSError:
        return False
