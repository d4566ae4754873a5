"""The same call made right: arguments brought within their schema where that takes no invention."""

import difflib
from typing import Any

from codewhale.catalog.schema import Schema, check, fits
from codewhale.catalog.shapes import shape_of
from codewhale.protocol.errors import NextCall
from codewhale.protocol.tools import Effect, ToolSpec
from codewhale.repair.fit import fit

_MAX_DEPTH = 16
# The types of argument that may be left out of a call that changes things, or brought within their bounds: the first of
# a tool that writes, all of one that runs a program. A number of turns to take back is not to be guessed at.
_WAIT = "timeout_ms"
Spare = tuple[str, ...] | None
_SPARE = ("boolean", "integer", "number")


class _Cannot(Exception):
    """Nobody can tell what was meant."""


def righted(arguments: dict[str, Any], spec: ToolSpec) -> NextCall | None:
    """The call with numbers within their bounds, words that are nearly one of a list, and without what the tool does
    not know; an optional argument that cannot be told is left out. None where something would have to be made up."""
    changes = any(effect is not Effect.READS for effect in spec.effects)
    spare = _SPARE[: 1 if Effect.WRITES in spec.effects else None] if changes else None
    try:
        fitted = fit(arguments, shape_of(spec), spec.name, guess=not changes, own=not spec.source).arguments
        found = _object(fitted, shape_of(spec), spare, 0)
    except _Cannot:
        return None
    return None if check(found, spec.parameters) else NextCall(spec.name, found)


def _object(value: dict[str, Any], schema: Schema, spare: Spare, depth: int) -> dict[str, Any]:
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
        return _object(value, wanted, spare, depth + 1)
    raise _Cannot
