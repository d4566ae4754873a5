"""Tool schemas in the form of particular endpoints."""

from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.models.dialects.schemas import written_schema
from codewhale.protocol.errors import ConfigError

WAYS = ("", "plain", "typed_branches")


def obj(**properties: Any) -> dict[str, Any]:
    """An object schema."""
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize("way", WAYS)
def test_our_own_tools_keep_their_bytes(way: str) -> None:
    catalog = Catalog.load()
    for spec in catalog.head:
        written = written_schema(way)(spec.parameters)
        assert list(written) == list(spec.parameters)
        if way != "typed_branches":
            assert written == spec.parameters


def test_nulls_unions_of_one_and_absent_names_go() -> None:
    loose = obj(
        a={"description": "A.", "anyOf": [{"type": "string"}, {"type": "null"}]},
        b={"oneOf": [{"type": "integer"}]},
        c={"type": "array", "items": {"type": "object"}},
        d={"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
    )
    assert written_schema("plain")({**loose, "required": ["a", "gone"]}) == {
        **obj(
            a={"type": "string", "description": "A.", "nullable": True},
            b={"type": "integer"},
            c={"type": "array", "items": {"type": "object", "properties": {}}},
            d={"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": True},
        ),
        "required": ["a"],
    }


def test_a_type_stands_in_every_branch_and_not_beside_them() -> None:
    nested = {
        "type": "object",
        "anyOf": [{"required": ["x"]}, {"required": ["y"]}],
        "properties": {"x": {}, "y": {"enum": [1]}},
    }
    written = written_schema("typed_branches")({"type": "object", "properties": {"item": nested}})
    item = written["properties"]["item"]
    assert "type" not in item and [branch["type"] for branch in item["anyOf"]] == ["object", "object"]
    assert item["properties"] == {"x": {"type": "string"}, "y": {"enum": [1], "type": "integer"}}


def test_the_root_stays_an_object() -> None:
    root = {"type": "object", "properties": {}, "anyOf": [{"required": []}, {"required": []}]}
    assert written_schema("typed_branches")(root)["type"] == "object"


def test_the_given_schema_is_left_as_it_was() -> None:
    given = obj(a={"anyOf": [{"type": "string"}, {"type": "null"}]})
    written_schema("typed_branches")(given)
    assert given == obj(a={"anyOf": [{"type": "string"}, {"type": "null"}]})


def test_another_way_is_told_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="plain, typed_branches"):
        written_schema("fancy")
