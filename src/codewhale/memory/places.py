"""Which workspaces are the same: those of one first commit and one remote, so that a clone has the memory of its
original; where there is no repository, those of one path. `workspace.json` beside the facts keeps what is known."""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.lib.files import atomic_write
from codewhale.lib.text import scrub_surrogates
from codewhale.memory.files import locked
from codewhale.memory.layers import MemoryRefused

NAME = "workspace.json"
_MOST_PATHS = 20
_MOST_HOPS = 5
_LONGEST = 64 << 10
_SCP = re.compile(r"(?:[^@/\s]*@)?(\[[^\]/]+\]|[^:/\s]{2,}):(?!:)(.*)", re.DOTALL)


class KnownWorkspace(Struct, frozen=True):
    """Its first commit and its remote, each "" where unknown, and where it was seen: the inode of the git directory by
    path, 0 where it was no repository; the last one is the newest."""

    commit: str = ""
    remote: str = ""
    paths: dict[str, int] = {}


class RepositoryPlace(Protocol):
    """Where a repository stands: the top of its work tree, and the git directory with its configuration."""

    @property
    def root(self) -> str: ...
    @property
    def common(self) -> str: ...


class GitAccess(Struct, frozen=True):
    """How git is asked: for the repository that holds a path, for what a configuration file sets, and, which starts
    git, for the commits of a repository that have no parent; none where it cannot say."""

    repository: Callable[[str], RepositoryPlace | None]
    settings: Callable[[str], Sequence[tuple[str, str]]]
    first_commits: Callable[[str], Sequence[str]]


class Places:
    """Workspaces below `root`, the folder of memory."""

    def __init__(self, root: str, git: GitAccess) -> None:
        self._root, self._folder = root, os.path.join(root, "workspace")
        self._git = git
        self._ids: dict[str, str] = {}

    def folder(self, workspace: str) -> str:
        """The name of the folder of a workspace's memory. Git is asked only where it may be a known one elsewhere."""
        real = os.path.realpath(workspace)
        if real not in self._ids and os.path.isdir(self._folder) and (id := self._resolve(self._look(real), False)):
            self._ids[real] = id
        return self._ids.get(real) or workspace_folder(real)

    def remember(self, workspace: str) -> None:
        """A fact of this workspace is about to be stored. Raises MemoryRefused."""
        real = os.path.realpath(workspace)
        if real in self._ids and os.path.exists(os.path.join(self._folder, self._ids[real], NAME)):
            return
        try:
            with locked(self._root, self._folder):
                self._ids[real] = self._resolve(self._look(real), True) or workspace_folder(real)
        except OSError as error:
            raise MemoryRefused(f"Nothing was changed: {self._folder}: {error.strerror or error}.") from None

    def known(self) -> dict[str, KnownWorkspace]:
        """All that are remembered, by the names of their folders; one whose file is damaged has nothing in it."""
        try:
            names = sorted(os.listdir(self._folder))
        except OSError:
            return {}
        return {name: self._read(name) for name in names if os.path.isdir(os.path.join(self._folder, name))}

    def _look(self, real: str) -> "_Seen":
        repository = self._git.repository(real)
        if repository is None:
            return _Seen(real)
        root, common = os.path.realpath(repository.root), repository.common
        remote = self._remote(os.path.join(common, "config"), root)
        return _Seen(root, os.stat(common).st_ino, remote, not os.path.exists(os.path.join(common, "shallow")))

    def _remote(self, config: str, root: str) -> str:
        """The remote that a configuration file names: origin, or the first by name; that of the other repository where
        it is a path, relative to `root`. "" for none."""
        for _ in range(_MOST_HOPS):
            urls = dict[str, str]()
            for name, value in self._git.settings(config):
                if name.startswith("remote.") and name.endswith(".url"):
                    urls.setdefault(name[len("remote.") : -len(".url")], value.strip())
            url = urls.get("origin") or next((urls[name] for name in sorted(urls)), "")
            if remote := normalised(url):
                return remote
            path = unquote("/" + url[7:].partition("/")[2]) if url.startswith("file://") else url
            if not path or "://" in path or "::" in path:
                return ""
            root = os.path.normpath(os.path.join(root, os.path.expanduser(path)))
            other = self._git.repository(root)
            config = os.path.join(root if other is None else other.common, "config")
        return ""

    def _resolve(self, seen: "_Seen", adding: bool) -> str | None:
        """The folder of a workspace; None where nothing is known of it and nothing is added."""
        known = self.known()
        id = next((name for name, one in known.items() if seen.is_at(one)), None)
        commits: Sequence[str] = ()
        if seen.complete and (not known[id].commit if id else adding or any(map(seen.may_be, known.values()))):
            commits = sorted(self._git.first_commits(seen.path))
        id = id or self._of_commits(seen, commits, known)
        if id not in known and not adding:
            return None
        one = known.get(id, KnownWorkspace())
        paths = {path: inode for path, inode in one.paths.items() if path != seen.name} | {seen.name: seen.inode}
        now = KnownWorkspace(
            one.commit or (commits[0] if commits else ""),
            one.remote or seen.remote,
            dict(list(paths.items())[-_MOST_PATHS:]),
        )
        if now != one:
            self._write(id, now, adding)
        return id

    def _of_commits(self, seen: "_Seen", commits: Sequence[str], known: dict[str, KnownWorkspace]) -> str:
        same = [name for name, one in known.items() if one.remote == seen.remote]
        for name in same:
            if known[name].commit in commits:
                return name
        unsure = [name for name in same if seen.remote and not (commits and known[name].commit)]
        if len(unsure) == 1:
            return unsure[0]
        if commits:
            return _hashed(f"{commits[0]}\0{seen.remote}")
        return _hashed(f"\0{seen.remote}") if seen.remote and not unsure else workspace_folder(seen.path)

    def _read(self, name: str) -> KnownWorkspace:
        try:
            fd = os.open(os.path.join(self._folder, name, NAME), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            return msgspec.json.decode(read_regular(fd, _LONGEST) or b"", type=KnownWorkspace)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return KnownWorkspace()

    def _write(self, name: str, one: KnownWorkspace, needed: bool) -> None:
        folder = os.path.join(self._folder, name)
        lenient = contextlib.nullcontext() if needed else contextlib.suppress(OSError, MemoryRefused)
        with lenient, locked(folder):
            atomic_write(os.path.join(folder, NAME), msgspec.json.format(msgspec.json.encode(one), indent=1))


class _Seen(Struct, frozen=True):
    """A workspace as it is now. `complete` is a repository that has its first commit."""

    path: str
    inode: int = 0
    remote: str = ""
    complete: bool = False

    @property
    def name(self) -> str:
        return scrub_surrogates(self.path)

    def is_at(self, one: KnownWorkspace) -> bool:
        """Whether it was known at this path, and no other repository was put there since."""
        inode = one.paths.get(self.name)
        same = inode is not None and (inode == self.inode or 0 in (inode, self.inode))
        return same and (self.remote == one.remote or not (self.remote and one.remote))

    def may_be(self, one: KnownWorkspace) -> bool:
        """Whether git may find it to be this one, as far as its record tells."""
        return one.remote == self.remote or not one.paths


def workspace_folder(workspace: str) -> str:
    """The name of the folder of a workspace that is known by its path alone."""
    return _hashed(os.path.realpath(workspace))


def normalised(url: str) -> str:
    """host/path of an address, however it is written and without who asks; "" for a path and what is no address."""
    try:
        parts = urlsplit(url)
        host, path = (parts.hostname or "", unquote(parts.path)) if parts.scheme not in ("", "file") else ("", "")
    except ValueError:
        return ""
    if "://" not in url:
        scp = _SCP.fullmatch(url)
        host, path = (scp[1].strip("[]").lower(), scp[2]) if scp is not None else ("", "")
    path = re.sub(r"/+", "/", path).strip("/").removesuffix(".git").rstrip("/")
    return f"{host.rstrip('.')}/{path}" if host and path else ""


def _hashed(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]
