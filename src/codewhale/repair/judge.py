"""Judging one call by its text alone: which tool was meant, with which arguments, and whether that may run.

What was repaired without doubt runs. What was chosen among readings runs only where the tool reads and is said aloud;
of any other tool it is refused with the call that was proposed. What looks cut off is never completed.
"""

import difflib
import re
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import Problem, check, describe, fits, whole
from codewhale.catalog.shapes import Schema, shape_of
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.tools import Effect, ToolSpec
from codewhale.repair.codes import RepairCode
from codewhale.repair.fit import fit
from codewhale.repair.intents import VERBS, Unclear, lower
from codewhale.repair.names import Named, NameRefused, bare_names, enough, resolve, successor
from codewhale.repair.payload import Reading, Unreadable, read

Extent = Literal["full", "names", "off"]
_MAX_DEPTH = 16
# The types of argument that may be left out of a call that changes things, or brought within their bounds: the first of
# a tool that writes, all of one that runs a program. A number of turns to take back is not to be guessed at.
_WAIT = "timeout_ms"
Spare = tuple[str, ...] | None
_SPARE = ("boolean", "integer", "number")
# Names of arguments that a refusal repeats.
_SHOWN = 24


class Verdict(Struct, frozen=True):
    """A call as it was understood. `error` set: it is refused. `arguments` are the effective ones, also of a proposal
    that was refused; None where none could be made out. `repairs` are codes, in the order of the work."""

    name: str
    spec: ToolSpec | None = None
    arguments: dict[str, Any] | None = None
    alias: str = ""
    repairs: tuple[RepairCode, ...] = ()
    lossy: bool = False
    error: ToolError | None = None


def judge(
    name: str, raw: str, tools: Catalog, *, extent: Extent = "full", cut: bool = False, ended: bool = False
) -> Verdict:
    """What a call means. `cut` says that the answer it stands in hit its length limit, `ended` that it ended as its
    model meant it to: where nothing but closers is missing then, nothing that was begun is."""
    reading, unreadable = _read(raw, ended) if extent == "full" else _read_strictly(raw)
    arguments = reading.value if reading else None
    if name not in tools.rows and (gone := next(filter(None, map(tools.gone, bare_names(name))), "")):
        return Verdict(name, error=unknown(name, tools, gone, successor(name, arguments, tools.rows)))
    try:
        named = _named(name, arguments, tools, extent)
    except NameRefused as refusal:
        return Verdict(name, error=unknown(name, tools, str(refusal), refusal.fix))
    except Unclear as unclear:
        return Verdict(name, error=unclear.error)
    if named is None:
        return Verdict(name, error=unknown(name, tools))
    spec = named.spec
    if extent == "full" and not raw.strip() and Effect.WRITES in spec.effects and shape_of(spec).get("properties"):
        error = _nothing(spec)
    elif cut or (unreadable is not None and unreadable.truncated):
        error = _truncated(spec, raw, cut)
    elif unreadable is not None:
        error = _unreadable(spec, raw, unreadable)
    else:
        assert reading is not None
        return (
            _fitted(named, reading, raw)
            if extent == "full"
            else _as_it_came(named, reading.value, unknown(name, tools))
        )
    return Verdict(spec.name, spec, alias=named.alias, repairs=named.repairs, lossy=named.lossy, error=error)


def _named(name: str, arguments: Any, tools: Catalog, extent: Extent) -> Named | None:
    """The tool that a name means: where nothing is repaired, by its own name, an alias or a verb."""
    if extent != "off":
        return resolve(name, arguments, tools.rows)
    exact = tools.resolve(name)
    if exact is not None:
        return Named(exact.spec, exact.alias)
    call = lower(name, arguments, tools.rows) if name in VERBS else None
    if call is None:
        return None
    return Named(tools.rows[call.tool], repairs=call.codes, lossy=call.chosen, given=call.arguments)


def _read(raw: str, ended: bool) -> tuple[Reading | None, Unreadable | None]:
    if not raw.strip():
        return Reading({}, (RepairCode.NOTHING,) if raw else ()), None
    try:
        return read(raw, ended=ended), None
    except Unreadable as error:
        return None, error


def _read_strictly(raw: str) -> tuple[Reading | None, Unreadable | None]:
    try:
        return Reading(msgspec.json.decode(raw) if raw.strip() else {}), None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        place = re.search(r"byte (\d+)", str(error))
        return None, Unreadable(str(error) or type(error).__name__, int(place[1]) if place else 0)


def _as_it_came(named: Named, value: Any, no_tool: ToolError) -> Verdict:
    """Arguments that are not to be repaired: nulls stand for nothing, and all else must fit."""
    spec = named.spec
    if not isinstance(value, dict):
        return Verdict(spec.name, spec, None, named.alias, named.repairs, error=_no_object(spec, value))
    arguments = value if named.given is None else named.given
    arguments = whole({key: item for key, item in arguments.items() if item is not None})
    problems = check(arguments, spec.parameters)
    error = invalid(problems, arguments, spec) if problems else None
    if error is None and named.lossy and not reads_only(spec):
        error = no_tool
    return Verdict(spec.name, spec, arguments, named.alias, named.repairs, named.lossy, error)


def _fitted(named: Named, reading: Reading, raw: str) -> Verdict:
    """Arguments that could be read, made to fit and checked."""
    spec = named.spec
    codes = [*named.repairs, *reading.repairs]
    found = _object(reading.value, spec)
    if found is None:
        refusal = _no_object(spec, reading.value)
        return Verdict(spec.name, spec, None, named.alias, tuple(codes), error=refusal)
    arguments, some, chosen = found
    codes += some
    if named.given is not None:
        arguments = named.given
    fitted = fit(whole(arguments), shape_of(spec), spec.name, own=not spec.source)
    codes += fitted.repairs
    # Where a bracket went missing, a remark that was dropped or a member within an object may have stood elsewhere.
    moved = RepairCode.BRACKET in codes and (
        RepairCode.UNKNOWN_KEY in codes or _may_belong_above(fitted.arguments, shape_of(spec))
    )
    # Where the last closer is missing, whatever could still have come may have been cut off.
    short = reading.open and any(name not in fitted.arguments for name in shape_of(spec).get("properties", ()))
    lossy = named.lossy or reading.lossy or chosen or fitted.lossy or moved
    problems = check(fitted.arguments, spec.parameters)
    error: ToolError | None = None
    if problems:
        error = invalid(problems, fitted.arguments, spec)
    elif short and not reads_only(spec):
        error = _truncated(spec, raw, False)
    elif lossy and not reads_only(spec):
        error = _misfit(arguments, fitted.arguments, spec) or _proposed(spec, fitted.arguments, codes)
    return Verdict(spec.name, spec, fitted.arguments, named.alias, tuple(dict.fromkeys(codes)), lossy, error)


def _may_belong_above(arguments: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Whether an object among arguments holds a member that it does not know by the name of one that did not come."""
    properties = schema.get("properties", {})
    absent = {name for name in properties if name not in arguments}
    for name, value in arguments.items():
        inner = value[-1] if isinstance(value, list) and value else value
        own = properties.get(name, {})
        known = own.get("items", own).get("properties", {})
        if isinstance(inner, dict) and absent & set(inner) - set(known):
            return True
    return False


def _object(value: Any, spec: ToolSpec) -> tuple[dict[str, Any], tuple[RepairCode, ...], bool] | None:
    """The value as an object, with the codes of what that took and whether it was a choice."""
    if isinstance(value, dict):
        return value, (), False
    if isinstance(value, list) and value and isinstance(value[0], dict) and _all_same(value):
        return value[0], (RepairCode.LIST_FOR_ONE if len(value) == 1 else RepairCode.SENT_TWICE,), False
    if value is None or value == []:
        return {}, (RepairCode.NOTHING,), False
    required = shape_of(spec).get("required", ())
    plain = isinstance(value, int | float) or (isinstance(value, str) and not re.search(r"[\n{}\"]", value))
    if len(required) == 1 and plain and reads_only(spec):
        return {required[0]: value}, (RepairCode.BESIDE,), True
    return None


def _all_same(values: list[Any]) -> bool:
    """Whether values are the same to the letter: 1 is not true."""
    return len(set(map(msgspec.json.encode, values))) == 1


def reads_only(spec: ToolSpec) -> bool:
    """Whether all a tool does is read."""
    return spec.effects == (Effect.READS,)


# ---------------------------------------------------------------------- refusals


def invalid(problems: list[Problem], arguments: dict[str, Any], spec: ToolSpec) -> ToolError:
    """What is wrong with arguments: the first problem in fields, all in words, and the call to make next."""
    first = problems[0]
    lines = [_sentence(problem) for problem in problems[:5]]
    if first.kind == "missing" and arguments:
        had = sorted(arguments)[:_SHOWN]
        lines.append(f"The call had: {', '.join(key[:40] for key in had)}{', ...' if len(arguments) > _SHOWN else ''}.")
    return ToolError(
        "missing_field" if first.kind == "missing" else "invalid_input",
        " ".join(lines),
        field=first.field,
        expected=first.expected,
        received=first.received,
        fix=righted(arguments, spec),
    )


def _misfit(arguments: dict[str, Any], proposed: dict[str, Any], spec: ToolSpec) -> ToolError | None:
    """What is wrong with arguments that can be read but for a guess at some of them, with the proposed call; None
    where they fit without one. A number is not proposed as a text."""
    certain = fit(whole(arguments), shape_of(spec), spec.name, guess=False, own=not spec.source).arguments
    problems = check(certain, spec.parameters)
    if not problems:
        return None
    error = invalid(problems, certain, spec)
    if not any(problem.received.startswith("the number") and "a string" in problem.expected for problem in problems):
        error.fix = NextCall(spec.name, proposed)
    return error


def _proposed(spec: ToolSpec, arguments: dict[str, Any], codes: list[RepairCode]) -> ToolError:
    said = msgspec.json.encode(arguments).decode()
    shown = said if len(said) <= 400 else said[:400] + "…"
    return ToolError(
        "invalid_input",
        f"These arguments were damaged and could be read in more than one way, and {spec.name} changes things, so it "
        f"was not run ({', '.join(dict.fromkeys(codes))}). If this is what you meant, send it as valid JSON: {shown}",
        field="arguments",
        expected="valid JSON that needs no guessing",
        received=f"arguments that were read as {shown[:120]}",
        fix=NextCall(spec.name, arguments),
    )


def _truncated(spec: ToolSpec, raw: str, cut: bool) -> ToolError:
    why = "This answer hit its length limit, so" if cut else "The arguments end before they are complete, so"
    return ToolError(
        "invalid_input",
        f"{why} the call of {spec.name} may be cut ({len(raw)} characters of arguments came) and was not run. Send it "
        "again in smaller pieces: fewer calls per answer, shorter content, or several edits instead of one whole file.",
        field="arguments",
        expected="a complete call",
        received="a call in an answer that hit its length limit" if cut else f"a call that ends with {raw[-20:]!r}",
    )


def _unreadable(spec: ToolSpec, raw: str, error: Unreadable) -> ToolError:
    near = raw[max(0, error.position - 20) : error.position + 20]
    received = f"not valid JSON at character {error.position} ({error.message}) near {near!r}"
    return ToolError(
        "invalid_input",
        f"The arguments of {spec.name} could not be read: {received}. Nothing was run. Send one JSON object with "
        f"{signature(spec)}.",
        field="arguments",
        expected="one JSON object",
        received=received,
    )


def _nothing(spec: ToolSpec) -> ToolError:
    return ToolError(
        "missing_field",
        f"{spec.name} came without arguments and changes files, so it was not run. Send {signature(spec)}.",
        field="arguments",
        expected=signature(spec),
        received="nothing",
    )


def _no_object(spec: ToolSpec, value: object) -> ToolError:
    names = {str: "a string", list: "an array", bool: "a boolean", int: "a number", float: "a number"}
    received = f"{names.get(type(value), 'null')}, not an object"
    first = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else None
    several = f" There are {len(value)} of them: make a call for each." if first and isinstance(value, list) else ""
    return ToolError(
        "invalid_input",
        f"The arguments of {spec.name} are {received}. Send a JSON object with {signature(spec)}.{several}",
        field="arguments",
        expected=f"a JSON object with {signature(spec)}",
        received=received,
        fix=righted(first, spec) if first else None,
    )


def unknown(name: str, tools: Catalog, why: str = "", fix: NextCall | None = None) -> ToolError:
    """What is answered to a name that means no tool here, or (`why`) one that there is in a form that it has not."""
    shown = name[:80] if name.strip() else "(an empty name)"
    if why and name in tools.rows:
        return ToolError("invalid_input", f"{name}: {why}", field="arguments", expected=why, received=name, fix=fix)
    close = () if why else tools.closest(name)
    hint = f" Did you mean {', '.join(close)}?" if close else ""
    takes = f" {close[0]} takes {signature(tools.rows[close[0]])}." if close else ""
    own = [row.name for row in tools.rows.values() if not row.source]
    others = len(tools.rows) - len(own)
    more = f", and {others:,} of other sources, which tool_search_tool_bm25 finds" if others else ""
    return ToolError(
        "not_available",
        f"There is no tool named {shown!r}.{' ' + why if why else ''}{hint}{takes} "
        f"The tools are: {', '.join(own)}{more}.",
        field="name",
        expected="the name of a tool",
        received=shown,
        fix=fix,
    )


def signature(spec: ToolSpec) -> str:
    """A tool's arguments in words, the required ones first."""
    properties: dict[str, Any] = shape_of(spec).get("properties", {})
    required = [name for name in shape_of(spec).get("required", ()) if name in properties]
    said = [f"`{name}` ({describe(properties[name])})" for name in required]
    optional = [name for name in properties if name not in required]
    if optional:
        said.append(f"and if wanted {', '.join(optional)}" if said else f"any of {', '.join(optional)}")
    return ", ".join(said) or "no arguments"


def _sentence(problem: Problem) -> str:
    if problem.kind == "missing":
        return f"`{problem.field}` is missing ({problem.received} came): it must be {problem.expected}."
    if problem.kind == "unknown":
        known = problem.expected
        return f"`{problem.field}` is not an argument of this tool ({problem.received} came); it takes {known}."
    return f"`{problem.field}` must be {problem.expected}; got {problem.received}."


# ---------------------------------------------------------------------- the same call made right


class _Cannot(Exception):
    """Nobody can tell what was meant."""


def righted(arguments: dict[str, Any], spec: ToolSpec) -> NextCall | None:
    """The call with numbers within their bounds, words that are nearly one of a list, and without what the tool does
    not know; an optional argument that cannot be told is left out. None where something would have to be made up."""
    changes = any(effect is not Effect.READS for effect in spec.effects)
    spare = _SPARE[: 1 if Effect.WRITES in spec.effects else None] if changes else None
    try:
        fitted = fit(arguments, shape_of(spec), spec.name, guess=not changes, own=not spec.source).arguments
        found = _within(fitted, shape_of(spec), spare, 0)
    except _Cannot:
        return None
    return None if check(found, spec.parameters) or not enough(spec.name, found) else NextCall(spec.name, found)


def _within(value: dict[str, Any], schema: Schema, spare: Spare, depth: int) -> dict[str, Any]:
    properties: dict[str, Schema] = schema.get("properties", {})
    required = schema.get("required", ())
    if depth > _MAX_DEPTH or any(value.get(name) is None for name in required):
        raise _Cannot
    found: dict[str, Any] = {}
    for name, item in value.items():
        wanted = properties.get(name)
        if name == _WAIT and "command" not in properties and check({name: item}, {**schema, "required": []}):
            continue  # nobody waits longer than there may be: the usual time, and again
        if wanted is None:
            if schema.get("additionalProperties") is not False:
                found[name] = item
            continue
        try:
            found[name] = _value(item, wanted, spare, depth + 1)
        except _Cannot:
            if name in required or (spare is not None and wanted.get("type") not in spare):
                raise
    if value and not found:
        raise _Cannot
    return found


def _value(value: Any, wanted: Schema, spare: Spare, depth: int) -> Any:
    if value is None or fits(value, wanted):
        return value
    if isinstance(value, str) and "enum" in wanted:
        near = difflib.get_close_matches(value.lower()[:100], [str(choice) for choice in wanted["enum"]], 2, 0.6)
        if near:
            return near[0]
    kind = wanted.get("type")
    bounded = kind in ("integer", "number") and isinstance(value, int | float) and not isinstance(value, bool)
    if bounded and (spare is None or kind in spare) and not (kind == "integer" and isinstance(value, float)):
        return min(max(value, wanted.get("minimum", value)), wanted.get("maximum", value))
    if kind == "array" and isinstance(value, list):
        return [_value(item, wanted.get("items", {}), spare, depth + 1) for item in value]
    if kind == "object" and isinstance(value, dict):
        return _within(value, wanted, spare, depth + 1)
    raise _Cannot
