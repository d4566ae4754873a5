"""Tool schemas as particular endpoints want them written. A schema that needs nothing changed keeps its bytes."""

from collections.abc import Callable
from typing import Any

from codewhale.protocol.errors import ConfigError

Schema = dict[str, Any]
_UNIONS = ("anyOf", "oneOf", "allOf")
_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def written_schema(way: str) -> Callable[[Schema], Schema]:
    """How to write a tool's parameters: "" as they are; `plain` without null branches, unions of one and names that
    are required but not there; `typed_branches` plain, and with a type for every property and for every branch of a
    union instead of beside it. Raises ConfigError for any other."""
    ways: dict[str, Callable[[Schema], Schema]] = {
        "": lambda schema: schema,
        "plain": _plain,
        "typed_branches": lambda schema: _typed(_plain(schema), True),
    }
    if way not in ways:
        raise ConfigError(f"the fact schemas = {way!r} is unknown; choose one of {', '.join(filter(None, ways))}")
    return ways[way]


def _within(schema: Schema, write: Callable[[Schema], Schema]) -> Schema:
    """The schema with `write` applied to every schema right inside it."""
    written = dict(schema)
    for key in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(key), dict):
            written[key] = {
                name: write(child) if isinstance(child, dict) else child for name, child in schema[key].items()
            }
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            written[key] = write(schema[key])
    for key in _UNIONS:
        if isinstance(schema.get(key), list):
            written[key] = [write(child) if isinstance(child, dict) else child for child in schema[key]]
    return written


def _plain(schema: Schema) -> Schema:
    written = _within(schema, _plain)
    for key in _UNIONS:
        branches = written.get(key)
        if not isinstance(branches, list):
            continue
        left = [branch for branch in branches if branch != {"type": "null"}]
        if len(left) < len(branches):
            written["nullable"] = True
        written[key] = left
        if len(left) == 1 and isinstance(left[0], dict):
            del written[key]
            written = {**left[0], **written}
    if written.get("type") == "object" and not isinstance(written.get("properties"), dict):
        written["properties"] = {}
    if isinstance(written.get("required"), list) and isinstance(written.get("properties"), dict):
        written["required"] = [name for name in written["required"] if name in written["properties"]]
    return written


def _typed(schema: Schema, root: bool = False) -> Schema:
    written, kind = dict(schema), schema.get("type")
    unions = [key for key in _UNIONS if isinstance(schema.get(key), list)]
    for key in unions if kind else ():
        written[key] = [{"type": kind, **branch} if isinstance(branch, dict) else branch for branch in schema[key]]
    if unions and kind and not root:
        del written["type"]
    if not unions and not kind and "$ref" not in schema:
        written["type"] = _guessed(schema)
    return _within(written, _typed)


def _guessed(schema: Schema) -> str:
    """The type of a schema that names none."""
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = schema.get("enum") or [schema.get("const", schema.get("default", ""))]
    return _TYPES.get(type(values[0]), "string")
