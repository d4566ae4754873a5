"""Checking a value against the part of JSON Schema that our catalog uses, with words a model can act on.

Supported: type, enum, required, properties, additionalProperties false, items, anyOf, minimum, maximum,
minLength, maxLength, minItems, maxItems, pattern.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

from msgspec import Struct

Schema = dict[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_MAX_DEPTH = 32
_MOST = 50


class Problem(Struct, frozen=True):
    """One thing wrong: `field` is a path such as `plan[2].status`."""

    kind: Literal["missing", "unknown", "wrong"]
    field: str
    expected: str
    received: str


def check(value: object, schema: Schema) -> list[Problem]:
    """What is wrong with `value`, missing fields first, the first fifty of it; empty when it fits."""
    problems = list(islice(_check(value, schema, "", 0), _MOST))
    return sorted(problems, key=lambda problem: problem.kind != "missing")


def fits(value: object, schema: Schema, depth: int = 0) -> bool:
    """Whether `check` finds nothing wrong, told sooner."""
    if "anyOf" in schema:
        return depth < _MAX_DEPTH and any(fits(value, option, depth + 1) for option in schema["anyOf"])
    if depth > _MAX_DEPTH or not _has_type(value, schema.get("type")):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, dict):
        return _fits_object(value, schema, depth)
    if isinstance(value, list):
        items: Schema = schema.get("items", {})
        right = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return right and all(fits(item, items, depth + 1) for item in value)
    return _within(value, schema)


def _fits_object(value: dict[str, Any], schema: Schema, depth: int) -> bool:
    properties: dict[str, Schema] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if value.get(name) is None and not (name in value and _has_type(None, properties.get(name, {}).get("type"))):
            return False
    for name, item in value.items():
        wanted = properties.get(name)
        if wanted is None:
            if schema.get("additionalProperties") is False:
                return False
        elif item is not None and not fits(item, wanted, depth + 1):
            return False
    return True


def _check(value: object, schema: Schema, path: str, depth: int) -> Iterator[Problem]:
    if depth > _MAX_DEPTH:
        yield Problem("wrong", path, f"nested at most {_MAX_DEPTH} deep", "deeper")
        return
    if "anyOf" in schema:
        if not any(not list(_check(value, option, path, depth + 1)) for option in schema["anyOf"]):
            yield Problem("wrong", path, " or ".join(describe(option) for option in schema["anyOf"]), show(value))
        return
    if not _has_type(value, schema.get("type")) or ("enum" in schema and value not in schema["enum"]):
        yield Problem("wrong", path or "arguments", describe(schema), show(value))
    elif isinstance(value, dict):
        yield from _check_object(value, schema, path, depth)
    elif isinstance(value, list):
        yield from _check_array(value, schema, path, depth)
    elif not _within(value, schema):
        yield Problem("wrong", path or "arguments", describe(schema), show(value))


def _check_object(value: dict[str, Any], schema: Schema, path: str, depth: int) -> Iterator[Problem]:
    properties: dict[str, Schema] = schema.get("properties", {})
    prefix = f"{path}." if path else ""
    for name in schema.get("required", ()):
        wanted = properties.get(name, {})
        if name not in value:
            yield Problem("missing", prefix + name, describe(wanted), "nothing")
        elif value[name] is None and not _has_type(None, wanted.get("type")):
            yield Problem("missing", prefix + name, describe(wanted), "null")
    for name, item in value.items():
        if name in properties:
            if item is not None:
                yield from _check(item, properties[name], prefix + name, depth + 1)
        elif schema.get("additionalProperties") is False:
            yield Problem("unknown", prefix + name, ", ".join(properties) or "no arguments", show(item))


def _check_array(value: list[Any], schema: Schema, path: str, depth: int) -> Iterator[Problem]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield Problem("wrong", path, describe(schema), f"{len(value)} items")
    for index, item in enumerate(value):
        yield from _check(item, schema.get("items", {}), f"{path}[{index}]", depth + 1)


def _has_type(value: object, wanted: str | None) -> bool:
    if wanted is None:
        return True
    if isinstance(value, bool):
        return wanted == "boolean"
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[wanted])


def _within(value: object, schema: Schema) -> bool:
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            return False
        return "pattern" not in schema or re.search(schema["pattern"], value) is not None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def describe(schema: Schema) -> str:
    """What a schema wants, in words: `an integer from 1 to 500`, `one of a, b`."""
    if "enum" in schema:
        return "one of " + ", ".join(str(item) for item in schema["enum"])
    kind: str = schema.get("type", "any value")
    words = {"integer": "an integer", "array": "an array", "object": "an object"}.get(kind, f"a {kind}")
    if kind == "any value":
        return kind
    form = f" of the form {schema['pattern']}" if "pattern" in schema else ""
    return words + _bounds(schema) + form + (_fields(schema) if kind == "object" else "")


def _bounds(schema: Schema) -> str:
    low = next((schema[key] for key in ("minimum", "minLength", "minItems") if key in schema), None)
    high = next((schema[key] for key in ("maximum", "maxLength", "maxItems") if key in schema), None)
    unit = {"string": " characters", "array": " items"}.get(schema.get("type", ""), "")
    if low is None and high is None:
        return ""
    if high is None:
        return " that is not empty" if unit and low == 1 else f" of at least {low}{unit}"
    if low is None:
        return f" of at most {high}{unit}"
    return f" from {low} to {high}{unit}"


def _fields(schema: Schema) -> str:
    required = schema.get("required", ())
    return f" with {', '.join(required)}" if required else ""


def show(value: object, limit: int = 60) -> str:
    """A value as a short phrase for an error: its kind and its beginning."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        text = value if len(value) <= limit else value[:limit] + "…"
        return f"the string {text!r}"
    return f"an array of {len(value)} items" if isinstance(value, list) else "an object"


def sample(schema: Schema) -> Any:
    """The least value that fits a schema: its required fields, the first choice, the smallest number."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return sample(schema["anyOf"][0])
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: sample(properties.get(name, {"type": "string"})) for name in schema.get("required", ())}
    if kind == "array":
        return [sample(schema.get("items", {"type": "string"})) for _ in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 0), min(0, schema.get("maximum", 0)))
    return {"boolean": False, "null": None}.get(str(kind), "x" * max(1, schema.get("minLength", 1)))
