"""Request bytes of the OpenAI chat dialect: golden, stable, append-only."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.models.dialects.base import ProviderSettings, RequestOptions
from codewhale.models.dialects.openai_chat import OpenAIChat
from codewhale.protocol.messages import Image, Message, Part, Reasoning, ResultPart, Role, Text, ToolCall
from codewhale.protocol.tools import Effect, ToolSpec

SPEC = ToolSpec(
    name="read_file",
    family="files",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    effects=(Effect.READS,),
)
PIXEL = Image("image/png", "ab" * 32, 3)


def chat(**facts: bool | int | str) -> OpenAIChat:
    return OpenAIChat(ProviderSettings(facts=facts))


def load(image: Image) -> bytes:
    return b"\x89PN"


def said(dialect: OpenAIChat, role: Role, *parts: Part) -> Any:
    data = dialect.message(Message(role, parts), load)
    return json.loads(b"[" + data + b"]")


def test_a_body_byte_for_byte() -> None:
    dialect = chat()
    messages = dialect.message(Message("user", (Text("hi\n🐋"),)), load)
    body = dialect.body("m-1", "Be brief.", dialect.tools_json([SPEC]), [messages], RequestOptions(100))
    assert body.decode() == (
        '{"model":"m-1","stream":true,"stream_options":{"include_usage":true},'
        '"tools":[{"type":"function","function":{"name":"read_file","description":"Read a file.",'
        '"parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],'
        '"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi\\n🐋"}],"max_tokens":100}'
    )


def test_fields_that_are_not_wanted_are_left_out() -> None:
    without_usage = chat(stream_options=False).body("m", "", "[]", [], RequestOptions())
    assert without_usage == b'{"model":"m","stream":true,"messages":[]}'
    whole = chat(stream=False).body("m", "s", "", [b""], RequestOptions())
    assert whole.startswith(b'{"model":"m","stream":false,"messages":[{')
    assert b'"max_completion_tokens":7' in chat(max_completion_tokens=True).body("m", "", "", [], RequestOptions(7))


def test_a_turn_with_a_call_and_its_result() -> None:
    raw = ToolCall("c1", "Read", '{"path": 1', wire_name="read_file", wire_arguments='{"path":"a"}')
    assert said(chat(), "assistant", Text("Reading."), Reasoning("hm"), raw) == [
        {
            "role": "assistant",
            "content": "Reading.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}}
            ],
        }
    ]
    assert said(chat(), "assistant", ToolCall("c2", "list_dir", ""))[0]["content"] == ""
    assert said(chat(), "tool", ResultPart("c1", "x"), ResultPart("c2", "")) == [
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
    ]


@pytest.mark.parametrize("replays", [False, True])
def test_nothing_is_sent_where_nothing_was_said(replays: bool) -> None:
    dialect = chat(replays_reasoning=replays)
    only = dialect.message(Message("assistant", (Reasoning("only thoughts"),)), load)
    assert only == (b'{"role":"assistant","content":"","reasoning_content":"only thoughts"}' if replays else b"")
    assert dialect.message(Message("assistant", (Reasoning(""),)), load) == b""
    assert dialect.message(Message("assistant", ()), load) == b""
    assert dialect.message(Message("user", ()), load) == b""
    assert dialect.system("") == b""


def test_reasoning_goes_back_as_a_function_of_the_message_alone() -> None:
    dialect = chat(replays_reasoning=True)
    call = ToolCall("c1", "list_dir", "{}")
    assert said(dialect, "assistant", Reasoning("why"), Text("so"))[0]["reasoning_content"] == "why"
    assert said(dialect, "assistant", Reasoning("why"), call)[0]["reasoning_content"] == "why"
    assert said(dialect, "assistant", call)[0]["reasoning_content"] == "(reasoning omitted)"
    assert "reasoning_content" not in said(dialect, "assistant", Text("so"))[0]
    echo = Reasoning("(reasoning omitted)")
    assert "reasoning_content" not in said(dialect, "assistant", echo, Text("so"))[0]
    assert said(dialect, "assistant", echo, call)[0]["reasoning_content"] == "(reasoning omitted)"
    assert "reasoning_content" not in said(chat(), "assistant", Reasoning("why"), call)[0]


def test_where_a_call_needs_no_reasoning_none_is_made_up() -> None:
    dialect = chat(replays_reasoning=True, reasoning_placeholder=False, reasoning_field="reasoning")
    call = ToolCall("c1", "list_dir", "{}")
    assert said(dialect, "assistant", Reasoning("why"), call)[0]["reasoning"] == "why"
    assert set(said(dialect, "assistant", call)[0]) == {"role", "content", "tool_calls"}


def test_members_of_an_effort_and_of_every_body_stand_behind_the_messages() -> None:
    off, high, always = '"thinking":{"type":"disabled"}', '"reasoning_effort":"high"', '"usage":{"include":true}'
    dialect = chat(effort_off=off, effort_high=high, extra_body=always, stream=False)
    plain = b'{"model":"m","stream":false,"messages":[],"max_tokens":9'
    for effort, members in (("off", f",{off}"), ("high", f",{high}"), ("max", ""), ("", "")):
        assert dialect.body("m", "", "", [], RequestOptions(9, effort)) == plain + f"{members},{always}}}".encode()
    assert b'"effort":"x"' in chat(effort_default='"effort":"x"').body("m", "", "", [], RequestOptions())
    assert chat(effort_off="").body("m", "", "", [], RequestOptions(0, "off")).endswith(b'"messages":[]}')


def test_the_system_text_goes_under_the_role_that_the_model_takes() -> None:
    assert chat(system_role="developer").system("Be brief.") == b'{"role":"developer","content":"Be brief."}'


def test_ids_of_calls_are_rewritten_where_the_endpoint_takes_one_form_alone() -> None:
    dialect = chat(call_id_length=9)
    [asked] = said(dialect, "assistant", ToolCall("call_1", "list_dir", "{}"), ToolCall("Ab3dEf6h9", "list_dir", "{}"))
    ours, theirs = (call["id"] for call in asked["tool_calls"])
    assert theirs == "Ab3dEf6h9" and len(ours) == 9 and ours.isalnum()
    assert said(dialect, "tool", ResultPart("call_1", "x"))[0]["tool_call_id"] == ours
    assert said(dialect, "assistant", ToolCall("call_2", "n", "{}"))[0]["tool_calls"][0]["id"] != ours


def test_schemas_are_written_as_the_endpoint_wants_them() -> None:
    loose = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    spec = ToolSpec("t", "f", "T.", loose, ())
    assert json.loads(chat(schemas="plain").tools_json([spec]))[0]["function"]["parameters"]["properties"] == {
        "a": {"type": "string", "nullable": True}
    }
    assert chat(schemas="plain").tools_json([SPEC]) == chat().tools_json([SPEC])


def test_images_are_parts_between_merged_texts() -> None:
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    [message] = said(chat(), "user", Text("a"), Text("b"), PIXEL, Text("c"))
    assert message["content"] == [{"type": "text", "text": "a\nb"}, url, {"type": "text", "text": "c"}]
    results = said(chat(), "tool", ResultPart("c1", "x"), PIXEL, ResultPart("c2", "y"))
    assert [wire["role"] for wire in results] == ["tool", "tool", "user"]
    assert results[2]["content"] == [url]


def test_images_that_cannot_be_sent_become_words() -> None:
    def gone(image: Image) -> bytes:
        raise KeyError(image.artifact)

    assert said(chat(images=False), "user", Text("a"), PIXEL)[0]["content"].startswith("a\n[image/png image left out")
    assert b"no longer stored" in chat().message(Message("user", (PIXEL,)), gone)


def test_lone_surrogates_never_stop_a_request() -> None:
    [message] = said(chat(), "assistant", Text("a\ud800b"), ToolCall("c", "n\udc00", '{"a":"\ud83d"}'))
    assert message["content"] == "a\ufffdb"
    assert message["tool_calls"][0]["function"] == {"name": "n\ufffd", "arguments": '{"a":"\ufffd"}'}


TEXT = st.text(max_size=20)
PARTS: dict[Role, st.SearchStrategy[Any]] = {
    "user": st.one_of(st.builds(Text, TEXT), st.just(PIXEL)),
    "assistant": st.one_of(
        st.builds(Text, TEXT), st.builds(Reasoning, TEXT), st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT)
    ),
    "tool": st.builds(ResultPart, TEXT, TEXT),
}
MESSAGES = st.sampled_from(sorted(PARTS)).flatmap(
    lambda role: st.builds(Message, st.just(role), st.lists(PARTS[role], max_size=3).map(tuple))
)


@given(messages=st.lists(MESSAGES, max_size=6), system=TEXT, replays=st.booleans())
def test_each_body_begins_with_the_one_before(messages: list[Message], system: str, replays: bool) -> None:
    dialect = chat(replays_reasoning=replays)
    wire, before = b"", dialect.body("m", system, "[]", [], RequestOptions(1))
    for message in messages:
        data = dialect.message(message, load)
        assert data == chat(replays_reasoning=replays).message(message, load)
        wire += b"," + data if wire and data else data
        body = dialect.body("m", system, "[]", [wire], RequestOptions(1))
        assert body.startswith(before.removesuffix(b'],"max_tokens":1}'))
        sent = json.loads(body)["messages"]
        said_something = ("content", "tool_calls", "reasoning_content")
        assert all(any(one.get(key) for key in said_something) for one in sent if one["role"] == "assistant")
        before = body
