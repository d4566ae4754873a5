"""Checking a value against a JSON Schema, with words a model can act on.

Schemas as our own tools have them are checked here, so that a session without damaged calls loads no validator; all
others, and what is wrong with a value, by the library. How a foreign schema is read for words stands in `shapes`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from codewhale.catalog.shapes import PLAIN_TYPES, Schema, compiled, nesting
from codewhale.lib.patterns import lazy
from codewhale.protocol.tools import ToolSpec

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_MAX_DEPTH = 32
_MOST = 50
# The library follows each branch of a schema that holds itself at each level of a value.
_MOST_BRANCHES = 10_000
_SAID_BY_SHAPE = frozenset(
    "type enum const minimum maximum minLength maxLength minItems maxItems pattern anyOf oneOf".split()
)
MAX_CHARACTERS = 1_048_576
_MANY_KEYS = 50
# What models write for an argument that they leave out.
_NOTHING = lazy(r':\s*"(?:null|None|undefined)"')
_decode = msgspec.json.Decoder().decode
Place = tuple[str | int, ...]


class Problem(Struct, frozen=True):
    """One thing wrong: `field` is a path such as `plan[2].status`."""

    kind: Literal["missing", "unknown", "wrong"]
    field: str
    expected: str
    received: str


def fits(value: object, schema: Schema, *, own: bool = False) -> bool:
    """Whether `check` finds nothing wrong, told sooner; of a tool of our `own` without the library."""
    known = compiled(schema)
    return _fits(value, schema, 0) if known.is_plain or (own and known.is_own) else not check(value, schema)


def check(value: object, schema: Schema) -> list[Problem]:
    """What is wrong with `value`, missing fields first, the first fifty of it; empty when it fits. A null stands for an
    optional field that is absent."""
    known = compiled(schema)
    if known.is_plain and _fits(value, schema, 0):
        return []
    depth = nesting(value, _MAX_DEPTH)
    if depth > _MAX_DEPTH:
        return [Problem("wrong", "", f"nested at most {_MAX_DEPTH} deep", "deeper")]
    if known.validator.is_valid(value):
        return []
    plain = known.shape
    if known.recursion**depth > _MOST_BRANCHES:
        return [Problem("wrong", "arguments", describe(plain), f"{show(value)} with parts that do not fit")]
    problems: dict[Problem, tuple[int, ...]] = {}
    for error in islice(known.validator.iter_errors(value), _MOST):
        for path, problem in _problems(error, plain):
            problems.setdefault(problem, _order(value, path))
    return sorted(problems, key=lambda problem: (problem.kind != "missing", problems[problem]))[:_MOST]


# ---------------------------------------------------------------------- plain schemas


def _fits(value: object, schema: Schema, depth: int) -> bool:
    if depth > _MAX_DEPTH or not _has_type(value, schema.get("type")):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, dict):
        return _fits_object(value, schema, depth)
    if isinstance(value, list):
        items: Schema = schema.get("items", {})
        right = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return right and all(_fits(item, items, depth + 1) for item in value)
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
        elif item is not None and not _fits(item, wanted, depth + 1):
            return False
    return True


def _has_type(value: object, wanted: str | None) -> bool:
    if wanted is None:
        return True
    if isinstance(value, bool):
        return wanted == "boolean"
    if wanted == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, PLAIN_TYPES[wanted])


def _within(value: object, schema: Schema) -> bool:
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            return False
        return "pattern" not in schema or re.search(schema["pattern"], value) is not None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


# ---------------------------------------------------------------------- what is wrong


def _problems(error: "ValidationError", plain: Schema) -> Iterator[tuple[Place, Problem]]:
    """What an error of the library means, in our words, and where."""
    keyword, path, received = error.kind.name, tuple(error.instance_path), error.instance
    wanted = _at(plain, path)
    if keyword == "required":
        missing = (*path, error.kind.value)
        yield path, Problem("missing", _field(missing), describe(_at(plain, missing)), "nothing")
    elif keyword in ("additionalProperties", "unevaluatedProperties") and isinstance(received, dict):
        known = ", ".join(wanted.get("properties", ())) or "no arguments"
        for name in error.kind.value:
            yield (*path, name), Problem("unknown", _field((*path, name)), known, show(received[name]))
    elif received is None and path and _is_optional(plain, path):
        return  # stands for nothing
    elif received is None and path and isinstance(path[-1], str):
        yield path, Problem("missing", _field(path), describe(wanted), "null")
    elif keyword in ("anyOf", "oneOf") and (meant := _meant(error)):
        for inner in meant:
            yield from _problems(inner, plain)
    else:
        shown = show(received)
        if keyword in ("minItems", "maxItems") and isinstance(received, list):
            shown = f"{len(received)} items"
        yield path, Problem("wrong", _field(path) or "arguments", _wanted(error, wanted), shown)


def _wanted(error: "ValidationError", wanted: Schema) -> str:
    said = describe(wanted)
    several = type(error.kind).__name__ == "OneOfMultipleValid"
    if error.kind.name in _SAID_BY_SHAPE and not several:
        return said
    why = error.message.split("\n", 1)[0][:200]
    return f"{'a value that fits' if said == 'any value' else said} ({why})"


def _meant(error: "ValidationError") -> "list[ValidationError]":
    """The errors of the one branch that was meant: of the type that came, with its constants right. Where all branches
    of that type want another constant in one place, that error."""
    depth = len(error.instance_path)
    meant, cases = [], []
    for branch in error.kind.value if isinstance(error.kind.value, list) else ():
        if any(inner.kind.name == "type" and len(inner.instance_path) == depth for inner in branch):
            continue
        case = [one for one in branch if one.kind.name in ("const", "enum") and len(one.instance_path) <= depth + 1]
        if branch and not case:
            meant.append(branch)
        cases += case
    if not meant and len(cases) > 1 and len({tuple(one.instance_path) for one in cases}) == 1:
        return cases[:1] if len(cases[0].instance_path) > depth else []
    return meant[0] if len(meant) == 1 else []


def _order(value: Any, path: Iterable[str | int]) -> tuple[int, ...]:
    """Where a place stands in a value, so that problems come in the order in which it was written."""
    order = []
    for step in path:
        order.append(step if isinstance(step, int) else list(value).index(step))
        value = value[step]
    return tuple(order)


def _at(schema: Schema, path: Place) -> Schema:
    """The part of a shape that speaks of a place in a value."""
    for step in path:
        schema = _step(schema, step)
    return schema


def _step(schema: Schema, step: str | int) -> Schema:
    options = schema.get("anyOf", (schema,))
    several = [one.get("items") if isinstance(step, int) else one.get("properties", {}).get(step) for one in options]
    some = [one for one in several if isinstance(one, dict)]
    if len(some) > 1 and all("enum" in one for one in some):
        return {"enum": list({repr(item): item for one in some for item in one["enum"]}.values())}
    return some[0] if some else {}


def _is_optional(plain: Schema, path: Place) -> bool:
    around = _at(plain, path[:-1])
    owners = around.get("anyOf", (around,))
    return any(path[-1] in owner.get("properties", ()) for owner in owners) and not any(
        path[-1] in owner.get("required", ()) for owner in owners
    )


def _field(path: Place) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def describe(schema: Schema) -> str:
    """What a shape wants, in words: `an integer from 1 to 500`, `one of a, b`."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(describe(option) for option in schema["anyOf"]))
    if "enum" in schema:
        choices = schema["enum"]
        said = (item if isinstance(item, str) else msgspec.json.encode(item).decode() for item in choices)
        return show(choices[0]) if len(choices) == 1 else "one of " + ", ".join(said)
    kind: str = schema.get("type", "any value")
    words = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}.get(kind, f"a {kind}")
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


# ---------------------------------------------------------------------- calls that are right as they came


def right_already(raw: str, spec: ToolSpec) -> dict[str, Any] | None:
    """The arguments that `raw` says where they are a JSON object that fits the tool, whole numbers as integers (5.0 is
    5); None for all else: nulls and words for one, an empty string, files named by an address, keys that came twice and
    what is longer than any call included."""
    if len(raw) > MAX_CHARACTERS:
        return None
    try:
        value = _decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict) or '"file://' in raw or doubled(raw, value):
        return None
    if "null" in raw and _holds_null(value):
        return None
    if _NOTHING().search(raw):
        return None
    if "." in raw or "E" in raw or "e" in raw:  # a number that may be whole is written with one of these
        value = whole(value)
    return value if fits(value, spec.parameters, own=not spec.source) else None


def _holds_null(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value
    return any(item is None or (isinstance(item, dict | list) and _holds_null(item)) for item in items)


def doubled(raw: str, value: dict[str, Any] | list[Any]) -> bool:
    """Whether a key may have come twice in the JSON text of an object (or of an array of objects)."""
    if isinstance(value, list):
        return any(isinstance(item, dict) for item in value)
    return len(value) > _MANY_KEYS or any(raw.count(f'"{key}"') > 1 for key in value)


def whole(value: Any) -> Any:
    """A value with its whole numbers as integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list) else value
