"""Tools as data: what a tool declares, what a call may touch, and the two faces of a result."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from codewhale.protocol.blocks import Block
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import Image
from codewhale.protocol.modes import Mode


class Effect(StrEnum):
    """What running a tool may do. Policy and scheduling see nothing else of it."""

    READS = "reads"
    WRITES = "writes"
    EXECUTES = "executes"
    NETWORK = "network"


class Origin(StrEnum):
    """Where a result's text came from; anything but workspace, harness and person taints a session."""

    WORKSPACE = "workspace"
    HARNESS = "harness"
    PERSON = "person"
    WEB = "web"
    MCP = "mcp"
    ISSUE = "issue"


class CommandSubject(Struct, frozen=True, tag="command"):
    """A command line that would run, and the text that it is given as its input; `cwd` is workspace-relative ("." is
    its root)."""

    command: str
    cwd: str = "."
    background: bool = False
    stdin: str = ""


class PathSubject(Struct, frozen=True, tag="path"):
    """A path that would be read or written, as the model gave it; `executable` where it becomes a program."""

    path: str
    write: bool = False
    executable: bool = False


class UrlSubject(Struct, frozen=True, tag="url"):
    """An address that would be dialled."""

    url: str


class JobSubject(Struct, frozen=True, tag="job"):
    """A running job that would be told `text`, or ended where there is none; "*" is every job of the session."""

    id: str
    text: str = ""


Subject = CommandSubject | PathSubject | UrlSubject | JobSubject


class ToolSpec(Struct, frozen=True, omit_defaults=True):
    """One row of the generated catalog: everything known of a tool without importing it.

    `parameters` is the JSON Schema of its arguments; `family` the key of the class that runs it. `previews`: what it
    would do is shown before it is approved. `gate` is the provider fact without which it is closed. `source` is the
    one that brought it, "" for our own tools, and `version` the source's own."""

    name: str
    family: str
    description: str
    parameters: dict[str, Any]
    effects: tuple[Effect, ...]
    parallel: bool = False
    polls: bool = False
    previews: bool = False
    gate: str = ""
    source: str = ""
    version: str = ""

    @property
    def touches(self) -> bool:
        """Whether a call may do more than read."""
        return any(effect is not Effect.READS for effect in self.effects)


class CallContext(Struct, frozen=True):
    """All a running call knows of its surroundings. Closed: whatever else a tool needs, its constructor takes.

    `workspace` is the absolute root; `progress` shows one line to people and is never logged; `cancelled`
    tells whether the turn was interrupted (awaits are cancelled as well). `profile` and `allowances` are what policy
    decided that every child process of the call runs under: none, read-only or workspace-write, and what is allowed
    beyond it.
    """

    call_id: str
    session: str
    workspace: str
    mode: Mode
    progress: Callable[[str], None]
    cancelled: Callable[[], bool]
    profile: str = "none"
    allowances: tuple[str, ...] = ()


class ToolResult(Struct, frozen=True, omit_defaults=True):
    """A call's outcome: `content` for the model, `display` for people, `metadata` for programs.

    `ok` False is a soft failure: content is delivered like any other. `changes` lists the files the call
    changed, `images` what it shows, `end_turn` hands control back to the person.
    """

    content: str
    ok: bool = True
    display: tuple[Block, ...] = ()
    metadata: dict[str, Any] = {}
    origin: Origin = Origin.WORKSPACE
    changes: tuple[FileChange, ...] = ()
    images: tuple[Image, ...] = ()
    end_turn: bool = False


class Preview(Struct, frozen=True):
    """What a call is about to do, worked out and not yet done: `display` is shown to whoever approves it, and `run`
    does exactly that."""

    display: tuple[Block, ...]
    run: Callable[[], Awaitable[ToolResult]]


class BoundCall(Struct, frozen=True):
    """A call whose arguments fit its tool: what a person would approve, and the call itself. One that previews
    answers with a Preview. `outline` tells what a person is shown beside the subjects of a call in a workspace; it may
    read files, starts nothing, and raises ToolError where the call cannot be."""

    subjects: tuple[Subject, ...]
    run: Callable[[CallContext], Awaitable[ToolResult | Preview]]
    outline: Callable[[str], tuple[Block, ...]] = lambda workspace: ()
