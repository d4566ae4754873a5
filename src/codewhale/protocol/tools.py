"""Tools as data: what a tool declares, what a call may touch, and the two faces of a result."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from codewhale.protocol.attempts import AttemptRecord
from codewhale.protocol.blocks import Block
from codewhale.protocol.files import FileChange
from codewhale.protocol.gates import GateRecord
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
    its root). `loopback`: it would serve on 127.0.0.1 of this machine, or reach what does."""

    command: str
    cwd: str = "."
    background: bool = False
    stdin: str = ""
    loopback: bool = False


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


class ChildSubject(Struct, frozen=True, tag="child"):
    """A sub-agent that would be opened: its role, its task, and what its calls may do."""

    role: str
    objective: str
    effects: tuple[Effect, ...] = ()


Subject = CommandSubject | PathSubject | UrlSubject | JobSubject | ChildSubject


class ToolSpec(Struct, frozen=True, omit_defaults=True):
    """One row of the generated catalog: everything known of a tool without importing it.

    `parameters` is the JSON Schema of its arguments; `family` the key of the class that runs it. `previews`: what it
    would do is shown before it is approved. `gate` is the provider fact without which it is closed. `source` is the
    one that brought it, "" for our own tools, and `version` the source's own. `fetches`: its results were kept
    before, and are not kept once more."""

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
    fetches: bool = False

    @property
    def touches(self) -> bool:
        return any(effect is not Effect.READS for effect in self.effects)


class StepProgress(Struct, frozen=True):
    """How far a running call has come; `total` 0 is not known."""

    done: int
    total: int
    label: str


class CallContext(Struct, frozen=True):
    """All a running call knows of its surroundings. Closed: whatever else a tool needs, its constructor takes.

    `workspace` is the absolute root; `progress` shows one line, or how far the call has come, to people and is never
    logged; `cancelled` tells whether the turn was interrupted (awaits are cancelled as well). `profile` and
    `allowances` are what policy decided that every child process of the call runs under: none, read-only or
    workspace-write, and what is allowed beyond it.
    """

    call_id: str
    session: str
    workspace: str
    mode: Mode
    progress: Callable[[str | StepProgress], None]
    cancelled: Callable[[], bool]
    profile: str = "none"
    allowances: tuple[str, ...] = ()


class ListUpdate(Struct, frozen=True, tag=True):
    """The checklist or the plan (`kind`) as the call has left it."""

    kind: str
    items: tuple[dict[str, Any], ...]
    explanation: str = ""


class SkillLoaded(Struct, frozen=True, tag=True):
    """The result is the text of a skill."""

    name: str


class ToolsShown(Struct, frozen=True, tag=True):
    """The result holds the schemas of these tools: they are known from now on."""

    names: tuple[str, ...]


class NotRun(Struct, frozen=True, tag=True):
    """The call was answered and has not run."""


class OutputKept(Struct, frozen=True, tag=True):
    """The artifact that holds all that the call's program printed, and its size."""

    sha256: str
    bytes: int = 0


class SandboxRefusal(Struct, frozen=True, tag=True):
    """The sandbox refused the call something that `allowance` would let it do."""

    allowance: str
    evidence: str
    advice: str = ""


class FactWaits(Struct, frozen=True, tag=True):
    """The call has proposed to remember something, which waits under this id; the rest is as in FactProposed."""

    id: str
    text: str
    scope: str
    origin: str = ""


class GateRun(Struct, frozen=True, tag=True):
    """The call ran a gate, or recorded a job as one."""

    gate: GateRecord


class AttemptKept(Struct, frozen=True, tag=True):
    """The call has kept the diff of the workspace as an attempt."""

    attempt: AttemptRecord


Update = (
    ListUpdate | SkillLoaded | ToolsShown | NotRun | OutputKept | SandboxRefusal | FactWaits | GateRun | AttemptKept
)


class ToolResult(Struct, frozen=True, omit_defaults=True):
    """A call's outcome: `content` for the model, `display` for people, `metadata` for programs.

    `ok` False is a soft failure: content is delivered like any other; `error` is its kind. `changes` lists the files
    the call changed, `images` what it shows, `end_turn` hands control back to the person. `updates` are what the
    session learns of it.
    """

    content: str
    ok: bool = True
    display: tuple[Block, ...] = ()
    metadata: dict[str, Any] = {}
    origin: Origin = Origin.WORKSPACE
    changes: tuple[FileChange, ...] = ()
    images: tuple[Image, ...] = ()
    end_turn: bool = False
    updates: tuple[Update, ...] = ()
    error: str = ""


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
