"""Arguments made to fit a schema: what cannot be mistaken, what was chosen, and what is left for refusal."""

from typing import Any

import pytest

from codewhale.catalog.schema import check
from codewhale.repair.fit import fit, fold

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "share": {"type": "number"},
        "all": {"type": "boolean"},
        "mode": {"enum": ["full", "in_progress", "completed"], "type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "status": {"type": "string", "enum": ["pending", "completed"]},
                    "count": {"type": "integer"},
                },
                "required": ["text"],
                "additionalProperties": False,
            },
        },
        "options": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "additionalProperties": False},
        "start_line": {"type": "integer", "minimum": 1},
        "command": {"type": "string"},
    },
    "required": ["path"],
    "additionalProperties": False,
}
P = {"path": "a"}
# What came, what it was made to, the codes.
SURE: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({**P, "limit": "5"}, {**P, "limit": 5}, "A1"),
    ({**P, "limit": " 5.0 "}, {**P, "limit": 5}, "A1"),
    ({**P, "share": "1.5"}, {**P, "share": 1.5}, "A1"),
    ({**P, "all": "true"}, {**P, "all": True}, "A1"),
    ({**P, "all": "False"}, {**P, "all": False}, "A1"),
    ({**P, "names": "x"}, {**P, "names": ["x"]}, "A2"),
    ({**P, "names": "*.{py,js}"}, {**P, "names": ["*.{py,js}"]}, "A2"),
    ({**P, "steps": {"text": "t"}}, {**P, "steps": [{"text": "t"}]}, "A2"),
    ({**P, "names": '["x", "y"]'}, {**P, "names": ["x", "y"]}, "A3"),
    ({**P, "options": '{"deep": true}'}, {**P, "options": {"deep": True}}, "A3"),
    ({**P, "steps": '[{"text": "t"}]'}, {**P, "steps": [{"text": "t"}]}, "A3"),
    ({"file_path": "a"}, P, "A4"),
    ({"filePath": "a", "LIMIT": 5}, {**P, "limit": 5}, "A4"),
    ({**P, "start-line": 2}, {**P, "start_line": 2}, "A4"),
    ({**P, "reasoning": "because"}, P, "A5"),
    ({**P, "mode": "FULL"}, {**P, "mode": "full"}, "A7"),
    ({**P, "mode": "in progress"}, {**P, "mode": "in_progress"}, "A7"),
    ({**P, "mode": "done"}, {**P, "mode": "completed"}, "A7"),
    ({**P, "steps": [{"text": "t", "status": "PENDING"}]}, {**P, "steps": [{"text": "t", "status": "pending"}]}, "A7"),
    ({**P, "limit": None, "names": None}, P, "A8"),
    ({**P, "steps": [{"text": "t", "status": None}]}, {**P, "steps": [{"text": "t"}]}, "A8"),
    ({"arguments": {**P, "limit": 5}}, {**P, "limit": 5}, "A9"),
    ({"arguments": '{"path": "a"}'}, P, "A3 A9"),
    ({"name": "look", "parameters": P}, P, "A9"),
    ({"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"path": "a"}'}}, P, "A9 A3"),
    ({"params": {"input": P}}, P, "A9"),
    ({"look": P}, P, "A9"),
    ({"args": P, "thought": "because"}, P, "A9"),
    ({"path": "file:///a%20b"}, {"path": "/a b"}, "A10"),
    ({"path": "file://src/a"}, {"path": "src/a"}, "A10"),
    ({"path": ["a"], "limit": [5]}, {**P, "limit": 5}, "A12"),
    ({**P, "options": [{"deep": True}]}, {**P, "options": {"deep": True}}, "A12"),
    ({**P, "command": ["bash", "-lc", "ls | wc"]}, {**P, "command": "ls | wc"}, "A12"),
    ({**P, "command": ["ls", "a b"]}, {**P, "command": "ls 'a b'"}, "A12"),
]  # fmt: skip
CHOSEN: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({**P, "all": "yes"}, {**P, "all": True}, "A1"),
    ({**P, "all": 0}, {**P, "all": False}, "A1"),
    ({"path": 5}, {"path": "5"}, "A1"),
    ({**P, "verbose": True}, P, "A5"),
    ({**P, "start_line": 0}, {**P, "start_line": 1}, "A11"),
]
REFUSED: list[dict[str, Any]] = [
    {**P, "limit": "5 lines"}, {**P, "limit": "many"}, {**P, "limit": 5.5}, {**P, "all": "maybe"},
    {**P, "mode": "other"},
    {**P, "names": "x,y"}, {**P, "names": '["x", "y'}, {**P, "names": {"item": "x"}}, {**P, "limi": 5},
    {**P, "bad key": 1},
    {"paths_to_use": "a"}, {"path": None}, {"path": ["a", "b"]}, {"path": {"a": "b"}}, {"filename": "a", "file": "b"},
    {},
    {**P, "steps": [{"status": "pending"}]}, {**P, "steps": "one"}, {"arguments": P, "path": "b"}, {**P, "limit": True},
]  # fmt: skip


@pytest.mark.parametrize(("given", "fitted", "codes"), SURE)
def test_what_cannot_be_mistaken(given: dict[str, Any], fitted: dict[str, Any], codes: str) -> None:
    found = fit(given, SCHEMA, "look")
    assert (found.arguments, " ".join(found.repairs), found.lossy) == (fitted, codes, False)
    assert check(found.arguments, SCHEMA) == []


@pytest.mark.parametrize(("given", "fitted", "codes"), CHOSEN)
def test_what_was_chosen(given: dict[str, Any], fitted: dict[str, Any], codes: str) -> None:
    found = fit(given, SCHEMA, "look")
    assert (found.arguments, " ".join(found.repairs), found.lossy) == (fitted, codes, True)


@pytest.mark.parametrize("given", REFUSED)
def test_what_is_left_for_refusal(given: dict[str, Any]) -> None:
    found = fit(given, SCHEMA, "look")
    assert check(found.arguments, SCHEMA) or found.lossy


@pytest.mark.parametrize("given", [P, {**P, "limit": 5, "names": [], "steps": [{"text": "a"}], "mode": "full"}])
def test_what_fits_is_left_alone(given: dict[str, Any]) -> None:
    found = fit(given, SCHEMA, "look")
    assert (found.arguments, found.repairs, found.lossy) == (given, (), False)


def test_a_wrapper_under_the_name_of_an_argument() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "input": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    told = fit({"input": {"id": "1", "input": "y\n"}}, schema, "say")
    assert (told.arguments, told.repairs) == ({"id": "1", "input": "y\n"}, ("A9",))
    assert fit({"id": "1", "input": "y"}, schema, "say").repairs == ()


def test_open_objects_keep_what_they_do_not_know() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True}
    assert fit({"a": "1", "b": None, "c": 2}, schema).arguments == {"a": 1, "b": None, "c": 2}


def test_any_of_several_types() -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}
    assert fit({"a": "7"}, schema).arguments == {"a": 7}
    assert fit({"a": None}, schema).arguments == {"a": None}


def test_names_without_case_and_separators() -> None:
    assert fold("File-Path") == fold("filePath") == fold("FILE_PATH") == "filepath"
