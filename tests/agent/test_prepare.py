"""Raw calls: judged by their text, and always sent back in a form any server takes."""

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codewhale.agent.collect import RawCall
from codewhale.agent.pending_call import PendingCall, prepare
from codewhale.repair.repairer import CallRepairer
from support.samplecatalog import raw, sample_catalog

CATALOG = sample_catalog()
WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def ready(call: RawCall, cut: bool = False) -> PendingCall:
    """The prepared call under the id it came with."""
    return prepare(call, call.id, CATALOG, cut, lambda: CallRepairer(CATALOG))


def test_a_good_call_is_ready_and_goes_back_as_it_came() -> None:
    prepared = ready(raw("read_file", '{ "path":"a" }'))
    assert prepared.error is None
    assert prepared.arguments == {"path": "a"}
    call = prepared.call
    assert (call.sent_name, call.sent_arguments) == ("read_file", '{ "path":"a" }')
    assert (call.wire_name, call.wire_arguments) == ("", "")


def test_an_alias_runs_its_tool_and_goes_back_under_the_name_that_is_listed() -> None:
    prepared = ready(raw("todo_write", '{"items":[{"text":"a"}]}'))
    assert prepared.error is None
    assert (prepared.name, prepared.alias) == ("checklist_write", "todo_write")
    assert (prepared.call.name, prepared.call.sent_name) == ("todo_write", "checklist_write")


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("", "{}"),
        ('{"path": "a', "{}"),
        ("[1]", "{}"),
        ('"{}"', "{}"),
        ('{"path": {"a": 5}}', '{"path": {"a": 5}}'),
        ('{"pth": "a"}', '{"pth": "a"}'),
        ("[" * 100_000, "{}"),
        ('{"path":' * 100_000, "{}"),
        ('{"path": "\ud800"}', "{}"),
    ],
    ids=range(9),
)
def test_refused_arguments_go_back_as_an_object(arguments: str, sent: str) -> None:
    prepared = ready(raw("read_file", arguments))
    assert prepared.error is not None and prepared.error.expected
    assert prepared.call.arguments == arguments
    assert prepared.call.sent_arguments == sent


def test_an_empty_string_on_a_tool_without_required_arguments_runs() -> None:
    prepared = ready(raw("git_status", ""))
    assert prepared.error is None
    assert prepared.call.sent_arguments == "{}"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("get_project_overview", "get_project_overview"),
        ("", "unknown_tool"),
        ("no file", "unknown_tool"),
        ("functions.none:0", "unknown_tool"),
        ("x" * 65, "unknown_tool"),
        ("читать", "unknown_tool"),
    ],
)
def test_an_unknown_name_is_refused_with_the_names_that_are(name: str, sent: str) -> None:
    prepared = ready(raw(name, '{"path": "a"}'))
    assert prepared.error is not None
    assert prepared.error.kind == "not_available"
    assert "read_file" in prepared.error.message
    assert prepared.error.fix is None
    assert (prepared.call.name, prepared.call.sent_name) == (name, sent)


@pytest.mark.parametrize("name", ["read-file", "ReadFile", "functions.read_file:0", "Read"])
def test_a_name_that_can_only_mean_one_tool_runs_it_and_goes_back_under_its_own(name: str) -> None:
    prepared = ready(raw(name, '{"file_path": "a",}'))
    assert (prepared.error, prepared.name, prepared.arguments) == (None, "read_file", {"path": "a"})
    assert (prepared.call.name, prepared.call.sent_name, prepared.lossy) == (name, "read_file", False)
    assert prepared.repairs[0][0] == "N" and "P1" in prepared.repairs


def test_a_guessed_reading_runs_where_it_only_reads_and_is_refused_with_the_call_elsewhere() -> None:
    read = ready(raw("read_fle", '{"path": "a"}'))
    assert (read.error, read.lossy, read.name) == (None, True, "read_file")
    write = ready(raw("write_fle", '{"path": "a", "content": "b"}'))
    assert write.error is not None and write.error.fix is not None
    assert (write.error.fix.name, write.error.fix.arguments) == ("write_file", {"path": "a", "content": "b"})
    assert (write.arguments, write.call.sent_name) == ({}, "write_file")


@pytest.mark.parametrize("name", ["read_file", "write_file", "git_status"])
def test_nothing_runs_of_an_answer_that_hit_its_length_limit(name: str) -> None:
    prepared = ready(raw(name, '{"path": "a", "content": "b"}'), cut=True)
    assert prepared.error is not None
    assert "length limit" in prepared.error.message
    assert "29 characters" in prepared.error.message


@given(name=st.text(max_size=80) | st.sampled_from(["read_file", "todo_write"]), arguments=st.text(), cut=st.booleans())
@example(name="read_file", arguments='{"path": "a"}', cut=False)
def test_what_goes_back_is_always_a_valid_name_and_object(name: str, arguments: str, cut: bool) -> None:
    prepared = prepare(RawCall("", name, arguments), "call_7", CATALOG, cut, lambda: CallRepairer(CATALOG))
    assert (prepared.call.id, prepared.call.name, prepared.call.arguments) == ("call_7", name, arguments)
    assert WIRE_NAME.fullmatch(prepared.call.sent_name)
    assert isinstance(msgspec.json.decode(prepared.call.sent_arguments.encode()), dict)
    if prepared.error is None:
        assert prepared.spec is not None and not cut
        assert prepared.arguments == msgspec.json.decode(prepared.call.sent_arguments.encode())
