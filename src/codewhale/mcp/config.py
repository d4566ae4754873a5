"""The files that name MCP servers: the person's own and the project's. Each is read by itself, and an entry with a
fault leaves the others as they are; of two with one name the person's own counts."""

import os
import stat
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.mcp.entries import ConfigFault, ConfiguredServer, EntryFault, Source, Times, read_entry, read_times

PROJECT_FILES = (os.path.join(".codewhale", "mcp.json"), ".mcp.json")
TABLES = ("servers", "mcpServers")
MAX_BYTES = 1 << 20
MOST_SERVERS = 100
_TOP = frozenset((*TABLES, "timeouts", "$schema", "inputs"))

Stamp = tuple[int, int, int, int]


class ConfigFile(Struct, frozen=True):
    """A file that may name servers, and how it was when it was read (None: there was none)."""

    path: str
    source: Source
    stamp: Stamp | None = None


class Configured(Struct, frozen=True):
    """All servers that are named, in the order in which they count, and what is wrong with a file as a whole."""

    servers: tuple[ConfiguredServer, ...] = ()
    faults: tuple[ConfigFault, ...] = ()
    files: tuple[ConfigFile, ...] = ()

    def get(self, name: str) -> ConfiguredServer | None:
        return next((server for server in self.servers if server.name == name), None)

    @property
    def lines(self) -> tuple[str, ...]:
        """Every fault, in a line each."""
        return tuple(fault.line for fault in (*self.faults, *(one.fault for one in self.servers if one.fault)))


def config_files(user_file: str, workspace: str) -> tuple[ConfigFile, ...]:
    """The files of a workspace with their stamps, the person's own first."""
    root = os.path.realpath(workspace)
    named: list[tuple[str, Source]] = [(user_file, "user")]
    named += [(os.path.join(root, name), "project") for name in PROJECT_FILES]
    return tuple(ConfigFile(path, source, _stamp(path)) for path, source in named)


def read_config(files: Iterable[ConfigFile]) -> Configured:
    """What the files name. Never raises: what cannot be used is a fault."""
    servers: dict[str, ConfiguredServer] = {}
    faults: list[ConfigFault] = []
    files = tuple(files)
    for file in files:
        found, wrong = read_file(file)
        faults += wrong
        for server in found:
            before = servers.get(server.name) or _like(server, servers.values())
            if before is None:
                servers[server.name] = server
            else:
                faults.append(_taken(server, before))
    kept = list(servers.values())
    if len(kept) > MOST_SERVERS:
        text = f"names more than {MOST_SERVERS} servers with the others"
        faults.append(ConfigFault(kept[MOST_SERVERS].file, "servers", text, "Take some out"))
    return Configured(tuple(kept[:MOST_SERVERS]), tuple(faults), files)


def read_file(file: ConfigFile) -> tuple[list[ConfiguredServer], list[ConfigFault]]:
    """The servers of one file and what is wrong with it as a whole."""
    path = file.path
    if file.stamp is None:
        return [], []
    try:
        tree = read_tree(path, own=file.source == "user")
        times = read_times(tree["timeouts"]) if "timeouts" in tree else Times()
        rows = _rows(tree)
    except EntryFault as wrong:
        return [], [ConfigFault(path, wrong.key, wrong.text, wrong.remedy)]
    return [read_entry(name, row, path, file.source, times) for name, row in rows], []


def read_tree(path: str, *, own: bool) -> dict[str, Any]:
    """The object in a file; `own` is the person's, which nobody else may write. Raises EntryFault."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as opened:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise EntryFault("file", "is no regular file", "Put a file in its place")
            if own and (status.st_uid not in (os.geteuid(), 0) or status.st_mode & stat.S_IWOTH):
                raise EntryFault("file", "can be written by other users", "Run chmod go-w on it")
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise EntryFault("file", f"cannot be read: {error.strerror}", "Make it readable, or remove it") from None
    if len(data) > MAX_BYTES:
        raise EntryFault("file", f"is larger than {MAX_BYTES:,} bytes", "Take out what is no server")
    return parse_tree(data)


def parse_tree(data: bytes) -> dict[str, Any]:
    """The object that a file holds; an empty one for nothing. Raises EntryFault."""
    if not data.strip():
        return {}
    try:
        tree = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = f"is no JSON ({error})"
        raise EntryFault("file", text, "Correct it there; comments and commas before } are no JSON") from None
    if not isinstance(tree, dict):
        raise EntryFault("file", "holds no object", 'It looks like {"servers": {"name": {"command": "..."}}}')
    return tree


def _rows(tree: dict[str, Any]) -> list[tuple[str, Any]]:
    for key in tree:
        if key not in _TOP:
            import difflib

            near = difflib.get_close_matches(key, TABLES, n=1)
            raise EntryFault(key[:80], "is unknown", f"Write {near[0] if near else 'servers'}, or take it out")
    rows: list[tuple[str, Any]] = []
    for table in TABLES:
        named = tree.get(table, {})
        if not isinstance(named, dict):
            raise EntryFault(table, "is no object", f'Write "{table}": {{"name": {{"command": "..."}}}}')
        rows += named.items()
    names = [name for name, _ in rows]
    for name in names:
        if names.count(name) > 1:
            raise EntryFault(f"servers.{name[:80]}", "stands in servers and in mcpServers", "Keep one of the two")
    return rows


def _like(server: ConfiguredServer, others: Iterable[ConfiguredServer]) -> ConfiguredServer | None:
    """One whose name makes the same names of tools."""
    return next((one for one in others if wire_part(one.name) == wire_part(server.name)), None)


def _taken(server: ConfiguredServer, before: ConfiguredServer) -> ConfigFault:
    where = "" if before.file == server.file else f" of {before.file}"
    text = f"has the name of {before.name}{where}, which counts"
    return ConfigFault(server.file, f"servers.{server.name}", text, "Give it another name")


def wire_part(name: str) -> str:
    """A name as it stands in names of tools: what no wire takes becomes _."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_" for letter in name)


def _stamp(path: str) -> Stamp | None:
    try:
        about = os.stat(path)
    except OSError:
        return None if not os.path.islink(path) else (0, 0, 0, 0)
    return about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_size


def with_fault(server: ConfiguredServer, wrong: EntryFault) -> ConfiguredServer:
    """A server that cannot be used as it is configured."""
    place = f"servers.{server.name}.{wrong.key}"
    return replace(server, fault=ConfigFault(server.file, place, wrong.text, wrong.remedy))
