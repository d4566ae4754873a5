"""Bad calls of any tool, made from its schema: each argument missing, null, of each wrong type, out of its bounds,
empty or unknown, one at a time."""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

Schema = dict[str, Any]
Edit = Callable[[Any], Any]

# One value of each kind of JSON.
KINDS: dict[str, Any] = {
    "string": "x",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
}
FITS = {"integer": {"integer"}, "number": {"integer", "number"}}


class Bad(Struct, frozen=True):
    """A call that must be refused, and the field it must be refused for."""

    label: str
    arguments: dict[str, Any]
    field: str


def spoiled(schema: Schema, base: dict[str, Any]) -> Iterator[Bad]:
    """Every way to spoil one argument of `base`, a call that fits `schema`; one at a time."""
    for label, field, edit in _object(schema, base, "", lambda change: change):
        arguments = copy.deepcopy(base)
        yield Bad(label, edit(arguments), field)


Spoil = tuple[str, str, Edit]
# Turns an edit of the inner value into an edit of the whole.
Lift = Callable[[Edit], Edit]


def _object(schema: Schema, value: dict[str, Any], prefix: str, lift: Lift) -> Iterator[Spoil]:
    yield "unknown", prefix + "no_such_field", lift(_put("no_such_field", 1))
    for name in schema.get("required", ()):
        yield "missing", prefix + name, lift(_drop(name))
        yield "null", prefix + name, lift(_put(name, None))
    for name, inner in schema.get("properties", {}).items():
        field = prefix + name
        for label, wrong in _wrong(inner):
            yield label, field, lift(_put(name, wrong))
        yield from _deeper(inner, value.get(name), field, _under(name, lift))


def _deeper(schema: Schema, value: Any, field: str, lift: Lift) -> Iterator[Spoil]:
    items = schema.get("items", {})
    if "items" in schema and "properties" not in items:
        for label, wrong in _wrong(items):
            yield f"item {label}", f"{field}[0]", lift(_become([wrong]))
    elif "items" in schema and value:
        for label, wrong in _wrong(items):
            yield f"item {label}", f"{field}[0]", lift(_put(0, wrong))
        yield from _object(items, value[0], f"{field}[0].", _under(0, lift))


def _wrong(schema: Schema) -> Iterator[tuple[str, Any]]:
    """Values that do not fit, each with what is wrong."""
    kind = schema.get("type", "")
    for other, value in KINDS.items():
        if other not in FITS.get(kind, {kind}):
            yield f"a {other} for a {kind}", value
    if "enum" in schema:
        yield "not in the enum", "no-such-choice"
        yield "empty for an enum", ""
    if "pattern" in schema:
        yield "against the pattern", next(t for t in ("x-y-z", "!!", " ") if not re.search(schema["pattern"], t))
        yield "empty for a pattern", ""
    if "minimum" in schema:
        yield "below the minimum", schema["minimum"] - 1
        yield "far below the minimum", -(2**70)
    if "maximum" in schema:
        yield "above the maximum", schema["maximum"] + 1
        yield "far above the maximum", 2**70
    if schema.get("minLength"):
        yield "empty", ""
    if "maxLength" in schema:
        yield "too long", "x" * (schema["maxLength"] + 1)
    if schema.get("minItems"):
        yield "too few", []
    if "maxItems" in schema:
        yield "too many", [None] * (schema["maxItems"] + 1)


def _put(key: Any, value: Any) -> Edit:
    def edit(target: Any) -> Any:
        target[key] = value
        return target

    return edit


def _drop(key: str) -> Edit:
    def edit(target: Any) -> Any:
        target.pop(key)
        return target

    return edit


def _become(value: Any) -> Edit:
    return lambda target: value


def _under(key: Any, lift: Lift) -> Lift:
    def lifted(edit: Edit) -> Edit:
        def inner(target: Any) -> Any:
            present = target.get(key) if isinstance(target, dict) else target[key]
            target[key] = edit(present)
            return target

        return lift(inner)

    return lifted
