"""Calls told apart from a file, one answer a line: against our tools and against functions of someone else."""

import json
from typing import Any

import pytest

from codewhale.cli.offline.check import Checker, answers
from codewhale.protocol.errors import ConfigError

FUNCTIONS = [
    {
        "name": "math.area",
        "parameters": {
            "type": "dict",
            "properties": {
                "base": {"type": "float"},
                "sides": {"type": "tuple", "items": {"type": "integer"}},
                "unit": {"type": "string", "enum": ["cm", "m"]},
                "extra": {"type": "any"},
                "nested": {"type": "dict", "properties": {"deep": {"type": ["integer", "null"]}}},
            },
            "required": ["base"],
        },
    },
    {
        "type": "function",
        "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
        "read_only": True,
    },
    {"name": "ping"},
]
KEYS = {"id", "outcome", "name", "arguments", "lossy", "repairs", "error"}


def told(checker: Checker, **line: Any) -> dict[str, Any]:
    """The answer to one line."""
    answer = checker.line(json.dumps(line).encode())
    assert set(answer) - {"calls"} == KEYS and answer["id"] == line.get("id")
    return answer


@pytest.fixture(scope="module")
def ours() -> Checker:
    """Our own tools."""
    return Checker()


@pytest.fixture(scope="module")
def theirs() -> Checker:
    """Functions of someone else."""
    return Checker(json.dumps(FUNCTIONS).encode())


def test_a_call_that_is_right(ours: Checker) -> None:
    assert told(ours, id=7, name="read_file", arguments='{"path": "a"}') == {
        "id": 7, "outcome": "run", "name": "read_file", "arguments": {"path": "a"}, "lossy": False, "repairs": [],
        "error": None,
    }  # fmt: skip


def test_arguments_as_an_object(ours: Checker) -> None:
    answer = told(ours, id="x", name="read_file", arguments={"path": "a"})
    assert (answer["outcome"], answer["arguments"]) == ("run", {"path": "a"})


def test_a_call_that_was_repaired(ours: Checker) -> None:
    answer = told(ours, id=1, name="read-file", arguments="{'path': 'a',}")
    assert (answer["outcome"], answer["name"], answer["arguments"]) == ("run", "read_file", {"path": "a"})
    assert answer["repairs"] == ["N1", "P3", "P1"] and not answer["lossy"]


def test_a_chosen_reading_runs_where_it_reads_and_is_proposed_elsewhere(ours: Checker) -> None:
    reading = told(ours, id=1, name="grep_files", arguments='{"pattern": "a "b" c"}')
    assert (reading["outcome"], reading["lossy"], reading["repairs"]) == ("run", True, ["P8"])
    writing = told(ours, id=1, name="note", arguments='{"content": "a "b" c"}')
    assert (writing["outcome"], writing["lossy"], writing["arguments"]) == ("refuse", True, None)
    error = writing["error"]
    assert error["fix"] == {"name": "note", "arguments": {"content": 'a "b" c'}}
    assert error["code"] == "invalid_input" and error["expected"] and error["received"] and error["retryable"] is True


def test_no_arguments_and_no_tool(ours: Checker) -> None:
    assert told(ours, id=1, name="list_dir")["arguments"] == {}
    assert told(ours, id=1, name="list_dir", arguments=None)["arguments"] == {}
    answer = told(ours, id=1, name="fly", arguments="{}")
    assert (answer["outcome"], answer["error"]["code"]) == ("refuse", "not_available")


def test_calls_written_as_text(ours: Checker) -> None:
    call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "%s"}}\n</tool_call>'
    answer = told(ours, id=1, text=f"{call % 'a'}\n{call % 'b'}")
    assert [one["arguments"] for one in answer["calls"]] == [{"path": "a"}, {"path": "b"}]
    assert answer["arguments"] == {"path": "a"} and answer["repairs"] == ["T2"]
    none = told(ours, id=1, text="There is nothing to call.")
    assert (none["outcome"], none["calls"], none["name"]) == ("none", [], None)


def test_text_tells_of_calls_that_run_of_those_that_are_told_and_of_none(ours: Checker) -> None:
    write = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a", "content": "b"}}\n</tool_call>'
    read = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
    outcomes = {
        write: "run",
        f"First.\n{read}": "run",
        f"First.\n{write}": "tell",
        f"{write}\nThen.": "tell",
        f"First.\n```\n{write}\n```": "tell",
        f"So:\n```\n{write}\n```\nThat is all.": "none",
    }
    assert {text: told(ours, id=1, text=text)["outcome"] for text in outcomes} == outcomes
    served = Checker(text_channel=True)
    assert [told(served, id=1, text=text)["outcome"] for text in outcomes] == ["run"] * 3 + ["tell", "tell", "none"]


def test_functions_of_someone_else(theirs: Checker) -> None:
    answer = told(
        theirs, id=1, name="math.area", arguments="{'base': '2.5', 'sides': [1, 2], 'unit': 'CM', 'extra': [{}]}"
    )
    assert (answer["outcome"], answer["name"]) == ("run", "math.area")
    assert answer["arguments"] == {"base": 2.5, "sides": [1, 2], "unit": "cm", "extra": [{}]}
    assert told(theirs, id=1, name="math.area", arguments='{"base": 2, "nested": {"deep": "3"}}')["arguments"] == {
        "base": 2,
        "nested": {"deep": 3},
    }


def test_they_change_things_unless_they_say_that_they_read(theirs: Checker) -> None:
    spoiled = '{"at": "a "b" c"}'
    assert told(theirs, id=1, name="look", arguments=spoiled)["outcome"] == "run"
    answer = told(theirs, id=1, name="math.area", arguments='{"base": 2 "unit": "m"}')
    assert (answer["outcome"], answer["error"]["fix"]) == (
        "refuse",
        {"name": "math.area", "arguments": {"base": 2, "unit": "m"}},
    )


def test_their_refusals_name_their_own_functions(theirs: Checker) -> None:
    answer = told(theirs, id=1, name="math.area", arguments='{"unit": "m"}')
    assert answer["error"]["field"] == "base" and answer["error"]["fix"] is None
    given = {"base": 1, "unit": "m", "colour": "red"}
    assert told(theirs, id=1, name="math.area", arguments=given)["error"]["fix"]["name"] == "math.area"
    assert told(theirs, id=1, name="sing", arguments="{}")["error"]["fix"]["name"] == "ping"
    assert told(theirs, id=1, name="ping", arguments="")["outcome"] == "run"


@pytest.mark.parametrize("functions", ["", "{}", "[1]", '[{"parameters": {}}]', '["x"]'])
def test_functions_that_cannot_be_used(functions: str) -> None:
    with pytest.raises(ConfigError, match="--schemas"):
        Checker(functions.encode())


def test_lines_that_are_none_are_told_by_number(ours: Checker) -> None:
    lines = iter([b'{"id": 1, "name": "list_dir"}', b"no", b"[]", b'{"id": 2}', b'{"id": 3, "text": "x", "more": 1}'])
    found = list(answers(lines, ours))
    assert [good for _, good in found] == [True, False, False, False, True]
    assert [(answer["id"], answer.get("line")) for answer, _ in found] == [
        (1, None),
        (None, 2),
        (None, 3),
        (None, 4),
        (3, None),
    ]
    assert found[1][0]["error"]["code"] == "bad_line" and found[1][0]["error"]["message"]
