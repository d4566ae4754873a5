"""Values against schemas: what fits, what does not, and the words for it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.catalog.schema import check, describe, fits, show
from codewhale.catalog.shapes import compiled
from support.samplecatalog import ROWS, PlanArgs, ReadArgs

STRING = {"type": "string"}
PLAN = next(row.parameters for row in ROWS if row.name == "checklist_write")
READ = next(row.parameters for row in ROWS if row.name == "read_file")


@pytest.mark.parametrize(
    ("schema", "fits", "fails"),
    [
        ({"type": "integer"}, [0, -1, 2**70, 3.0], ["1", True, 1.5, None, [], {}]),
        ({"type": "number"}, [0, 1.5], ["1", False, None]),
        ({"type": "string"}, ["", "1"], [1, None, ["a"]]),
        ({"type": "boolean"}, [True, False], [0, 1, "true", None]),
        ({"type": "array", "items": STRING}, [[], ["a"]], ["a", [1], {}, [None]]),
        ({"type": "object"}, [{}, {"a": 1}], [[], "{}", None]),
        ({"type": "string", "enum": ["a", "b"]}, ["a"], ["A", "", 1, ["a"]]),
        ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4]),
        ({"type": "string", "minLength": 1, "maxLength": 2}, ["a", "ab"], ["", "abc"]),
        ({"type": "array", "minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3]]),
        ({"type": "string", "pattern": "^[0-9]+$"}, ["12"], ["x12", ""]),
        ({"anyOf": [{"type": "integer"}, STRING]}, [1, "a"], [None, 1.5, []]),
        ({}, [None, 1, "a", [], {}], []),
        ({"type": ["object", "null"]}, [{}, None], [1, "a", []]),
        ({"const": {"a": [1]}}, [{"a": [1]}], [{"a": [2]}, None, 1]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, [1, 3.5, "a"], [4, 2.5]),
        ({"allOf": [{"type": "integer"}, {"exclusiveMinimum": 3}]}, [4], [3, "a"]),
        ({"$ref": "#/$defs/a/items", "$defs": {"a": {"items": STRING}}}, ["a"], [1, None]),
        ({"type": "array", "prefixItems": [STRING, {"type": "integer"}], "uniqueItems": True}, [["a", 1]], [[1, "a"]]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"multipleOf": 2}}, ["ab", 4], ["a", 3]),
        ({"type": "object", "patternProperties": {"^x": STRING}, "minProperties": 1}, [{"x": "a"}], [{"x": 1}, {}]),
        ({"type": "string", "pattern": "^(a+)+$"}, ["aa"], ["a" * 60 + "b"]),
    ],
)
def test_a_value_fits_or_not(schema: dict[str, Any], fits: list[Any], fails: list[Any]) -> None:
    assert [value for value in fits if check(value, schema)] == []
    assert [value for value in fails if not check(value, schema)] == []


def test_every_problem_is_found_and_missing_fields_stand_first() -> None:
    problems = check({"limit": "5", "pth": "a"}, READ)
    assert [(problem.kind, problem.field) for problem in problems] == [
        ("missing", "path"),
        ("wrong", "limit"),
        ("unknown", "pth"),
    ]
    assert problems[1].expected == "an integer from 1 to 500"
    assert problems[1].received == "the string '5'"
    assert problems[2].expected == "path, limit"


def test_a_nested_problem_says_where_it_is() -> None:
    value = {"items": [{"text": "a"}, {"text": "b", "status": "Done"}, {"status": "open"}]}
    problems = check(value, PLAN)
    assert [(problem.field, problem.expected) for problem in problems] == [
        ("items[2].text", "a string"),
        ("items[1].status", "one of done, open"),
    ]


def test_null_stands_for_an_absent_optional_field_alone() -> None:
    assert check({"path": "a", "limit": None}, READ) == []
    assert [(problem.field, problem.received) for problem in check({"path": None}, READ)] == [("path", "null")]


def test_too_deep_a_value_is_refused_and_not_followed() -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"$ref": "#"}}
    value: list[Any] = []
    for _ in range(500):
        value = [value]
    assert [problem.received for problem in check(value, schema)] == ["deeper"]


def test_a_value_that_many_branches_could_hold_is_refused_at_once() -> None:
    branches = [{"properties": {"a": {"$ref": "#"}, "b": {"const": number}}} for number in range(5)]
    value: dict[str, Any] = {"b": 9}
    for _ in range(20):
        value = {"a": value, "b": 9}
    (problem,) = check(value, {"type": "object", "anyOf": branches})
    assert (problem.field, problem.received) == ("arguments", "an object with parts that do not fit")


def test_what_no_shape_says_is_said_by_the_validator() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}, "b": {"not": STRING}}}
    assert [(one.field, one.expected, one.received) for one in check({"a": [1, 1], "b": "x"}, schema)] == [
        ("a", "an array (it has non-unique elements)", "an array of 2 items"),
        ("b", 'a value that fits ({"type":"string"} is not allowed for it)', "the string 'x'"),
    ]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer"}, "an integer"),
        ({"type": "integer", "minimum": 1, "maximum": 500}, "an integer from 1 to 500"),
        ({"type": "integer", "minimum": 0}, "an integer of at least 0"),
        ({"type": "string", "minLength": 1}, "a string that is not empty"),
        ({"type": "string", "maxLength": 80}, "a string of at most 80 characters"),
        ({"type": "array", "minItems": 1, "maxItems": 3}, "an array from 1 to 3 items"),
        ({"type": "string", "enum": ["a", "b"]}, "one of a, b"),
        ({"enum": ["a", None, 2]}, "one of a, null, 2"),
        ({"enum": ["a"]}, "the string 'a'"),
        ({"anyOf": [STRING, {"type": "null"}]}, "a string or null"),
        ({"type": "object", "required": ["a", "b"]}, "an object with a, b"),
        ({}, "any value"),
    ],
)
def test_a_schema_in_words(schema: dict[str, Any], words: str) -> None:
    assert describe(schema) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "the boolean true"),
        (7, "the number 7"),
        ("a", "the string 'a'"),
        ("x" * 100, "the string '" + "x" * 60 + "…'"),
        ([1, 2], "an array of 2 items"),
        ({"a": 1}, "an object"),
    ],
)
def test_a_value_in_words(value: object, words: str) -> None:
    assert show(value) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 600) | st.floats(0, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["text", "status", "x"]), inner),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["path", "limit", "items", "text"]), JSON, max_size=3)


@given(ARGUMENTS)
def test_what_the_checker_lets_pass_becomes_arguments(arguments: dict[str, Any]) -> None:
    for schema, args in ((READ, ReadArgs), (PLAN, PlanArgs)):
        if not check(arguments, schema):
            msgspec.convert(arguments, args, strict=True)


@given(st.one_of(ARGUMENTS, JSON))
def test_the_short_answer_is_that_of_the_checker(value: Any) -> None:
    several = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}, READ]}
    for schema in (READ, PLAN, several, {}):
        assert fits(value, schema) == (not check(value, schema))


def without_nulls(value: Any) -> Any:
    """A value whose members are all there."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(st.one_of(ARGUMENTS, JSON).map(without_nulls))
def test_the_small_checker_and_the_validator_agree(value: Any) -> None:
    for schema in (READ, PLAN, {}):
        known = compiled(schema)
        assert known.is_plain and fits(value, schema) == known.validator.is_valid(value)
