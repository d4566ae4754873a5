"""Sub-agents as data: sessions that work for another session, and how they stand."""

from typing import Any, Literal

from msgspec import Struct

from codewhale.protocol.events import Envelope
from codewhale.protocol.ops import Limits
from codewhale.protocol.requests import Op, Query
from codewhale.protocol.scopes import Scope

# The built-in roles that only read, by all their names: opening one is not asked about.
READING_ROLES = frozenset(
    "explore explorer exploration scout plan planner planning awaiter review reviewer code_review".split()
)
ChildStatus = Literal["running", "completed", "failed", "interrupted", "cancelled"]


class ChildRequest(Struct, frozen=True, omit_defaults=True):
    """A conversation to be run for session `parent`. `kind` says what for; `name` is unique among the parent's children
    ("" makes one up); `tools` and `paths` narrow what the role leaves; an empty model and effort are the role's, or
    the parent's. `folder` is below the parent's workspace; a `checkout` is one of its own. `fork` begins with the
    parent's conversation. `schema` is what the answer must fit. Limits that are None are the configured ones."""

    parent: str
    objective: str
    kind: str = "agent"
    name: str = ""
    role: str = "general"
    tools: tuple[str, ...] | None = None
    paths: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    limits: Limits = Limits()
    folder: str = ""
    checkout: bool = False
    fork: bool = False
    schema: dict[str, Any] | None = None


class ChildPlan(Struct, frozen=True, omit_defaults=True):
    """What opening a child comes to: its request with all that was left open filled in, the scope, and what its first
    request takes. `cached` of its `tokens` are expected to come from the provider's cache; `cost` is None where the
    price is unknown."""

    request: ChildRequest
    scope: Scope
    provider: str
    tokens: int
    cached: int = 0
    cost: float | None = None
    currency: str = ""


class ChildView(Struct, frozen=True, omit_defaults=True):
    """How a child stands. `session` is the id of its log; `answer` is what it came to, also where it failed, and why
    is the `error`. `task` counts its tasks: the first, and each message that woke it. What was used and `doing` are of
    the last one; `reported`: the parent's conversation holds its end."""

    session: str
    name: str
    role: str
    objective: str
    status: ChildStatus
    kind: str = "agent"
    model: str = ""
    folder: str = ""
    forked: bool = False
    task: int = 1
    steps: int = 0
    tokens: int = 0
    cached: int = 0
    seconds: float = 0.0
    cost: float | None = None
    currency: str = "USD"
    answer: str = ""
    error: str = ""
    doing: str = ""
    reported: bool = False

    @property
    def id(self) -> str:
        return agent_id(self.session)

    @property
    def over(self) -> bool:
        return self.status != "running"


def agent_id(session: str) -> str:
    """The id by which a model may name a child instead of its name."""
    return f"agent_{session[-8:]}"


class ListChildren(Query[tuple[ChildView, ...]], frozen=True, tag="list_children"):
    """The children of a session that are not released, in the order of their opening."""

    session: str


class ReadEvents(Query[tuple[Envelope, ...]], frozen=True, tag="read_events"):
    session: str  # open or not; the first of the events after:
    seq: int = 0


class TellChild(Op[ChildView], frozen=True, tag="tell_child"):
    """A message to a child; one that is over goes on with it. Raises SessionError."""

    session: str
    name: str
    text: str


class StopChild(Op[ChildView], frozen=True, tag="stop_child"):
    """Stop a child and all that work for it. Raises SessionError."""

    session: str
    name: str
