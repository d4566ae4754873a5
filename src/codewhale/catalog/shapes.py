"""Schemas of tools that are not ours: whether one is taken at all, its validator, and its shape.

A shape says the same in the words that our own schemas use (properties, items, enum, anyOf), references unfolded, so
that repair and refusals need to know no others. It leaves out what it cannot say; the validator does not.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from codewhale.protocol.tools import ToolSpec

if TYPE_CHECKING:
    from jsonschema_rs import Validator

Schema = dict[str, Any]
PLAIN_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
MOST_BYTES, MOST_DEPTH, MOST_PARTS = 32_768, 64, 20_000
_PLAIN = frozenset(
    """type enum required properties additionalProperties items minimum maximum minLength maxLength minItems maxItems
    description default title""".split()
)
_KEPT = (_PLAIN | {"pattern"}) - {"type", "properties", "additionalProperties", "items", "required"}
# What holds values and no schemas.
_VALUES = frozenset("enum const default examples".split())
# How often a schema that holds itself is unfolded.
_TURNS = 2


class CompiledSchema:
    """What is worked out of a schema, each once and when it is needed."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.recursion = 0  # the references of a schema that holds itself

    @cached_property
    def is_plain(self) -> bool:
        """Whether it holds no more than schemas of our own tools do, and no pattern."""
        return _is_plain(self.schema, _PLAIN)

    @cached_property
    def is_own(self) -> bool:
        """The same with patterns, which are trusted of our own tools alone."""
        return _is_plain(self.schema, _PLAIN | {"pattern"})

    @cached_property
    def validator(self) -> "Validator":
        """The library's. Nothing is fetched for it. Raises ValueError for what is no schema."""
        import jsonschema_rs

        return jsonschema_rs.validator_for(self.schema, mask="it", retriever=_not_fetched)

    @cached_property
    def shape(self) -> Schema:
        """The schema in plain words."""
        unfolder = _Unfolder(self.schema)
        try:
            shape = unfolder.root()
        except _TooLarge:
            return {"type": "object"}
        self.recursion = len(list(_references(self.schema))) if unfolder.recursive else 0
        return shape


class _ByIdentity:
    """A schema as a key: compared by what it is, not by what it says."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.schema is self.schema


@lru_cache(1024)
def _compiled(key: _ByIdentity) -> CompiledSchema:
    return CompiledSchema(key.schema)


def compiled(schema: Schema) -> CompiledSchema:
    """What is known of a schema that does not change."""
    return _compiled(_ByIdentity(schema))


def shape_of(spec: ToolSpec) -> Schema:
    """The arguments of a tool as repair and refusals read them."""
    return compiled(spec.parameters).shape if spec.source else spec.parameters


def _is_plain(schema: object, words: frozenset[str]) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= words or not _is_type(schema.get("type", "null")):
        return False
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return isinstance(schema.get("additionalProperties", True), bool) and all(_is_plain(one, words) for one in inner)


def _is_type(kind: object) -> bool:
    return isinstance(kind, str) and kind in PLAIN_TYPES


def _not_fetched(address: str) -> Any:
    raise ValueError(f"{address} is not part of the schema, and nothing is fetched")


def refused(parameters: object) -> str:
    """Why the schema of a tool that is not ours is not taken, in words; "" where it is."""
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        return "its arguments are described as something else than an object (`type` must be `object`)"
    if nesting(parameters, MOST_DEPTH) > MOST_DEPTH:
        return f"its schema is nested more than {MOST_DEPTH} deep"
    size = len(msgspec.json.encode(parameters))
    if size > MOST_BYTES:
        return f"its schema takes {size:,} bytes; at most {MOST_BYTES:,} are taken"
    outside = next((ref for ref in _references(parameters) if not ref.startswith("#")), None)
    if outside is not None:
        return f"its schema refers to {outside[:200]!r}, which is not fetched; put what it says under `$defs`"
    try:
        _Unfolder(parameters).root()
        _ = compiled(parameters).validator
    except _TooLarge:
        return f"the references of its schema unfold to more than {MOST_PARTS:,} parts"
    except ValueError as error:
        place = ".".join(map(str, getattr(error, "instance_path", ())))
        return f"its schema is not valid{place and ' at '}{place}: {str(error).splitlines()[0][:300]}"
    return ""


def nesting(value: object, most: int) -> int:
    """How deep a value is nested; one more than `most` for all that is deeper."""
    depth, level = 0, [value]
    while depth <= most:
        holders = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [inner for holder in holders for inner in holder]
        if not level:
            break
        depth += 1
    return depth


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, inner in schema.items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(inner, str):
                yield inner
            elif key not in _VALUES:
                yield from _references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _references(inner)


class _TooLarge(Exception):
    """References that unfold to too much."""


class _Unfolder:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MOST_PARTS
        self.recursive = False

    def root(self) -> Schema:
        """The whole, whose members are known whatever combines them."""
        return self._schema(self._root, (), members=True)

    def _schema(self, node: Any, turns: tuple[str, ...], *, members: bool = False) -> Schema:
        self._left -= 1
        if self._left < 0 or len(turns) > MOST_DEPTH:
            raise _TooLarge
        if not isinstance(node, dict):
            return {}
        reference = node.get("$ref")
        if isinstance(reference, str):
            self.recursive = self.recursive or reference in turns
            if turns.count(reference) >= _TURNS:
                return {}
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return self._schema(_merged(self._target(reference), rest), (*turns, reference), members=members)
        if "allOf" in node:
            whole = {key: value for key, value in node.items() if key != "allOf"}
            for part in node["allOf"]:
                whole = _merged(self._schema(part, turns), whole)
            return self._schema(whole, turns, members=members)
        if "const" in node:
            return {"enum": [node["const"]], **self._notes(node)}
        options = node.get("anyOf", node.get("oneOf"))
        if isinstance(options, list):
            return self._either(node, options, turns, members or "properties" in node)
        if isinstance(node.get("type"), list):
            return self._types(node, turns)
        return self._plain(node, turns)

    @staticmethod
    def _notes(node: Schema) -> Schema:
        return {"description": node["description"]} if "description" in node else {}

    def _types(self, node: Schema, turns: tuple[str, ...]) -> Schema:
        rest = {key: value for key, value in node.items() if key != "type"}
        if "enum" in node:
            return self._plain(rest, turns)
        types = sorted(node["type"], key=lambda kind: kind == "null")
        some = [{"type": "null"} if kind == "null" else self._plain({**rest, "type": kind}, turns) for kind in types]
        return {"anyOf": some, **self._notes(node)} if len(some) > 1 else some[0]

    def _either(self, node: Schema, options: list[Any], turns: tuple[str, ...], members: bool) -> Schema:
        """One of several schemas; where the members stand beside them, or must be known, those of all of them."""
        base = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
        if members:
            for option in options:
                inner = self._schema(option, turns)
                base["properties"] = {**inner.get("properties", {}), **base.get("properties", {})}
            return self._schema(base, turns)
        shared = {key: value for key, value in base.items() if key != "description"}
        some: list[Schema] = []
        for option in options:
            one = self._schema(_merged(option, shared) if isinstance(option, dict) else shared, turns)
            some += one.get("anyOf", [one])
        some.sort(key=lambda one: one.get("type") == "null")
        return {"anyOf": some, **self._notes(node)} if len(some) > 1 else {**some[0], **self._notes(node)}

    def _plain(self, node: Schema, turns: tuple[str, ...]) -> Schema:
        whole = {key: node[key] for key in _KEPT & node.keys()}
        if _is_type(node.get("type")):
            whole["type"] = node["type"]
        if node.get("type") == "integer":
            for key, bound, more in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
                if type(node.get(key)) is int:
                    whole[bound] = node[key] + more
        if isinstance(node.get("items"), dict):
            whole["items"] = self._schema(node["items"], turns)
        if isinstance(node.get("properties"), dict):
            whole["type"] = "object"
            whole["properties"] = {name: self._schema(one, turns) for name, one in node["properties"].items()}
        if whole.get("type") == "object":
            whole["required"] = [name for name in node.get("required", ()) if isinstance(name, str)]
            closed = node.get("additionalProperties", node.get("unevaluatedProperties")) is False
            whole["additionalProperties"] = not closed or "patternProperties" in node
        return whole

    def _target(self, reference: str) -> Schema:
        """What a reference within the schema points to; anything for one that only the validator can follow."""
        place: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and name.isdecimal() and int(name) < len(place):
                place = place[int(name)]
            elif isinstance(place, Mapping) and name in place:
                place = place[name]
            else:
                return {}
        return place if isinstance(place, dict) and reference[:2] in ("#", "#/") else {}


def _merged(one: Any, other: Any) -> Schema:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other if isinstance(other, dict) else {}
    whole = {**one, **other}
    if "properties" in one and "properties" in other:
        whole["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        whole["required"] = list(dict.fromkeys((*one["required"], *other["required"])))
    return whole
