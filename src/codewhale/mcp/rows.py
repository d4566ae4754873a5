"""Tools of servers as rows of the catalog: names that every wire takes, each for one tool alone, and texts of others
made harmless and held to a bound."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line, sanitise
from codewhale.mcp.config import wire_part
from codewhale.mcp.entries import ConfiguredServer
from codewhale.mcp.terms import OfferedTool, ServerOffer
from codewhale.protocol.marks import inert
from codewhale.protocol.tools import Effect, ToolSpec

LONGEST_NAME = 64
MOST_DESCRIPTION, MOST_NOTE, MOST_TOOLS, MOST_NAMES = 1_200, 400, 500, 5_000
# What a call of somebody else's program may do; what it says of itself makes that no less.
EFFECTS = (Effect.NETWORK, Effect.WRITES)
_OWN = frozenset(("mcp_read_resource", "mcp_get_prompt", "mcp_list_resources", "mcp_list_resource_templates"))
_STOOD = (
    "its name, {}, has stood for {} of {} since CodeWhale was started; start it anew, or give the server another name"
)
_TEXTS = frozenset(("description", "title", "$comment"))
_VALUES = frozenset(("enum", "const", "default", "examples", "required", "type"))


class Refused(Struct, frozen=True):
    """A tool that is not to be had, and why."""

    server: str
    tool: str
    why: str

    @property
    def line(self) -> str:
        return f"{one_line(self.server, 80)}: {one_line(self.tool, 120)}: {self.why}"


class WireTable(Struct, frozen=True):
    """Which name stands for which tool: `tools` maps it to (server, tool); `renamed` are those whose own names no wire
    takes, as lines; `refused` those that there is no name for."""

    tools: Mapping[str, tuple[str, str]]
    renamed: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()

    def name_of(self, server: str, tool: str) -> str:
        return next((name for name, row in self.tools.items() if row == (server, tool)), "")


class NameOwner(Struct, frozen=True):
    """Which tool of which server a name was given to: the entry by its place, or by what is written in it."""

    key: str
    digest: str
    server: str
    tool: str

    @classmethod
    def of(cls, server: ConfiguredServer, tool: str) -> "NameOwner":
        return cls(server.key, server.digest, server.name, tool)

    def like(self, other: "NameOwner") -> bool:
        """Whether it is the same tool, though its entry was changed or moved."""
        same = self.key == other.key or (self.server, self.digest) == (other.server, other.digest)
        return same and self.tool == other.tool


class NameOwners:
    """Which tool each name has stood for: it stands for no other any more."""

    def __init__(self) -> None:
        self._rows: dict[str, NameOwner] = {}
        self._names = Counter[str]()

    def why_not(self, name: str, own: NameOwner) -> str:
        """Why a tool does not get a name; "" where it does."""
        owner = self._rows.get(name)
        if owner is not None and not owner.like(own):
            return _STOOD.format(name, one_line(owner.tool, 80), one_line(owner.server, 80))
        if owner is None and self._names[own.server] >= MOST_NAMES:
            return f"its server has had {MOST_NAMES:,} names since CodeWhale was started; start it anew"
        return ""

    def give(self, name: str, own: NameOwner) -> None:
        self._names[own.server] += name not in self._rows
        self._rows[name] = own


def wire_table(offers: Iterable[tuple[ConfiguredServer, ServerOffer]], owners: NameOwners | None = None) -> WireTable:
    """The names of all tools that are offered, those of the first server first. One that would stand for two tools is
    the first one's; one that has stood for a tool, as `owners` says, is that one's for good."""
    tools: dict[str, tuple[str, str]] = {}
    renamed, refused = list[str](), list[Refused]()
    owners = owners or NameOwners()
    for server, offer in offers:
        for number, tool in enumerate(offer.tools):
            name, own = wire_name(server.name, tool.name), NameOwner.of(server, tool.name)
            why = _why_not(tools, name, server, tool, number)
            if not why and server.takes(tool.name):
                why = owners.why_not(name, own)
            if why:
                refused.append(Refused(server.name, tool.name, why))
            elif server.takes(tool.name):
                tools[name] = (server.name, tool.name)
                owners.give(name, own)
                plain = f"mcp_{server.name}_{tool.name}"
                renamed += [f"{one_line(plain, 160)} is called {name}"] * (plain != name)
    return WireTable(tools, tuple(renamed), tuple(refused))


def _why_not(
    tools: Mapping[str, tuple[str, str]], name: str, server: ConfiguredServer, tool: OfferedTool, number: int
) -> str:
    if name in _OWN:
        return f"its name, {name}, is one of our own tools'"
    if not tool.name:
        return "it has no name"
    if number >= MOST_TOOLS:
        return f"a server brings at most {MOST_TOOLS} tools"
    if name in tools and server.takes(tool.name):
        other = tools[name]
        return f"its name, {name}, is that of {one_line(other[1], 80)} of {one_line(other[0], 80)}"
    return ""


def wire_name(server: str, tool: str) -> str:
    """The name that a model calls a tool by."""
    name = f"mcp_{wire_part(server)}_{wire_part(tool)}"
    if len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()[:6]
    return f"{name[: LONGEST_NAME - 7]}_{mark}"


def row(name: str, server: str, tool: OfferedTool) -> ToolSpec:
    """A tool as the catalog has it. What its server says stands behind whose word it is."""
    said = bounded(tool.description or tool.title, MOST_DESCRIPTION)
    return ToolSpec(
        name=name,
        family="",
        description=f"MCP server {one_line(server, 64)}: {said or 'it does not say what this does.'}",
        parameters=contained_schema(tool.input_schema),
        effects=EFFECTS,
    )


def contained_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments with its texts harmless and bounded."""
    plain = {"type": "object", **schema} if schema.get("type", "object") == "object" else schema
    contained = _contained({key: value for key, value in plain.items() if key != "$schema"}, 0)
    assert isinstance(contained, dict)
    return contained


def _contained(node: Any, depth: int, named: bool = False) -> Any:
    """`named`: the keys of this object are names of arguments, not words of the schema."""
    if depth > 80:
        return node
    if isinstance(node, list):
        return [_contained(item, depth + 1) for item in node]
    if not isinstance(node, dict):
        return node
    made = {}
    for key, value in node.items():
        if not named and key in _TEXTS:
            made[key] = bounded(str(value), MOST_NOTE)
        elif not named and key in _VALUES:
            made[key] = value
        else:
            made[key] = _contained(value, depth + 1, named=not named and key in ("properties", "$defs", "definitions"))
    return made


def bounded(text: str, most: int) -> str:
    """Somebody else's text: on one line, with nothing in it that ends or begins a block, and no longer than this."""
    flat = re.sub(r"\s+", " ", sanitise(text)).strip()
    flat = flat if len(flat) <= most else f"{flat[: most - 1]}…"
    return inert(flat)


def digest(tool: OfferedTool) -> str:
    """What a tool says of itself, as a hash."""
    return hashlib.sha256(msgspec.json.encode(tool, order="sorted")).hexdigest()


def said_of(tool: OfferedTool) -> str:
    """What a tool says of itself, for a person to compare."""
    schema = msgspec.json.format(msgspec.json.encode(tool.input_schema, order="sorted"), indent=1).decode()
    notes = msgspec.json.encode(tool.annotations, order="sorted").decode()
    return sanitise(f"{tool.title}\n{tool.description}\nannotations {notes}\narguments {schema}\n".lstrip())
