"""What a model's name for a tool means: our own names, aliases, verbs, other spellings, other harnesses' tools."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.catalog.lifecycle import ALIASES, is_retired
from codewhale.catalog.schema import check
from codewhale.catalog.shapes import shape_of
from codewhale.protocol.errors import NextCall
from codewhale.protocol.tools import ToolSpec
from codewhale.repair.codes import RepairCode
from codewhale.repair.fit import fit, fold
from codewhale.repair.foreign import ForeignRow, applies, instead, patch_within, rows_of, translate
from codewhale.repair.intents import Unclear, lower

_PREFIX = re.compile(
    r"^(?:(?:functions?|tools?|default_api|multi_tool_use|namespace|assistant|builtin|mcp__\w+?_)[.:/_]+|[A-Za-z0-9]+__)+"
)
_SEVERAL = frozenset(("parallel", "multitooluseparallel", "usemcptool", "calltool", "usetool", "invoketool", "batch"))
_OPEN = {"type": "object", "properties": {}, "additionalProperties": True}
_SUFFIX = re.compile(r"(?:\s*</[\w-]*>?|\s*<[|｜].*|[:#@]\d+|\(\s*\)|[.:_-]?(?:tool|function))+$", re.I)
_LONGEST = 100
# Retired names that say nothing behind a prefix: `exec.wait` is another tool's.
_COMMON = ("wait",)
_ONE_OF = {"agent_open": ("prompt", "items")}


class Named(Struct, frozen=True):
    """A name that was understood: the tool, the deprecated or hidden alias it was called by, the repair codes, and
    where it was another harness's name or a verb, what its arguments came to. A guess is lossy."""

    spec: ToolSpec
    alias: str = ""
    repairs: tuple[RepairCode, ...] = ()
    lossy: bool = False
    given: dict[str, Any] | None = None


class NameRefused(Exception):
    """A name that stands for something we know and do not have; the text says what to do instead, and `fix` is a call
    that does."""

    def __init__(self, why: str, fix: NextCall | None = None) -> None:
        super().__init__(why)
        self.fix = fix


def forms(name: str) -> tuple[str, ...]:
    """A name as it came, and without what models and their servers put around one."""
    said = name.strip()[:_LONGEST]
    return tuple(dict.fromkeys((name, said, _SUFFIX.sub("", _PREFIX.sub("", said)) or said)))


def bare_names(name: str) -> tuple[str, ...]:
    """The same, and what stands behind the prefixes of a name and before its number."""
    pieces = [piece for piece in re.split(r"[.:/\s]+", name.strip()[:_LONGEST]) if not piece.isdigit()]
    return (*forms(name), *(piece for piece in pieces[-1:] if piece.lower() not in _COMMON))


def successor(name: str, arguments: Any, rows: Mapping[str, ToolSpec]) -> NextCall | None:
    """The call of a live tool that one of a retired name stands for, where its arguments say enough for it."""
    for form in filter(is_retired, bare_names(name) if isinstance(arguments, dict) else ()):
        found = _foreign(form, arguments, rows)
        call = None if found is None or found.given is None else _fitting(found.spec, found.given)
        if call is not None:
            return None if "message" in call.arguments and "name" not in call.arguments else call
    return None


def enough(tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether one of those arguments came of which a tool needs one and its schema requires none."""
    return not (needed := _ONE_OF.get(tool)) or any(name in arguments for name in needed)


def resolve(name: str, arguments: Any, rows: Mapping[str, ToolSpec]) -> Named | None:
    """What `name` means among `rows`, None when nothing. `arguments` (as far as they could be read) tell one foreign
    tool from another of that name. Raises NameRefused, Unclear."""
    if name in rows and rows[name].source:
        return Named(rows[name])
    said, bare = name.strip()[:_LONGEST], forms(name)[-1]
    for form in forms(name):
        found = _shared(form, arguments, rows) or _intent(form, arguments, rows) or _named(form, arguments, rows)
        if found is not None:
            found = _patching(found, arguments, rows)
        if found is not None:
            return (
                found
                if form in (name, said)
                else msgspec.structs.replace(found, repairs=(RepairCode.DRESSED_NAME, *found.repairs))
            )
    if fold(bare) in _SEVERAL:
        return _one_of_several(arguments, rows)
    return _near(bare, rows)


def known(name: str, rows: Mapping[str, ToolSpec]) -> bool:
    """Whether a name means a tool here, whatever its arguments."""
    if any(row.tool in rows or row.verb for form in forms(name) for row in rows_of(form)):
        return True
    try:
        found = resolve(name, None, rows)
    except (NameRefused, Unclear):
        return True
    return found is not None and not found.lossy


def _named(name: str, arguments: Any, rows: Mapping[str, ToolSpec]) -> Named | None:
    """One of our tools, also by another spelling, or another harness's."""
    return _own(name, rows) or _respelt(name, rows) or _foreign(name, arguments, rows)


def _shared(name: str, arguments: Any, rows: Mapping[str, ToolSpec]) -> Named | None:
    """Another harness's tool that goes by the name of one of ours, told by its arguments."""
    if not isinstance(arguments, dict) or not rows_of(name):
        return None
    own = _own(name, rows) or _respelt(name, rows)
    if own is None or not own.spec.family:
        return None
    if not _strange(fit(arguments, _OPEN).arguments, own.spec):
        return None
    found = _foreign(name, arguments, rows, shared=True)
    return None if found is None or found.lossy or _strange(found.given or {}, found.spec) else found


def _patching(found: Named, arguments: Any, rows: Mapping[str, ToolSpec]) -> Named:
    """The patch that a command line would apply by a program that there is not, as a call of the tool that does."""
    given = arguments if found.given is None else found.given
    command = given.get("command") if found.spec.name == "exec_shell" and isinstance(given, dict) else None
    patch = patch_within(command) if isinstance(command, str) else ""
    if not patch or "apply_patch" not in rows:
        return found
    return Named(rows["apply_patch"], repairs=(*found.repairs, RepairCode.OTHER_HARNESS), given={"patch": patch})


def _strange(given: dict[str, Any], spec: ToolSpec) -> bool:
    return any(problem.kind == "unknown" for problem in check(given, {**spec.parameters, "required": []}))


def _one_of_several(arguments: Any, rows: Mapping[str, ToolSpec]) -> Named | None:
    """The call inside a call that holds calls. Raises NameRefused for several."""
    inner = arguments if isinstance(arguments, dict) else {}
    inside = next(
        (inner[key] for key in ("tool_uses", "calls", "tool_calls") if isinstance(inner.get(key), list)), None
    )
    calls = [inner] if inside is None else [call for call in inside if isinstance(call, dict)]
    read: list[tuple[Any, Any]] = [
        (
            next((call[key] for key in ("recipient_name", "tool_name", "name", "tool") if call.get(key)), None),
            next((call[key] for key in ("parameters", "arguments", "input", "args") if call.get(key)), {}),
        )
        for call in calls
    ]
    if not read or not all(isinstance(name, str) and fold(name) not in _SEVERAL for name, _ in read):
        raise NameRefused("Make each call by its own name.")
    if len(read) > 1:
        raise NameRefused("Make each of these calls by itself; several may stand in one answer.", _first(read[0], rows))
    name, given = read[0]
    found = resolve(str(name), given, rows)
    if found is None:
        return None
    kept = given if found.given is None and isinstance(given, dict) else found.given
    return msgspec.structs.replace(found, repairs=(RepairCode.DRESSED_NAME, *found.repairs), given=kept)


def _first(call: tuple[Any, Any], rows: Mapping[str, ToolSpec]) -> NextCall | None:
    """One of several calls as it is to be made."""
    name, given = call
    found = resolve(str(name), given, rows)
    if found is None or not isinstance(given, dict):
        return None
    return _fitting(found.spec, found.given or given)


def _fitting(spec: ToolSpec, given: dict[str, Any]) -> NextCall | None:
    """A call that is offered, where its arguments can be made to fit."""
    fitted = fit(given, shape_of(spec), spec.name).arguments
    return None if check(fitted, spec.parameters) or not enough(spec.name, fitted) else NextCall(spec.name, fitted)


def _intent(name: str, arguments: Any, rows: Mapping[str, ToolSpec]) -> Named | None:
    """One of the verbs, as the call it stands for. Raises Unclear."""
    call = lower(name, arguments, rows)
    if call is None:
        return None
    return Named(rows[call.tool], repairs=call.codes, lossy=call.chosen, given=call.arguments)


def _own(name: str, rows: Mapping[str, ToolSpec]) -> Named | None:
    if name in rows:
        return Named(rows[name])
    alias = ALIASES.get(name)
    if alias is not None and alias.state != "removed" and alias.canonical in rows:
        return Named(
            rows[alias.canonical], alias=name, repairs=(RepairCode.DEPRECATED,) if alias.state == "deprecated" else ()
        )
    return None


def _respelt(name: str, rows: Mapping[str, ToolSpec]) -> Named | None:
    """The only name that differs in case and separators alone."""
    same = [known for known in (*rows, *ALIASES) if fold(known) == fold(name)]
    found = _own(same[0], rows) if len(same) == 1 else None
    return found and msgspec.structs.replace(found, repairs=(RepairCode.RESPELT, *found.repairs))


def _foreign(name: str, arguments: Any, rows: Mapping[str, ToolSpec], *, shared: bool = False) -> Named | None:
    """Another harness's tool as ours. Of a name that is `shared` with ours only rows that ask for something count."""
    if not isinstance(arguments, dict):
        spec = next((rows[row.tool] for row in rows_of(name) if row.tool in rows and rows[row.tool].family), None)
        return None if spec is None else Named(spec, repairs=(RepairCode.OTHER_HARNESS,))
    given = fit(arguments, _OPEN).arguments
    for row in rows_of(name):
        if (shared and not (row.when or row.needs or row.one)) or not applies(row, given):
            continue
        if row.refuse:
            raise NameRefused(row.refuse, _instead(row, given, rows))
        found = _translated(row, given, rows)
        if found is not None:
            return found
    return None


def _translated(row: ForeignRow, given: dict[str, Any], rows: Mapping[str, ToolSpec]) -> Named | None:
    """A row's call with these arguments, where its tool is here and they can be said in it."""
    told = translate(row, given)
    if told is None:
        return None
    if row.verb:
        call = lower(row.verb, told.arguments, rows)
        if call is None or call.arguments is None:
            return None
        return Named(
            rows[call.tool], "", (RepairCode.OTHER_HARNESS, *call.codes), told.chosen or call.chosen, call.arguments
        )
    spec = rows.get(row.tool)
    if spec is None or not spec.family:
        return None
    return Named(spec, repairs=(RepairCode.OTHER_HARNESS,), lossy=told.chosen, given=told.arguments)


def _instead(row: ForeignRow, given: dict[str, Any], rows: Mapping[str, ToolSpec]) -> NextCall | None:
    """The call a refusal names, where it would be accepted."""
    call = instead(row, given)
    if call is None or call[0] not in rows:
        return None
    spec = rows[call[0]]
    arguments = fit(call[1], spec.parameters, spec.name).arguments if row.first else call[1]
    return None if check(arguments, spec.parameters) else NextCall(spec.name, arguments)


def _near(name: str, rows: Mapping[str, ToolSpec]) -> Named | None:
    """The only name within two slips of the hand, which is a guess."""
    folded = fold(name)
    if len(folded) < 4:
        return None
    near = sorted((distance, known) for known in rows if (distance := _distance(folded, fold(known))) <= 2)
    if not near or (len(near) > 1 and near[1][0] == near[0][0]):
        return None
    return Named(rows[near[0][1]], repairs=(RepairCode.MISSPELT,), lossy=True)


def _distance(one: str, two: str) -> int:
    """Edits (insert, delete, replace, swap of neighbours) between two names, 3 for more than two (Damerau 1964)."""
    if abs(len(one) - len(two)) > 2:
        return 3
    before: list[int] = []
    last = list(range(len(two) + 1))
    for i, left in enumerate(one, start=1):
        row = [i]
        for j, right in enumerate(two, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left != right))
            if i > 1 and j > 1 and left == two[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return min(last[-1], 3)
