"""What a person said may be used of projects: files by place and by the hash of their bytes, each with the hashes of
the workspace files that it names, a skill's with those of all other files of its folder. A file whose bytes, or whose
named files' bytes, are others is not trusted."""

import contextlib
import hashlib
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codewhale.lib.clock import Clock, SystemClock, rfc3339
from codewhale.lib.text import scrub_surrogates
from codewhale.lib.toml import parse_toml
from codewhale.permissions.constitution_files import find_constitution
from codewhale.permissions.markdown_files import AGENT_FOLDER, COMMAND_FOLDER, command_files
from codewhale.permissions.skill_folders import companions, is_skill, settled
from codewhale.process.rowfile import RowFile, is_own
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.protocol.errors import ConfigError

# The files of a workspace that may steer the harness, and nothing of them is used before it is trusted.
PROJECT_FILES = (
    ".codewhale/config.toml",
    ".codewhale/permissions.toml",
    ".codewhale/hooks.toml",
    ".codewhale/constitution.json",
)
MAX_BYTES = 1 << 20
MAX_NAMED, MAX_NAMED_BYTES = 64, 64 << 20
_KNOWN = 20_000

State = Literal["trusted", "changed", "new"]


class Trusted(Struct, frozen=True, omit_defaults=True):
    """A file that was trusted: its hash, when, and the workspace files it named then with their hashes."""

    sha256: str
    at: str
    named: dict[str, str] = {}


class ProjectFile(Struct, frozen=True):
    """A project file as it is now. `changed` are files it names that are not what they were when it was trusted;
    `named` all that it names, with their hashes. `problem` is why it cannot be trusted ("" where it can)."""

    path: str
    state: State
    sha256: str
    data: bytes
    named: dict[str, str] = {}
    changed: tuple[str, ...] = ()
    problem: str = ""


class TrustStore:
    """`trust.json` of a state directory. Nothing is read before it is asked."""

    def __init__(self, home: str, clock: Clock | None = None) -> None:
        self.path = os.path.join(home, "trust.json")
        self._home = home
        self._clock = clock or SystemClock()
        self._rows = RowFile(self.path, "files", Trusted, self._refuse_foreign, again="trust again")
        self._hashes: dict[str, tuple[tuple[int, ...], str]] = {}

    def all(self) -> dict[str, Trusted]:
        """Every row by absolute path. Raises ConfigError for a file that others could have written, or damaged."""
        return self._rows.read()

    def holds(self, path: str, sha256: str, rows: Mapping[str, Trusted] | None = None) -> bool:
        """Whether the file at an absolute path was trusted with these bytes, and all that it names, or that stands
        beside a skill, is as it was then; by `rows` where they were read before. Raises ConfigError for a store that
        cannot be used."""
        row = (self.all() if rows is None else rows).get(path)
        return row is not None and row.sha256 == sha256 and not self._changed(path, row)

    def survey(self, workspace: str, texts: Iterable[str] = ()) -> list[ProjectFile]:
        """The project files that a workspace has, its commands and roles and the `texts` at these paths among them, and
        how each stands. Raises ConfigError."""
        rows = self.all()
        root = os.path.realpath(workspace)
        steering = dict.fromkeys((*(os.path.join(root, name) for name in PROJECT_FILES), find_constitution(root)))
        named = [path for place in (COMMAND_FOLDER, AGENT_FOLDER) for path in command_files(os.path.join(root, place))]
        files = (self._standing(root, path, rows.get(path)) for path in (*steering, *texts, *named))
        return [standing for standing in files if standing is not None]

    def standing(self, path: str) -> ProjectFile | None:
        """How a file of any workspace stands, None where there is none. Raises ConfigError."""
        return self._standing("", path, self.all().get(path))

    def add(self, standing: ProjectFile) -> None:
        """Trust a file exactly as it was surveyed. Raises ConfigError, and then nothing has changed."""
        if standing.problem:
            raise ConfigError(f"{standing.path}: cannot be trusted: {standing.problem}")
        with self._changing() as rows:
            rows[standing.path] = Trusted(standing.sha256, rfc3339(self._clock.now()), standing.named)
            if len(msgspec.json.format(msgspec.json.encode(rows), indent=1)) > MAX_BYTES - 1000:
                raise ConfigError(f"{self.path}: has no room for it; remove trust that is no longer needed")

    def remove(self, path: str) -> bool:
        """No longer trust the file at an absolute path; whether it was. Raises ConfigError."""
        with self._changing() as rows:
            return rows.pop(path, None) is not None

    def _changing(self) -> contextlib.AbstractContextManager[dict[str, Trusted]]:
        return self._rows.changing(self._home)

    def _refuse_foreign(self, status: os.stat_result) -> None:
        if not is_own(status) or status.st_mode & 0o022:
            raise ConfigError(f"{self.path}: other users could write it, so it is not used; remove it and trust again")

    def _standing(self, root: str, path: str, row: Trusted | None) -> ProjectFile | None:
        try:
            data = read_file(path)
        except ConfigError as error:
            if path.endswith((".toml", ".json")):
                raise
            return ProjectFile(
                path, "new" if row is None else "changed", "", b"", problem=str(error).removeprefix(f"{path}: ")
            )
        if data is None:
            return None
        sha256, named, problem = hashlib.sha256(data).hexdigest(), dict[str, str](), ""
        try:
            if is_skill(path):
                named = self._beside(path)
            elif root and path.endswith(".toml"):
                named = _named(root, data)
        except ValueError as error:
            problem = str(error)
        if row is None:
            return ProjectFile(path, "new", sha256, data, named, problem=problem)
        changed = self._changed(path, row)
        state: State = "trusted" if row.sha256 == sha256 and not changed else "changed"
        return ProjectFile(path, state, sha256, data, named, changed, problem)

    def _changed(self, path: str, row: Trusted) -> tuple[str, ...]:
        """The files of a row that are not what they were or not there, and those that came to a skill's folder."""
        links = not is_skill(path)
        try:
            names = set(row.named) if links else set(_companions(path))
        except ValueError:
            return (os.path.dirname(path),)
        if names != row.named.keys():
            return tuple(sorted(names ^ row.named.keys()))
        return tuple(name for name, sha256 in row.named.items() if self._hash(name, links) != sha256)

    def _beside(self, path: str) -> dict[str, str]:
        """The hashes of the other files of a skill's folder. Raises ValueError for what cannot be kept apart."""
        hashes, size = dict[str, str](), 0
        for name in _companions(path):
            with contextlib.suppress(OSError):
                size += os.lstat(name).st_size
            if size > MAX_NAMED_BYTES:
                raise ValueError(f"more than {MAX_NAMED_BYTES:,} bytes stand beside it")
            hashes[name] = self._hash(name, False)
            if not hashes[name] or scrub_surrogates(name) != name:
                raise ValueError(f"{name} cannot be read, or its name is not UTF-8")
        return hashes

    def _hash(self, path: str, links: bool) -> str:
        """The hash of a file's bytes, where links are not followed that of where one leads; "" for what cannot be read
        or is too large. What was hashed is known again by its times, the one of its last change being well past."""
        try:
            info = os.stat(path, follow_symlinks=links)
            if stat.S_ISLNK(info.st_mode):
                return hashlib.sha256(b"link to " + os.fsencode(os.readlink(path))).hexdigest()
        except OSError:
            return ""
        stamp = (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)
        known = self._hashes.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        data = read_small(path, MAX_NAMED_BYTES, links)
        sha256 = "" if data is None else hashlib.sha256(data).hexdigest()
        if settled(info):
            if len(self._hashes) > _KNOWN:
                self._hashes.clear()
            self._hashes[path] = stamp, sha256
        return sha256


def _companions(path: str) -> list[str]:
    folder = os.path.dirname(path)
    return [os.path.join(folder, name) for name in sorted(companions(folder))]


def read_file(path: str) -> bytes | None:
    """The bytes of a regular file, None where there is none. Raises ConfigError for one that is too large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES} bytes and cannot be trusted")
    return data


def _named(root: str, data: bytes) -> dict[str, str]:
    """The files below `root` that stand as words in a file's texts, with their hashes: what its commands would run.
    Raises ConfigError for more than can be kept apart, and for one that cannot be read."""
    hashes: dict[str, str] = {}
    for word in _words(data):
        path = os.path.normpath(os.path.join(root, word))
        if path in hashes or not path.startswith(root + os.sep) or not os.path.isfile(path):
            continue
        if len(hashes) >= MAX_NAMED:
            raise ConfigError(f"it names more than {MAX_NAMED} files; put the commands into one script")
        content = read_small(path, MAX_NAMED_BYTES)
        hashes[path] = "" if content is None else hashlib.sha256(content).hexdigest()
        if not hashes[path]:
            raise ConfigError(f"{path}: is named but cannot be read, or is too large to be trusted")
    return hashes


def _words(data: bytes) -> Iterator[str]:
    try:
        tree = parse_toml(data)
    except ValueError as error:
        raise ConfigError(f"{error}; it cannot be trusted") from None
    for text in _texts(tree):
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        try:
            words = list(lexer)
        except ValueError:
            words = text.split()
        for word in words:
            yield from (
                part for part in {word, word.rpartition("=")[2], word.lstrip("<>@")} if part and "\0" not in part
            )


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _texts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _texts(value)
