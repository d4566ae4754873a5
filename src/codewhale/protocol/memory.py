"""Memory as interfaces show it: the layers of a context, their items, and proposals that wait."""

from typing import Literal

from msgspec import Struct

from codewhale.protocol.requests import Op, Query

Trust = Literal["user", "repo", "derived", "learned"]
LayerPlace = Literal["head", "tail", "not sent"]


class MemoryItem(Struct, frozen=True, omit_defaults=True):
    """One item of a layer: a fact, a rule file, a log. `source` is a path with its line, a call of a session, or an
    address; times are RFC 3339, "" where unknown; `bytes` is its size where it stands. `tainted` is what comes from
    foreign text; `unsent` is a fact that no new session begins with, and `newer` the id of one that contradicts it."""

    id: str
    text: str
    scope: str
    source: str = ""
    trust: Trust = "user"
    created: str = ""
    last_used: str = ""
    uses: int = 0
    bytes: int = 0
    sha256: str = ""
    expires: str = ""
    tainted: bool = False
    unsent: bool = False
    newer: str = ""


class LayerRow(Struct, frozen=True, omit_defaults=True):
    """A layer in the dashboard. `items` and `bytes` are what it holds, `sent` and `tokens` what of the next request is
    its; `changed` is when it last changed (RFC 3339, "" unknown). `actions` are lines to type, by their short names;
    `note` says what is particular, such as that a layer is not part of this version."""

    name: str
    title: str
    scope: str
    trust: Trust
    place: LayerPlace
    items: int = 0
    bytes: int = 0
    sent: int = 0
    tokens: int = 0
    changed: str = ""
    actions: tuple[tuple[str, str], ...] = ()
    note: str = ""
    faults: int = 0


class ContextPart(Struct, frozen=True):
    """What else a request consists of (the system text, tools, messages by who wrote them, the envelope): bytes of its
    body, and tokens by estimate."""

    name: str
    bytes: int
    tokens: int


class WaitingFact(Struct, frozen=True, omit_defaults=True):
    """A proposal that waits for a person. `contradicts` are the texts of stored facts that have its key, or cannot hold
    beside it."""

    id: str
    text: str
    scope: str
    created: str = ""
    session: str = ""
    message: str = ""
    origin: str = ""
    contradicts: tuple[str, ...] = ()


class GetFacts(Query[tuple[MemoryItem, ...]], frozen=True, tag="get_facts"):
    """The person's own facts that hold in a workspace, in the order of their files."""

    workspace: str


class GetWaiting(Query[tuple[WaitingFact, ...]], frozen=True, tag="get_waiting"):
    """The proposals that wait for a decision in a workspace, oldest first."""

    workspace: str


class DecideFact(Op[None], frozen=True, tag="decide_fact", omit_defaults=True):
    """A person's decision on a proposal of a workspace, by its id or the beginning of it: take it, in other words where
    `text` has them, or drop it. A session that is named is told. Raises SessionError where nothing waits under the
    id, or it cannot be stored."""

    workspace: str
    id: str
    decision: Literal["take", "drop"]
    text: str = ""
    session: str = ""
