"""Session files of another program, read into words of ours."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.protocol.errors import SessionError
from codewhale.session.foreign import Foreign, ForeignCall, ForeignMessage, Picture, Thought, parse


def read(*messages: dict[str, Any], **top: Any) -> Foreign:
    return parse(json.dumps({"schema_version": 1, "messages": messages, **top}).encode())


def results(foreign: Foreign) -> list[tuple[str, str, bool] | None]:
    """What each call of the session was answered."""
    calls = [piece for said in foreign.messages for piece in said.pieces if isinstance(piece, ForeignCall)]
    return [None if call.result is None else (call.id, call.result.content, call.result.ok) for call in calls]


def test_blocks_and_metadata() -> None:
    foreign = read(
        {"role": "user", "content": [{"type": "text", "text": "do it"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": "yes"},
                {"type": "tool_use", "id": "t1", "name": "exec_wait", "input": {"task_id": "é"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "out", "is_error": True}]},
        metadata={"id": "abc", "title": "T", "workspace": "/w", "mode": "Plan", "model": "m", "provider": "p"},
    )
    assert (foreign.id, foreign.title, foreign.workspace, foreign.mode) == ("abc", "T", "/w", "Plan")
    assert (foreign.provider, foreign.model, foreign.left_out) == ("p", "m", 0)
    user, assistant = foreign.messages
    assert user == ForeignMessage("user", ("do it",))
    thought, text, call = assistant.pieces
    assert (thought, text) == (Thought("hm"), "yes")
    assert isinstance(call, ForeignCall)
    assert (call.name, json.loads(call.arguments)) == ("exec_wait", {"task_id": "é"})
    assert results(foreign) == [("t1", "out", False)]


def test_calls_beside_the_content() -> None:
    foreign = read(
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "so",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "todo_write", "arguments": '{"todos": ['}},
                {"id": "b", "name": "read_file", "arguments": {"path": "x"}},
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "b",
            "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "bad"},
    )
    pieces = foreign.messages[1].pieces
    assert pieces[0] == Thought("so")
    assert [(piece.name, piece.arguments) for piece in pieces if isinstance(piece, ForeignCall)] == [
        ("todo_write", '{"todos": ['),
        ("read_file", '{"path":"x"}'),
    ]
    assert results(foreign) == [("a", "bad", True), ("b", "1\n2", True)]


def test_ids_that_come_again_and_calls_left_open() -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "call_0", "function": {"name": "list_dir", "arguments": "{}"}}]}
    foreign = read(
        call,
        call,
        {"role": "tool", "tool_call_id": "call_0", "content": "second"},
        call,
        {"role": "tool", "tool_call_id": "call_0", "content": "third"},
        {"role": "tool", "tool_call_id": "never", "content": "lone"},
    )
    assert results(foreign) == [None, ("call_0", "second", True), ("call_0", "third", True)]
    assert foreign.left_out == 1


def test_results_without_an_id_go_to_the_calls_in_order() -> None:
    foreign = read(
        {
            "role": "assistant",
            "tool_calls": [
                {"function": {"name": "a", "arguments": "{}"}},
                {"function": {"name": "b", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": {"n": 2}},
    )
    assert results(foreign) == [("", "1", True), ("", '{"n":2}', True)]


def test_pictures_and_what_has_no_form_here() -> None:
    source = {"type": "base64", "media_type": "image/gif", "data": base64.b64encode(b"GIF").decode()}
    foreign = read(
        {
            "role": "user",
            "content": [
                {"type": "image", "source": source},
                {"type": "image", "source": {"type": "base64", "data": "???"}},
                {"type": "redacted_thinking", "data": "x"},
            ],
        }
    )
    assert foreign.messages == (ForeignMessage("user", (Picture("image/gif", b"GIF"),)),)
    assert foreign.left_out == 2


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "messages"),
        (b'{"schema_version":1}', "messages"),
        (b'{"schema_version":2,"messages":[]}', "schema_version is 2"),
        (b'{"schema_version":"1","messages":[]}', "schema_version is '1'"),
        (b'{"messages":[1]}', "message 1"),
        (b'{"messages":[{"role":"user","content":"x"},{"role":"wizard"}]}', "message 2 has role 'wizard'"),
        (b'{"messages":[{"role":"user","content":7}]}', "message 1 has content"),
        (b'{"messages":[{"role":"user","content":[7]}]}', "message 1 has a block"),
        (b'{"messages":[{"role":"assistant","tool_calls":7}]}', "message 1 has tool_calls that are not a list"),
        (b'{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]}]}', "message 1 has a tool call without a name"),
    ],
)
def test_what_is_no_session_file_is_told(data: bytes, told: str) -> None:
    with pytest.raises(SessionError, match=told):
        parse(data)


WORDS = st.sampled_from(
    ["role", "user", "assistant", "tool", "content", "type", "text", "tool_use", "tool_result", "tool_use_id", "id",
     "name", "input", "tool_calls", "function", "arguments", "thinking", "source", "data", "is_error", "messages"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=4))
def test_anything_is_read_or_refused_in_words(messages: list[Any]) -> None:
    try:
        foreign = parse(json.dumps({"messages": messages}).encode())
    except SessionError as error:
        assert str(error)
    else:
        assert all(said.pieces for said in foreign.messages)
