"""What a person said may be used of projects: files by place and by the hash of their bytes, each with the hashes of
the workspace files that it names. A file whose bytes, or whose named files' bytes, are others is not trusted."""

import contextlib
import hashlib
import os
import shlex
import stat
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from codewhale.lib.clock import Clock, SystemClock, rfc3339
from codewhale.lib.toml import parse_toml
from codewhale.permissions.constitution import find_constitution
from codewhale.permissions.markdown_files import AGENT_FOLDER, COMMAND_FOLDER, command_files
from codewhale.permissions.skill_folders import skill_files, workspace_places
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

State = Literal["trusted", "changed", "new"]


class Trusted(Struct, frozen=True, omit_defaults=True):
    """A file that was trusted: its hash, when, and the workspace files it named then with their hashes."""

    sha256: str
    at: str
    named: dict[str, str] = {}


class ProjectFile(Struct, frozen=True):
    """A project file as it is now. `changed` are files it names that are not what they were when it was trusted;
    `named` all that it names, with their hashes."""

    path: str
    state: State
    sha256: str
    data: bytes
    named: dict[str, str] = {}
    changed: tuple[str, ...] = ()


class TrustStore:
    """`trust.json` of a state directory. Nothing is read before it is asked."""

    def __init__(self, home: str, clock: Clock | None = None) -> None:
        self.path = os.path.join(home, "trust.json")
        self._home = home
        self._clock = clock or SystemClock()
        self._rows = RowFile(self.path, "files", Trusted, self._refuse_foreign, again="trust again")

    def all(self) -> dict[str, Trusted]:
        """Every row by absolute path. Raises ConfigError for a file that others could have written, or damaged."""
        return self._rows.read()

    def holds(self, path: str, sha256: str) -> bool:
        """Whether the file at an absolute path was trusted with these bytes, and all that it names is as it was then.
        Raises ConfigError for a store that cannot be used."""
        row = self.all().get(path)
        return row is not None and row.sha256 == sha256 and not _changed(row)

    def survey(self, workspace: str, texts: Iterable[str] = ()) -> list[ProjectFile]:
        """The project files that a workspace has, its skills, commands and roles among them and the `texts` at these
        paths, and how each stands. Raises ConfigError."""
        rows = self.all()
        root = os.path.realpath(workspace)
        steering = dict.fromkeys((*(os.path.join(root, name) for name in PROJECT_FILES), find_constitution(root)))
        skills = (path for place in workspace_places(root) for path, _ in skill_files(place))
        named = [path for place in (COMMAND_FOLDER, AGENT_FOLDER) for path in command_files(os.path.join(root, place))]
        # What is too large is none of these; where they are listed it is told.
        used = [path for path in (*skills, *named, *texts) if _fits(path)]
        files = (_standing(root, path, rows) for path in (*steering, *used))
        return [standing for standing in files if standing is not None]

    def add(self, standing: ProjectFile) -> None:
        """Trust a file exactly as it was surveyed. Raises ConfigError, and then nothing has changed."""
        with self._changing() as rows:
            rows[standing.path] = Trusted(standing.sha256, rfc3339(self._clock.now()), standing.named)

    def remove(self, path: str) -> bool:
        """No longer trust the file at an absolute path; whether it was. Raises ConfigError."""
        with self._changing() as rows:
            return rows.pop(path, None) is not None

    def _changing(self) -> contextlib.AbstractContextManager[dict[str, Trusted]]:
        return self._rows.changing(self._home)

    def _refuse_foreign(self, status: os.stat_result) -> None:
        if not is_own(status) or status.st_mode & 0o022:
            raise ConfigError(f"{self.path}: other users could write it, so it is not used; remove it and trust again")


def _fits(path: str) -> bool:
    try:
        return os.stat(path).st_size <= MAX_BYTES
    except OSError:
        return False


def _standing(root: str, path: str, rows: dict[str, Trusted]) -> ProjectFile | None:
    data = read_file(path)
    if data is None:
        return None
    sha256 = hashlib.sha256(data).hexdigest()
    named = _named(root, data) if path.endswith(".toml") else {}
    row = rows.get(path)
    if row is None:
        return ProjectFile(path, "new", sha256, data, named)
    changed = _changed(row)
    state: State = "trusted" if row.sha256 == sha256 and not changed else "changed"
    return ProjectFile(path, state, sha256, data, named, changed)


def _changed(row: Trusted) -> tuple[str, ...]:
    return tuple(path for path, sha256 in row.named.items() if _hash(path) != sha256)


def read_file(path: str) -> bytes | None:
    """The bytes of a regular file, None where there is none. Raises ConfigError for one that is too large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES} bytes and cannot be trusted")
    return data


def _hash(path: str) -> str:
    """The hash of a file's bytes, "" for one that cannot be read or is too large."""
    data = read_small(path, MAX_NAMED_BYTES)
    return "" if data is None else hashlib.sha256(data).hexdigest()


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
        hashes[path] = _hash(path)
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
