"""What is told of sessions that are made out again or taken over from another program."""

from typing import Any

from msgspec import Struct


class Then(Struct, frozen=True):
    """What the log says came of a call; `started` that it had passed every gate."""

    ok: bool
    ms: int
    content: str
    started: bool


class Now(Struct, frozen=True):
    """What came of a call that was run again; `same` that the model would read the very same."""

    ok: bool
    same: bool
    content: str


class Replayed(Struct, frozen=True):
    """One call as it is understood today. `state` is the lifecycle state of `name` as sent, `canonical` the tool,
    `outcome` run or refuse; `drift` says how that differs from what it did then, "" when it does not. `now` is None
    and `not_run` says why where it was not run again."""

    seq: int
    call_id: str
    name: str
    canonical: str
    state: str | None
    outcome: str
    arguments: dict[str, Any] | None
    repairs: tuple[str, ...]
    lossy: bool
    error: dict[str, Any] | None
    then: Then | None
    drift: str
    now: Now | None = None
    not_run: str = ""


class ReplayedSource(Struct, frozen=True):
    """An attached source that a session read, and why what is there now is not the version that was recorded last, ""
    where it is."""

    source: str
    path: str
    sha256: str
    changed: str


class Imported(Struct, frozen=True):
    """What came of an import. `renamed` counts calls by `old -> new` name; `unknown` those of tools that are not here;
    `left_out` pieces that have no form here."""

    session: str
    messages: int
    calls: int
    renamed: dict[str, int]
    unknown: dict[str, int]
    left_out: int
