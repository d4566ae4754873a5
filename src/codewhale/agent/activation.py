"""Deferred tools that a session came to know: which, in what order, and the array that grows behind its head.

The head is pinned once; a tool that search showed, or that was called unseen, joins the array after it. All of one
result are one edge. Where the provider runs tools that its array does not hold, the array stays as it is.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.agent.pending_call import PendingCall
from codewhale.catalog.lifecycle import DEFAULT_PROFILE, PROFILES, closed_gate
from codewhale.catalog.registry import Catalog
from codewhale.catalog.shapes import shape_of
from codewhale.models.dialects.base import Provider
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.events import Event, HeaderPinned, PrefixInvalidated, ToolActivated
from codewhale.protocol.tools import NotRun, ToolResult, ToolSpec, ToolsShown
from codewhale.protocol.views import ToolsView
from codewhale.repair.codes import RepairCode
from codewhale.session.projection import header_sha256
from codewhale.session.session import Session
from codewhale.session.state import SessionState, tool_name

MOST_NAMES, MOST_BYTES = 8, 16_384
_SHOWN_ARGUMENTS = 6000


class HeadChoice(Struct, frozen=True):
    """What is configured of the array: its profile ("" leaves it to the provider), and tools that join every head."""

    profile: str = ""
    always: tuple[str, ...] = ()


class ServedTools(Struct, frozen=True):
    """Tools of servers that join an array behind the head, in this order. `left_out` is how many more there are."""

    rows: tuple[ToolSpec, ...] = ()
    left_out: int = 0

    def within(self, provider: Provider, most: int = MOST_BYTES) -> "ServedTools":
        """Those that fit into `most` bytes as the provider is told of them."""
        kept, size = [], 0
        for row in self.rows:
            size += len(provider.dialect.tools_json([row]).encode())
            if size > most:
                break
            kept.append(row)
        return ServedTools(tuple(kept), self.left_out + len(self.rows) - len(kept))


def chosen_profile(choice: HeadChoice, provider: Provider) -> str:
    """The profile of a head that is pinned now. Raises ConfigError for one that there is not."""
    profile = choice.profile or str(provider.settings.facts.get("tool_profile", "")) or DEFAULT_PROFILE
    if profile not in PROFILES:
        raise ConfigError(f"there is no tool profile {profile!r}; it is one of {', '.join(PROFILES)}")
    return profile


def head_tools(
    catalog: Catalog, choice: HeadChoice, state: SessionState, provider: Provider, served: Sequence[ToolSpec] = ()
) -> str:
    """The tools value of a head that is pinned now: the profile's, then those of servers, then what the session has
    activated before and what is still there and open, as it was shown."""
    own = catalog.head_of(chosen_profile(choice, provider), choice.always)
    rows = (*own, *(row for row in served if row not in own))
    if grows(provider):
        named = {row.name for row in rows}
        known = ((catalog.spec(name), tool.spec) for name, tool in state.activated.items() if name not in named)
        facts = provider.settings.facts
        present = ((row, shown) for row, shown in known if row is not None)
        rows += tuple(shown or row for row, shown in present if not closed_gate(row.name, row.gate, facts, state.model))
    return provider.dialect.tools_json(rows)


def grows(provider: Provider) -> bool:
    return not provider.settings.facts.get("calls_undeclared_tools", False)


def is_known(state: SessionState, name: str) -> bool:
    """Whether the model was shown a tool: in the array as it is sent, or by a search."""
    return name in state.activated or name in state.shown


def is_unseen(state: SessionState, call: PendingCall) -> bool:
    """Whether a call names a tool that the session has not shown; one by a name that the array holds is seen, and so is
    one by a verb, however it was spelt, where the array holds verbs."""
    verb = ("shell_run",) if RepairCode.VERB in call.repairs else ()
    return not call.direct and not any(is_known(state, name) for name in (call.name, call.call.name, *verb))


def is_outdated(state: SessionState, spec: ToolSpec) -> bool:
    """Whether the model was shown another schema of a tool than the one that it has now."""
    known = state.activated.get(spec.name)
    return known is not None and known.spec is not None and known.spec.parameters != spec.parameters


def activation(session: Session, rows: Iterable[ToolSpec]) -> list[Event]:
    """The events by which tools become known, in order; none for those that are. The least recently used make room."""
    state, provider = session.state, session.provider
    fresh = [row for row in rows if not is_known(state, row.name)][:MOST_NAMES]
    if state.header is None or not fresh:
        return []
    sizes = {row.name: len(provider.dialect.tools_json([row]).encode()) for row in fresh}
    while len(fresh) > 1 and sum(sizes.values()) > MOST_BYTES:
        del sizes[fresh.pop().name]
    dropped = _dropped(state, sizes)
    events: list[Event] = [
        ToolActivated(row.name, sizes[row.name], () if number else tuple(dropped), row)
        for number, row in enumerate(fresh)
    ]
    if grows(provider):
        tools_json = _grown(state.header.tools_json, dropped, provider.dialect.tools_json(fresh))
        sha256 = header_sha256(state.header.system, tools_json)
        pinned = msgspec.structs.replace(state.header, tools_json=tools_json, sha256=sha256)
        events += [PrefixInvalidated("activation", 0), pinned]
    return events


def _dropped(state: SessionState, sizes: dict[str, int]) -> list[str]:
    """What must leave to make room for tools of these sizes, the least recently used first."""
    names, total = len(sizes), sum(sizes.values())
    order = {name: (tool.used, place) for place, (name, tool) in enumerate(state.activated.items())}
    dropped = []
    for name in sorted(order, key=order.__getitem__, reverse=True):
        names, total = names + 1, total + state.activated[name].bytes
        if names > MOST_NAMES or total > MOST_BYTES:
            dropped.append(name)
    return dropped[::-1]


def _grown(tools_json: str, dropped: Sequence[str], more: str) -> str:
    """A tools value with some tools less and `more` behind; the others keep their bytes."""
    kept = msgspec.json.decode(tools_json or "[]", type=list[msgspec.Raw])
    parts = [bytes(raw).decode() for raw in kept if tool_name(msgspec.json.decode(raw)) not in dropped]
    return f"[{','.join([*parts, more[1:-1]])}]"


def array(header: HeaderPinned) -> list[tuple[str, int]]:
    rows = msgspec.json.decode(header.tools_json or "[]", type=list[msgspec.Raw])
    return [(tool_name(msgspec.json.decode(raw)), len(bytes(raw))) for raw in rows]


def tools_view(session: Session) -> ToolsView:
    state, header = session.state, session.state.pinned
    rows = array(header)
    return ToolsView(
        profile=header.profile or DEFAULT_PROFILE,
        dialect=header.dialect,
        request=state.requests,
        bytes=len(header.tools_json.encode()),
        tools=tuple(rows),
        activated=tuple(name for name, _ in rows if name in state.activated),
    )


# ---------------------------------------------------------------------- called unseen


def schema_first(call: PendingCall, spec: ToolSpec) -> ToolResult:
    """What a sound call of a tool that was never shown is answered where it does more than read: the schema."""
    text = (
        f"{spec.name} was not run: it is not one of the tools you have been shown, and it does more than read. Here it "
        f"is. The call was sound: to run it, send it again unchanged.\n{_shown(spec)}"
    )
    return ToolResult(text, metadata=_hydrated(call, spec), updates=(NotRun(), ToolsShown((spec.name,))))


def with_schema(result: ToolResult, call: PendingCall, spec: ToolSpec) -> ToolResult:
    """A refusal of a call that was made unseen, with the schema it should have followed."""
    return msgspec.structs.replace(
        result,
        content=f"{result.content}\n\n{spec.name} as it is:\n{_shown(spec)}",
        metadata={**result.metadata, **_hydrated(call, spec)},
        updates=(*result.updates, NotRun(), ToolsShown((spec.name,))),
    )


def _shown(spec: ToolSpec) -> str:
    row = {"name": spec.name, "description": spec.description, "schema": spec.parameters}
    return msgspec.json.encode(row).decode()


def _hydrated(call: PendingCall, spec: ToolSpec) -> dict[str, Any]:
    properties: dict[str, Any] = shape_of(spec).get("properties", {})
    required = list(shape_of(spec).get("required", ()))
    received = sorted(call.arguments or _sent(call.call.arguments))
    missing = [name for name in required if name not in received]
    unexpected = [name for name in received if name not in properties]
    return {
        "event": "tool.schema_hydrated",
        "tool": spec.name,
        "tool_name": spec.name,
        "executed": False,
        "retry_required": True,
        "reason": "deferred_tool_first_use",
        "deferred_tool_loaded": True,
        "expected_fields": [_field(name, schema, name in required) for name, schema in properties.items()],
        "received_fields": received,
        "missing_required_fields": missing,
        "unexpected_fields": unexpected,
        "likely_corrections": _corrections(unexpected, [name for name in properties if name not in received]),
    }


def _field(name: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    field = {"name": name, "type": schema.get("type", "any"), "required": required}
    return {**field, "enum": schema["enum"]} if "enum" in schema else field


def _sent(raw: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw[:_SHOWN_ARGUMENTS])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _corrections(unexpected: list[str], free: list[str]) -> list[dict[str, str]]:
    """Arguments that a tool lacks with the ones that were probably meant."""
    import difflib

    pairs = ((name, difflib.get_close_matches(name, free, 1, 0.5)) for name in unexpected)
    return [{"received": name, "expected": close[0]} for name, close in pairs if close]
