"""Values against schemas: what fits, what does not, and the words for it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.catalog.schema import check, describe, fits, show
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
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    value: list[Any] = []
    for _ in range(500):
        value = [value]
    assert [problem.received for problem in check(value, schema)] == ["deeper"]


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
