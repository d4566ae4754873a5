"""Finding a git repository and reading its plain files without starting git, and the pipes and devices among them on
which git would wait for ever. `workspace.git` runs the program, and is told the repository found here."""

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Iterator

from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.process.command import Completed
from codewhale.process.sandbox.gitfiles import entries, named_files, names_back, read_small
from codewhale.protocol.errors import NextCall, ToolError

_MOST_INCLUDED = 32
_SHA = lazy(r"[0-9a-f]{40}([0-9a-f]{24})?")


class Repository(Struct, frozen=True):
    """`root` is the top of the work tree, `gitdir` its own git directory, `common` the one that holds config and
    objects (they differ in a linked worktree). All absolute."""

    root: str
    gitdir: str
    common: str


def find_repository(path: str, *, real: bool = False) -> Repository | None:
    """The repository whose work tree holds directory `path`, or None. One found above `path` counts only when it
    belongs to this user or to the owner of `path`, so that nobody can plant one over a shared folder; and one that
    stands elsewhere only when it points back, for a `.git` file could name anybody's. `real` says that the caller has
    just found no link in the path."""
    repository = _find(path if real else os.path.realpath(path))
    return repository if repository is not None and _points_back(repository) else None


def named_elsewhere(path: str) -> str:
    """The git directory that the `.git` at or above `path` names without belonging to it, "" where there is none."""
    repository = _find(os.path.realpath(path))
    return "" if repository is None or _points_back(repository) else repository.gitdir


def _points_back(repository: Repository) -> bool:
    """Whether the git directories are those of this work tree: they lie in it, or name it."""
    own = os.path.join(repository.root, ".git")
    if repository.gitdir == repository.common == own and not os.path.islink(own):
        return True
    root, gitdir, common = (os.path.realpath(path) for path in (repository.root, repository.gitdir, repository.common))
    if gitdir == common and gitdir.startswith(root.rstrip("/") + "/"):
        return True
    return names_back(gitdir, root) and common in (gitdir, os.path.dirname(os.path.dirname(gitdir)))


def _find(start: str) -> Repository | None:
    folder = start
    while True:
        repository = _repository_at(folder)
        if repository is not None:
            return repository if folder == start or _trusted_owner(repository.gitdir, start) else None
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def find_root(path: str) -> str | None:
    """The top of the work tree that holds directory `path`, or None outside a repository."""
    repository = find_repository(path)
    return None if repository is None else repository.root


def read_head(repository: Repository) -> str | None:
    """The branch that is checked out, or the full commit id when none is; None when plain files do not tell."""
    data = read_small(os.path.join(repository.gitdir, "HEAD"))
    text = (data or b"").decode("utf-8", "replace").strip()
    if text.startswith("ref: refs/heads/") and text != "ref: refs/heads/.invalid":
        return text[len("ref: refs/heads/") :]
    return text if _SHA().fullmatch(text) else None


def branch_of(workspace: str) -> str:
    """The branch that is checked out, the start of a commit id when none is, "" outside a repository."""
    head = read_head(repository) if (repository := find_repository(workspace)) is not None else None
    return (head[:12] if _SHA().fullmatch(head) else head) if head else ""


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
    repository = find_repository(path)
    if repository is None:
        return (), ()
    todo = [os.path.join(repository.common, "config"), os.path.join(repository.gitdir, "config.worktree")]
    included, hooks = list[str](), list[str]()
    while todo:
        file = todo.pop()
        files, folders = named_files(read_small(file) or b"", os.path.dirname(file))
        hooks += [os.path.normpath(os.path.join(repository.root, os.path.expanduser(folder))) for folder in folders]
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


def _repository_at(folder: str) -> Repository | None:
    gitdir: str | None = os.path.join(folder, ".git")
    assert gitdir is not None
    try:
        mode = os.stat(gitdir).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(mode):
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


# Beside the configuration, what git opens below its own folder with nearly every command, and at the top of the tree.
_OWN = ("HEAD", "index", "packed-refs", "info/exclude", "info/attributes", "commondir", "gitdir", "shallow")
_NAMES = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")
_VALUE = lazy(rb"=[ \t]*\"?([^\"\n#;\0]{1,1000})")
_SECONDS = 5.0
_LONG = 2.0  # seconds after which a command may be waiting on what never answers


async def ended_where_it_waits(running: Awaitable[Completed], repository: Repository) -> Completed:
    """What a git command ended with; ended itself when it takes long and there is something that it would wait on for
    ever. Raises ToolError not_available."""
    task = asyncio.ensure_future(running)
    try:
        await asyncio.wait((task,), timeout=_LONG)
        if not task.done():
            await refuse_specials(repository, everywhere=True)
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def refuse_specials(repository: Repository, everywhere: bool = False) -> None:
    """Raise ToolError not_available where git would wait: at once, or at any place that it may look at."""
    places = _everywhere(repository) if everywhere else _at_once(repository)
    path = await asyncio.to_thread(next, filter(_waits, places), "")
    if path:
        text = f"{path} is a pipe or a device, and git would wait for it forever. Replace it with a file, or remove it."
        fix = NextCall("list_dir", {"path": "."})
        raise ToolError("not_available", text, expected="a regular file", fix=fix)


def _at_once(repository: Repository) -> Iterator[str]:
    configs = [*config_files(repository), *steering(repository.root)[0]]
    yield from configs
    yield from (os.path.join(place, name) for place in (repository.gitdir, repository.common) for name in _OWN)
    yield from (os.path.join(repository.root, name) for name in _NAMES)
    for config in configs:  # any value can be the path of a file that git reads
        for value in _VALUE().findall(read_small(config) or b""):
            path = os.path.expanduser(os.fsdecode(value.strip()))
            yield from (os.path.join(place, path) for place in (os.path.dirname(config), repository.root))


def _everywhere(repository: Repository) -> Iterator[str]:
    """Below git's own folders, and in the tree where git reads rules; five seconds long."""
    deadline = time.monotonic() + _SECONDS
    for place in (repository.gitdir, repository.common, repository.root):
        for folder, _, names in os.walk(place):
            if time.monotonic() > deadline:
                return
            yield from (os.path.join(folder, name) for name in names if place != repository.root or name in _NAMES)


def _waits(path: str) -> bool:
    """Rules of a tree that are a link are passed over by git."""
    try:
        status = os.stat(path, follow_symlinks=os.path.basename(path) not in _NAMES)
        nothing = os.stat(os.devnull).st_rdev
    except OSError:
        return False
    return stat.S_ISFIFO(status.st_mode) or (stat.S_ISCHR(status.st_mode) and status.st_rdev != nothing)
