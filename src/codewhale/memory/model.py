"""What memory holds: facts of a person, proposals of a model, sources that are owned elsewhere, and faults."""

from typing import Literal

from msgspec import Struct

FactScope = Literal["global", "workspace"]


class Fact(Struct, frozen=True):
    """A line of a person's MEMORY.md. `created` is "2026-05-03 22:14 UTC" ("" where the line has no date), `key` what
    it is about ("" where that is not clear), `source` where it came from ("" for a person's own words), `tainted`
    whether that was foreign text. `expires` is a date, or ""; `line` counts from 1. A line without an id has one that
    is made from its text."""

    id: str
    text: str
    scope: FactScope = "workspace"
    created: str = ""
    key: str = ""
    source: str = ""
    tainted: bool = False
    expires: str = ""
    line: int = 0


class FactList(Struct, frozen=True):
    """The facts of one file in its order, a line for each thing that is wrong with it, and the sha256 of its bytes
    ("" where there is no file)."""

    facts: tuple[Fact, ...] = ()
    problems: tuple[str, ...] = ()
    sha256: str = ""


class Proposal(Struct, frozen=True, omit_defaults=True):
    """A fact that a model proposes, until a person decides. `session` and `call_id` are where it was proposed,
    `message` the beginning of the text that it came from, `origin` whose text that was where it is foreign (a page, a
    file, a server); `created` is as a fact's."""

    id: str
    text: str
    scope: FactScope = "workspace"
    workspace: str = ""
    key: str = ""
    session: str = ""
    call_id: str = ""
    message: str = ""
    origin: str = ""
    tainted: bool = False
    created: str = ""


class FoundFact(Struct, frozen=True):
    """A fact that a search has found. `superseded` is the id of a newer one with the same key, or ""."""

    fact: Fact
    score: float
    superseded: str = ""


class MemoryFault(Struct, frozen=True):
    """Something wrong with memory or what is beside it. `code` is stable; `fix` is what to do, `safe` whether
    `--fix` does it."""

    code: str
    level: Literal["error", "warning"]
    text: str
    fix: str = ""
    path: str = ""
    safe: bool = False
