"""Attached sources: folders, files and resources of servers that are owned elsewhere. They are known by name, and tools
read them where they are; nothing of them is sent by itself."""

import asyncio
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.clock import Clock, rfc3339
from codewhale.lib.files import private_dir
from codewhale.lib.text import counted, one_line, sanitise
from codewhale.memory.manifest import (
    SECONDS,
    Progress,
    SourceVersion,
    StoppedError,
    opened_file,
    read_chunks,
    read_version,
)
from codewhale.protocol.errors import ConfigError

T = TypeVar("T")

MOST_SOURCES = 100
LONGEST_PATH = 1024
GLOBAL = "global"
NO_SERVER = "kept by its address: an MCP server that offers it reads it"
_NAME = re.compile(r"[^\W_][\w.-]{0,63}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]")


class AttachedSource(Struct, frozen=True, omit_defaults=True):
    """A source as it was attached. `path` is real and absolute, or an address; `scope` is global or the id of a
    workspace, `owner` the user that it belonged to. `version` is that of then, None of an address."""

    name: str
    path: str
    kind: Literal["folder", "file", "address"]
    scope: str
    attached: str
    owner: int = -1
    version: SourceVersion | None = None

    @property
    def missing(self) -> str:
        """Why it cannot be read as it was attached, "" where it can."""
        if self.kind == "address":
            return NO_SERVER
        try:
            about = os.lstat(self.path)
        except (OSError, ValueError) as error:
            return f"gone: {getattr(error, 'strerror', None) or error}"
        same = stat.S_ISDIR(about.st_mode) if self.kind == "folder" else stat.S_ISREG(about.st_mode)
        if not same or about.st_uid != self.owner or os.path.realpath(self.path) != self.path:
            return "something else is there now: attach it again"
        readable = os.access(self.path, os.R_OK | (os.X_OK if self.kind == "folder" else 0))
        return "" if readable else "it cannot be read any longer"

    @property
    def line(self) -> str:
        """The source in a line for the person."""
        scope = "every workspace" if self.scope == GLOBAL else "this workspace"
        state = "; ".join(dict.fromkeys(filter(None, (described(self.version), self.missing))))
        return f"{self.name:<16} {self.kind} {one_line(self.path, 300)} ({scope}, {self.attached[:10]}): {state}"


class SourceChecks(Protocol):
    """What is known elsewhere of paths and workspaces; all but `workspace_id` raise ConfigError."""

    def attachable(self, path: str, workspace: str) -> str:
        """Where a path really is that may be attached."""

    def fillable(self, path: str, workspace: str) -> str:
        """Where a folder really is, or would be, that copies may be put in."""

    def workspace_id(self, workspace: str) -> str:
        """What sources of a workspace are kept under."""

    def remember(self, workspace: str) -> None:
        """Something is about to be kept for a workspace."""


class SourceRows(Protocol):
    """The file of attached sources by their keys: read whole, changed under a lock; both raise ConfigError."""

    path: str

    def read(self) -> dict[str, AttachedSource]: ...
    def changing(self, *folders: str) -> AbstractContextManager[dict[str, AttachedSource]]: ...


class Sources:
    """The sources of a home: `rows` are those of its `memory/sources.json`."""

    def __init__(self, home: str, rows: SourceRows, checks: SourceChecks, clock: Clock) -> None:
        self.serves: Callable[[str], str] = lambda address: ""  # the name of a server that offers what is there
        self._folders = (home, os.path.dirname(rows.path))
        self._checks = checks
        self._clock = clock
        self._rows = rows
        self._read: tuple[tuple[int, ...], tuple[AttachedSource, ...]] = ((), ())
        self._ids: dict[str, str] = {}
        self._versions: dict[str, SourceVersion] = {}

    # ------------------------------------------------------------------ what there is

    def of(self, workspace: str) -> tuple[AttachedSource, ...]:
        """Those of a workspace, then those of every one, each by name. Raises ConfigError where the file cannot be
        used."""
        rows = self._current()
        own = self._scope(workspace) if any(one.scope != GLOBAL for one in rows) else ""
        return tuple(sorted((one for one in rows if one.scope in (own, GLOBAL)), key=_order))

    def readable(self, workspace: str) -> tuple[AttachedSource, ...]:
        """Those that tools may read as they are now; none where the file cannot be used."""
        try:
            return tuple(one for one in self.of(workspace) if not one.missing)
        except ConfigError:
            return ()

    def get(self, workspace: str, name: str) -> AttachedSource:
        """The source of this name; that of the workspace before that of all. Raises ConfigError."""
        sources = self.of(workspace)
        for one in sources:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in sources) or "none"
        raise ConfigError(f"There is no attached source {one_line(name, 80)!r}; attached: {known}.")

    def text(self, workspace: str) -> str:
        """What the model is told: names and places, nothing of what they hold."""
        lines = [
            f"- {one.name}: {one.kind} {_quoted(one.path)}, read only"
            for one in sorted(self.readable(workspace), key=_order)
        ]
        lines += [
            f"- {one.name}: resource {_quoted(one.path)} of the MCP server {server}, read by mcp_read_resource"
            for one in self._addresses(workspace)
            if (server := self.serves(one.path))
        ]
        how = (
            "Search them only where the task needs it: grep_files, file_search, list_dir, read_file with path NAME/..."
        )
        return (
            "\n".join(("The user attached sources that are kept outside the workspace.", *lines, how)) if lines else ""
        )

    def _addresses(self, workspace: str) -> tuple[AttachedSource, ...]:
        try:
            return tuple(one for one in self.of(workspace) if one.kind == "address")
        except ConfigError:
            return ()

    # ------------------------------------------------------------------ attaching and detaching

    async def attach(
        self,
        workspace: str,
        path: str,
        name: str = "",
        everywhere: bool = False,
        tell: Callable[[int, int], None] | None = None,
    ) -> AttachedSource:
        """Attach a folder, a file or an address; one that is attached already under this name is taken as it is now.
        `tell(done, total)` is told from another thread how many bytes are hashed. Raises ConfigError."""
        attached = rfc3339(self._clock.now())
        path = path.strip()
        if _ADDRESS.match(path):
            source = AttachedSource(_named(name, path), _address(path), "address", GLOBAL, attached)
        else:
            real = self._checks.attachable(path, workspace)
            if len(real) > LONGEST_PATH or sanitise(real) != real or "\n" in real or "\t" in real:
                raise ConfigError(
                    f"{one_line(real, 200)} cannot be attached: its path has control characters or more than "
                    f"{LONGEST_PATH} characters. Rename it."
                )
            about = os.stat(real)
            kind: Literal["folder", "file"] = "folder" if stat.S_ISDIR(about.st_mode) else "file"
            source = AttachedSource(_named(name, real), real, kind, GLOBAL, attached, about.st_uid)
            version = await self.version(source, tell)
            source = replace(source, version=version)
        if not everywhere:
            self._checks.remember(workspace)
            source = replace(source, scope=self._checks.workspace_id(workspace))
        key = f"{source.scope}/{source.name}"
        with self._rows.changing(*self._folders) as rows:
            there = rows.get(key)
            if there is not None and there.path != source.path:
                raise ConfigError(
                    f"{source.name} is the name of another source ({there.path}). Attach this one `as` another name."
                )
            if there is None and len(rows) >= MOST_SOURCES:
                raise ConfigError(f"There are {MOST_SOURCES} attached sources already. Detach one first.")
            rows[key] = source
        return source

    def detach(self, workspace: str, name: str) -> AttachedSource:
        """Take a source away; what it is stays as it is. Raises ConfigError."""
        source = self.get(workspace, name)
        with self._rows.changing(*self._folders) as rows:
            rows.pop(f"{source.scope}/{source.name}", None)
        return source

    # ------------------------------------------------------------------ versions

    async def version(self, source: AttachedSource, tell: Callable[[int, int], None] | None = None) -> SourceVersion:
        """The version of a folder or file as it is now, read beside the event loop. Raises ConfigError where it cannot
        be read."""
        known = self._versions.get(source.path) or source.version
        version, _ = await _aside(lambda progress: read_version(source.path, known, progress), "read", tell)
        self._versions[source.path] = version
        return version

    # ------------------------------------------------------------------ copying

    async def export(self, workspace: str, name: str, folder: str) -> str:
        """Copy what a source is, with its manifest, into a new folder of its name in `folder`; what was copied, in a
        line. Raises ConfigError, and then nothing of it is left there."""
        source = self.get(workspace, name)
        if why := source.missing:
            raise ConfigError(f"{name} cannot be exported: {why}.")
        top = self._checks.fillable(folder, workspace)
        if top == source.path or top.startswith(source.path + "/"):
            raise ConfigError(f"{name} cannot be exported into itself. Name a folder elsewhere.")
        target = os.path.join(top, source.name)
        version = await _aside(lambda progress: _exported(source, target, progress), "exported")
        return f"Copied {source.name} to {target}: {described(version)}. Its manifest.json lists every file."

    # ------------------------------------------------------------------ rows

    def _scope(self, workspace: str) -> str:
        if workspace not in self._ids:
            self._ids[workspace] = self._checks.workspace_id(workspace)
        return self._ids[workspace]

    def _current(self) -> tuple[AttachedSource, ...]:
        try:
            about = os.stat(self._rows.path)
        except OSError:
            return ()
        now = (about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size)
        if self._read[0] != now:
            self._read = (now, tuple(self._rows.read().values()))
            self._ids.clear()
        return self._read[1]


def changed_since(path: str, recorded: str, known: SourceVersion | None = None, seconds: float = SECONDS) -> str:
    """Why what is at a path is not the version that was recorded, "" where it is; `known` is a version whose hashes
    are taken over where it still stands."""
    if not recorded:
        return "not comparable: its version was not recorded"
    try:
        now, _ = read_version(path, known, seconds=seconds)
    except FileNotFoundError:
        return "gone: nothing is there now"
    except (OSError, PathRefused) as error:
        return f"cannot be read now: {getattr(error, 'strerror', None) or error}"
    if recorded in (now.sha256, now.times):
        return ""
    return f"changed since, or cannot be compared: {now.limit}" if now.limit else "changed since"


def described(version: SourceVersion | None) -> str:
    """A version in a few words."""
    if version is None:
        return NO_SERVER
    limit = f" ({version.limit})" if version.limit else ""
    return f"{counted(version.files, 'file')}, {version.bytes:,} bytes, sha256 {version.id[:12]}{limit}"


async def _aside(work: Callable[[Progress], T], done: str, tell: Callable[[int, int], None] | None = None) -> T:
    """Work on a source beside the event loop, which a cancel stops. Raises ConfigError where it cannot be `done`."""
    stop = threading.Event()
    progress = Progress(stop.is_set, tell) if tell is not None else Progress(stop.is_set)
    try:
        return await asyncio.to_thread(work, progress)
    except (OSError, PathRefused, StoppedError) as error:
        raise ConfigError(f"The source cannot be {done}: {getattr(error, 'strerror', None) or error}.") from None
    finally:
        stop.set()


def _exported(source: AttachedSource, target: str, progress: Progress) -> SourceVersion:
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.mkdir(target, 0o700)
    except OSError as error:
        raise ConfigError(f"{target} cannot be made: {error.strerror}. Nothing there is written over.") from None
    try:
        return _copied(source, target, progress)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _copied(source: AttachedSource, target: str, progress: Progress) -> SourceVersion:
    version, entries = read_version(source.path, None, progress)
    if version.limit:
        raise OSError(f"{version.limit}. Copy it with a program of your own")
    root = Root(source.path if source.kind == "folder" else os.path.dirname(source.path))
    files = private_dir(os.path.join(target, "files"))
    for entry in entries:
        place = os.path.join(files, entry.name)
        if entry.kind == "folder":
            os.makedirs(place, exist_ok=True)
        elif entry.kind == "file":
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "xb") as copy:
                copy.writelines(progress.checked(read_chunks(opened_file(root, entry.name))))
    if read_version(source.path, version, progress)[0] is not version:
        raise OSError("it changed while it was copied; try again")
    listed = [replace(one, name=_shown(one.name), target=_shown(one.target)) for one in entries]
    manifest = msgspec.json.encode({"source": replace(source, version=version), "entries": listed})
    with open(os.path.join(target, "manifest.json"), "xb") as file:
        file.write(msgspec.json.format(manifest, indent=1) + b"\n")
    return version


def _shown(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _order(source: AttachedSource) -> tuple[bool, str]:
    return source.scope == GLOBAL, source.name


def _named(name: str, path: str) -> str:
    """The name of a source: the one that is given, else the end of its path. Raises ConfigError."""
    made = re.sub(r"[^\w.-]+", "-", path.rstrip("/").rpartition("/")[2]).strip("-._")[:64]
    if not _NAME.fullmatch(name or made):
        raise ConfigError(
            f"{one_line(name or made, 80)!r} cannot be the name of a source: use up to 64 letters, digits, . _ and -, "
            "a letter or digit first (attach PATH as NAME)."
        )
    return name or made


def _address(address: str) -> str:
    if len(address) > LONGEST_PATH or sanitise(address) != address or len(address.split()) != 1:
        raise ConfigError(f"{one_line(address, 200)} cannot be attached: it is no plain address.")
    if "@" in address.split("/")[2]:
        raise ConfigError("The address holds a user name or a password. Give it without them.")
    return address


def _quoted(path: str) -> str:
    """A path in quotes, with nothing that could end what it stands in."""
    return msgspec.json.encode(path).decode().replace("<", "\\u003c")
