"""Whether a git command that reads may do more: run a program that a repository names, or read another one's."""

import functools
import os
import re
import struct
from collections.abc import Iterator

from codewhale.lib.bounded import read_regular
from codewhale.permissions.shell import ground
from codewhale.process.repository import Repository, config_entries, find_repository, named_elsewhere, read_small
from codewhale.process.sandbox.gitconfig import steering
from codewhale.protocol.protected import is_git_directory

_MOST_INDEX = 1 << 26
_GITLINK = 0o160000
# Settings that steer commands which write or dial, and none that reads.
_IDLE = re.compile(
    r"core\.(?:editor|hookspath)|user\.signingkey|(?:commit|tag|push)\.gpgsign|(?:alias|difftool|mergetool|merge|rebase|sequence"
    r"|credential|https?|gui|gitflow|svn-remote)\..*|remote\..*\.(?:receivepack|proxy|gh-resolved)|(?:diff|merge)\.(?:gui)?tool"
)
# Commands that look into the work trees of submodules, each of which has settings of its own.
_DEEP = frozenset("status diff diff-files diff-index describe grep ls-files stash".split())


def look_anew() -> None:
    """Forget what was seen of the disk: a line is about to be looked at, and what it meets is as it is then."""
    ground.real.cache_clear()
    why_more.cache_clear()


@functools.lru_cache(maxsize=256)
def why_more(folder: str, command: str) -> str:
    """Why a git command in a folder may do more than read the repository that the folder is in; "" for nothing. Kept
    until one look at a line is over."""
    found = find_repository(folder)
    if found is None and named_elsewhere(folder):
        return "its .git names a repository that does not name it"
    bare = _bare_at(folder, found.root if found is not None else "/")
    if bare:
        return f"{bare} looks like the inside of a repository"
    if found is None:
        return ""
    for file in (os.path.join(found.common, "config"), os.path.join(found.gitdir, "config.worktree")):
        data = read_small(file)
        if data is None and os.path.lexists(file):
            return f"{file} cannot be read"
        for name, value in steering(data or b""):
            if not _IDLE.fullmatch(name) and not (name == "core.pager" and value in ("", "cat")):
                return f"its setting {name} may start a program"
            if name == "core.hookspath" and _hooked(os.path.join(found.root, os.path.expanduser(value))):
                return "it has a hook that reading starts"
    if _hooked(os.path.join(found.common, "hooks")):
        return "it has a hook that reading starts"
    return _submodule(found) if command in _DEEP else ""


def _small_names(found: Repository) -> bool:
    """Whether names of objects are of the length that the index is read with here."""
    settings = config_entries(os.path.join(found.common, "config"))
    return all(name != "extensions.objectformat" or value == "sha1" for name, value in settings)


def _hooked(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, "post-index-change"))


def _bare_at(folder: str, top: str) -> str:
    """The folder, or one above it up to the top of the work tree, that git takes for a git directory."""
    folder = os.path.realpath(folder)
    while True:
        try:
            names = set(os.listdir(folder))
        except OSError:
            names = set()
        if ".git" not in names and is_git_directory(names):
            return folder
        if folder in (top, "/"):
            return ""
        folder = os.path.dirname(folder)


def _submodule(found: Repository) -> str:
    """Which repository stands where the index says that one does."""
    shared = [name for name in _names(found.gitdir) if name.startswith("sharedindex.")]
    for name in ("index", *shared):
        file = os.path.join(found.gitdir, name)
        try:
            data = read_regular(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), _MOST_INDEX)
        except FileNotFoundError:
            continue
        except OSError:
            data = None
        if data is None:
            return f"{file} cannot be read"
        if struct.pack(">I", _GITLINK) not in data:
            continue
        if not _small_names(found):
            return "repositories may be in it"
        try:
            inside = [path for path in _gitlinks(data) if os.path.lexists(os.path.join(found.root, path, ".git"))]
        except (ValueError, struct.error):
            return "repositories may be in it"
        if inside:
            return f"the repository {inside[0]} in it has settings of its own"
    return ""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _gitlinks(data: bytes) -> Iterator[str]:
    """The paths of an index at which it holds a commit. Raises ValueError for a form that is not known."""
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3):
        raise ValueError("the version of the index")
    at = 12
    for _ in range(count):
        (mode,) = struct.unpack_from(">I", data, at + 24)
        (flags,) = struct.unpack_from(">H", data, at + 60)
        begin = at + (64 if flags & 0x4000 else 62)
        end = data.index(b"\0", begin)
        if mode == _GITLINK:
            yield os.fsdecode(data[begin:end])
        at += (end - at) // 8 * 8 + 8
