"""Raw argument strings: read strictly, refused with the place and a next call."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.catalog.arguments import MAX_ARGUMENT_BYTES, parse, validate
from codewhale.catalog.schema import check
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import Effect, ToolSpec
from support.samplecatalog import ROWS

SPECS: dict[str, ToolSpec] = {row.name: row for row in ROWS}
READ, WRITE, STATUS = SPECS["read_file"], SPECS["write_file"], SPECS["git_status"]


def refusal(raw: str, spec: ToolSpec = READ) -> ToolError:
    """The error of a string that cannot be read."""
    with pytest.raises(ToolError) as caught:
        parse(raw, spec)
    assert caught.value.kind == "invalid_input"
    assert caught.value.field == "arguments"
    assert caught.value.fix is not None
    return caught.value


def complaint(arguments: dict[str, Any], spec: ToolSpec = READ) -> ToolError:
    """The error of arguments that do not fit."""
    with pytest.raises(ToolError) as caught:
        validate(arguments, spec)
    assert caught.value.fix is not None
    return caught.value


def test_an_object_is_read_and_nulls_are_dropped() -> None:
    assert parse('{"path": "a", "limit": null}', READ) == {"path": "a"}
    assert parse(' \n{"path":"\\u00e9\\n"} ', READ) == {"path": "é\n"}


def test_a_whole_number_is_an_integer_however_it_is_written() -> None:
    value = parse('{"limit": 5.0, "rest": [1.5, {"a": 2e0}]}', READ)
    assert value == {"limit": 5, "rest": [1.5, {"a": 2}]}
    assert isinstance(value["limit"], int)
    assert isinstance(value["rest"][1]["a"], int)


def test_nothing_means_no_arguments_only_where_none_are_required() -> None:
    assert parse("", STATUS) == {}
    assert parse("  ", STATUS) == {}
    assert "`path`, `content`" in refusal("", WRITE).message


@pytest.mark.parametrize("raw", ['{"path": "a"', '{"path": "a",}', "{'path': 'a'}", '{path: "a"}', '{"path": "a'])
def test_broken_json_is_refused_with_its_place(raw: str) -> None:
    error = refusal(raw)
    assert "at character" in error.received
    assert raw[-8:] in error.received.replace("\\'", "'") or raw[:8] in error.received
    assert error.expected == "one JSON object"


def test_the_surroundings_of_a_fault_are_twenty_characters_to_each_side() -> None:
    error = refusal('{"path": "' + "a" * 500 + '" "limit": ' + "1" * 500 + "}")
    assert "at character 512" in error.received
    assert len(error.message) < 300


@pytest.mark.parametrize(
    ("raw", "kind"),
    [("[]", "an array"), ('"{}"', "a string"), ("5", "a number"), ("true", "a boolean"), ("null", "null")],
)
def test_json_that_is_no_object_is_refused(raw: str, kind: str) -> None:
    assert refusal(raw).received == f"arguments are {kind}, not an object"


@pytest.mark.parametrize(
    "raw",
    [
        '{"path": "\\ud800"}',
        '{"path": "\ud800"}',
        '{"limit": 1e999}',
        '{"limit": NaN}',
        "[" * 200_000,
        '{"path":' * 100_000,
        '{"path": "' + "a" * MAX_ARGUMENT_BYTES + '"}',
    ],
)
def test_what_no_reader_can_take_is_a_refusal_and_no_crash(raw: str) -> None:
    assert len(refusal(raw).message) < 400


def test_a_missing_field_names_what_came_instead() -> None:
    error = complaint({"file": "a", "limit": 5})
    assert (error.kind, error.field, error.received) == ("missing_field", "path", "nothing")
    assert error.expected == "a string that is not empty"
    assert "The call had: file, limit." in error.message
    assert "`file` is not an argument of this tool" in error.message


def test_null_where_a_value_is_required_is_said_to_have_come() -> None:
    error = complaint(parse('{"path": null, "limit": null}', READ))
    assert (error.kind, error.field, error.received) == ("missing_field", "path", "null")
    assert "`path` is missing (null came)" in error.message


def test_a_wrong_type_names_argument_got_and_wanted() -> None:
    error = complaint({"path": "a", "limit": "5"})
    assert (error.kind, error.field) == ("invalid_input", "limit")
    assert error.message == "`limit` must be an integer from 1 to 500; got the string '5'."
    assert error.fix is not None
    assert (error.fix.name, error.fix.arguments) == ("read_file", {"path": "a"})


def test_a_changing_tool_is_never_offered_again_with_less() -> None:
    error = complaint({"path": "a", "content": "b", "mode": "w"}, WRITE)
    assert error.fix is not None
    assert error.fix.name == "list_dir"


def test_a_call_that_would_say_nothing_is_not_offered() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": []}
    rescue = {"path": "."}
    error = complaint({"text": 5}, ToolSpec("check", "sample", "", schema, (Effect.READS,), rescue=rescue))
    assert error.fix is not None
    assert (error.fix.name, error.fix.arguments) == ("list_dir", rescue)


def test_five_problems_are_told_and_no_more() -> None:
    error = complaint({"path": "a", **{f"extra_{number}": 1 for number in range(9)}})
    assert error.message.count("is not an argument") == 5


NAMES = st.sampled_from(["path", "limit", "a.b", "path.x", "limit[0]", "", "items"])
VALUES = st.none() | st.integers(0, 600) | st.text(max_size=4) | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_a_fix_always_fits_its_tool(arguments: dict[str, Any]) -> None:
    for spec in ROWS:
        try:
            validate(arguments, spec)
        except ToolError as error:
            assert error.fix is not None
            if error.fix.name in SPECS:
                assert check(error.fix.arguments, SPECS[error.fix.name].parameters) == []
            else:
                assert (error.fix.name, error.fix.arguments) == ("list_dir", {"path": "."})


@given(st.text())
def test_any_text_is_an_object_or_a_refusal(text: str) -> None:
    try:
        value = parse(text, READ)
    except ToolError as error:
        assert error.kind == "invalid_input"
        return
    decoded = msgspec.json.decode(text.encode())
    assert value == {key: item for key, item in decoded.items() if item is not None or key == "path"}
