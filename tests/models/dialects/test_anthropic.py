"""Request bytes of the Anthropic dialect: golden, stable, append-only."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.models.dialects.anthropic import AnthropicMessages
from codewhale.models.dialects.base import Fact, ProviderSettings, RequestOptions
from codewhale.protocol.messages import Image, Message, Opaque, Part, Reasoning, ResultPart, Role, Text, ToolCall
from codewhale.protocol.stream import OpaqueDelta
from codewhale.protocol.tools import Effect, ToolSpec

SPEC = ToolSpec(
    name="read_file",
    family="files",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    effects=(Effect.READS,),
)
PIXEL = Image("image/png", "ab" * 32, 3)
SIGNED = Opaque("anthropic", '{"type":"thinking","thinking":"why","signature":"Eq=="}')
CALL = ToolCall("toolu_1", "list_dir", "{}")


def speak(**facts: Fact) -> AnthropicMessages:
    return AnthropicMessages(ProviderSettings(facts=facts))


def load(image: Image) -> bytes:
    return b"\x89PN"


def said(dialect: AnthropicMessages, role: Role, *parts: Part) -> Any:
    data = dialect.message(Message(role, parts), load)
    return json.loads(data)["content"] if data else None


def test_a_body_byte_for_byte() -> None:
    dialect = speak()
    messages = dialect.message(Message("user", (Text("hi\n🐋"),)), load)
    body = dialect.body("m-1", "Be brief.", dialect.tools_json([SPEC]), [messages], RequestOptions(100, "medium"))
    assert body.decode() == (
        '{"model":"m-1","stream":true,"tools":[{"name":"read_file","description":"Read a file.",'
        '"input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}],'
        '"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],'
        '"messages":[{"role":"user","content":[{"type":"text","text":"hi\\n🐋"}]}],'
        '"max_tokens":100,"cache_control":{"type":"ephemeral"},'
        '"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"medium"}}'
    )


def test_what_is_not_wanted_is_left_out() -> None:
    assert speak().system("Be brief.") == b""
    bare = speak(cache_control=False, stream=False).body("m", " ", "[]", [], RequestOptions())
    assert bare == b'{"model":"m","messages":[],"max_tokens":32000}'
    told = speak(cache_control=False, max_tokens=4096).body("m", "s", "", [], RequestOptions())
    assert told == b'{"model":"m","stream":true,"system":[{"type":"text","text":"s"}],"messages":[],"max_tokens":4096}'


OFF, BETWEEN = {"thinking": {"type": "disabled"}}, {"thinking": {"type": "between_tools"}}
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
BOUND = ADAPTIVE | {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}


@pytest.mark.parametrize(
    ("facts", "options", "expected"),
    [
        ({}, RequestOptions(9000), {}),
        ({}, RequestOptions(9000, "off"), OFF),
        ({}, RequestOptions(9000, "max"), {"thinking": ADAPTIVE, "output_config": {"effort": "max"}}),
        ({"effort": False}, RequestOptions(9000, "high"), {"thinking": ADAPTIVE}),
        ({"thinking": "none"}, RequestOptions(9000, "high"), {}),
        ({"thinking": "always"}, RequestOptions(1, "off"), {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}),
        ({"thinking": "between_tools"}, RequestOptions(9000, "off"), BETWEEN),
        ({"thinking": "budget"}, RequestOptions(64_000), {}),
        ({"thinking": "budget"}, RequestOptions(64_000, "off"), OFF),
        (
            {"thinking": "budget"},
            RequestOptions(64_000, "max"),
            {"thinking": {"type": "enabled", "budget_tokens": 32_768}},
        ),
        ({"thinking": "budget"}, RequestOptions(3000, "max"), {"thinking": {"type": "enabled", "budget_tokens": 1976}}),
        ({"thinking": "budget"}, RequestOptions(2000, "max"), {}),
        ({"thinking": "budget", "effort": True}, RequestOptions(2000, "low"), {"output_config": {"effort": "low"}}),
        ({"binds_thinking": True}, RequestOptions(9000), {"thinking": BOUND}),
        (
            {"binds_thinking": True, "thinking": "between_tools"},
            RequestOptions(9000, "off"),
            {"thinking": BOUND, "output_config": {"effort": "low"}},
        ),
        (
            {"binds_thinking": True},
            RequestOptions(9000, "high"),
            {"thinking": BOUND, "output_config": {"effort": "high"}},
        ),
    ],
)
def test_each_effort_in_each_way_of_thinking(
    facts: dict[str, Fact], options: RequestOptions, expected: dict[str, Any]
) -> None:
    body = json.loads(speak(cache_control=False, **facts).body("m", "", "", [], options))
    assert {key: body[key] for key in body if key in ("thinking", "output_config")} == expected
    assert body["max_tokens"] == options.max_tokens


def test_headers_carry_the_version_the_key_and_what_bound_thinking_needs() -> None:
    assert speak().headers("k") == {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert speak().headers("") == {"anthropic-version": "2023-06-01"}
    assert speak(bearer=True).headers("k") == {"anthropic-version": "2023-06-01", "authorization": "Bearer k"}
    assert speak(binds_thinking=True).headers("")["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


def test_thinking_goes_back_as_it_came_and_in_its_order() -> None:
    hidden = Opaque("anthropic", '{"type":"redacted_thinking","data":"Ab+/="}')
    data = speak().message(
        Message("assistant", (Reasoning("why"), SIGNED, Text("a"), hidden, Reasoning("x"), CALL)), load
    )
    assert data.decode() == (
        '{"role":"assistant","content":[' + SIGNED.json + ',{"type":"text","text":"a"},' + hidden.json + ","
        '{"type":"tool_use","id":"toolu_1","name":"list_dir","input":{}}]}'
    )


def test_thinking_that_nothing_follows_is_refused_as_an_end_and_left_out() -> None:
    assert said(speak(), "assistant", Text("a"), Reasoning("why"), SIGNED) == [{"type": "text", "text": "a"}]
    assert said(speak(), "assistant", Reasoning("why"), SIGNED) is None
    assert said(speak(replays_reasoning=True), "assistant", Reasoning("why")) is None
    assert said(speak(), "assistant", SIGNED, Text(" \n")) is None


def test_what_another_dialect_kept_falls_back_on_what_all_can_say() -> None:
    other = Opaque("openai-responses", '{"type":"reasoning","id":"rs_1"}')
    assert said(speak(), "assistant", Reasoning("why"), other, Text("so")) == [{"type": "text", "text": "so"}]
    thought = {"type": "thinking", "thinking": "why", "signature": ""}
    twin = speak(replays_reasoning=True)
    assert said(twin, "assistant", Reasoning("why"), other, Text("so"))[0] == thought
    assert said(twin, "assistant", Reasoning("why"), SIGNED, CALL)[0] == thought
    assert said(twin, "assistant", Text("so"), CALL)[0] == thought | {"thinking": "(reasoning omitted)"}


def test_blocks_go_back_only_to_whom_they_are_sealed_for() -> None:
    """A signature of one endpoint is refused by every other."""
    for facts in ({}, {"replays_reasoning": True}, {"seal": "acme"}):
        own, parser = [], speak(**facts).parser()
        parser.feed("", '{"type":"content_block_start","index":0,"content_block":' + SIGNED.json + "}", own)
        parser.finish(own)
        kept = next(event.part for event in own if isinstance(event, OpaqueDelta))
        for others in ({}, {"replays_reasoning": True}, {"seal": "acme"}, {"seal": "other", "replays_reasoning": True}):
            sent = said(speak(**others), "assistant", kept, Text("so"))
            assert (sent[0]["type"] == "thinking") == (others == facts)


def test_results_of_one_message_stand_together_before_all_else() -> None:
    results = said(speak(), "tool", ResultPart("a", "x"), PIXEL, ResultPart("b", " ", ok=False), Text("seen"))
    assert results[:2] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "x"},
        {"type": "tool_result", "tool_use_id": "b", "content": "The call failed.", "is_error": True},
    ]
    assert [block["type"] for block in results[2:]] == ["image", "text"]


def test_ids_of_others_are_spelled_anew_each_in_its_own_way() -> None:
    [call] = said(speak(), "assistant", ToolCall("functions.read:0", "read_file", "{}"))
    [result] = said(speak(), "tool", ResultPart("functions.read:0", "x"))
    assert call["id"] == result["tool_use_id"] != said(speak(), "tool", ResultPart("functions_read_0", ""))[0]
    ids = {said(speak(), "tool", ResultPart(one, ""))[0]["tool_use_id"] for one in ("a:0", "a.0", "a_0", "é", "", "ö")}
    assert len(ids) == 6
    assert all(one and one.isascii() and one.replace("_", "").isalnum() for one in ids)


@pytest.mark.parametrize(
    ("arguments", "wire"),
    [
        ('{"path":  "a"}', '{"path":  "a"}'),
        ('{"b":123456789012345678901234567890,"a":1.0}', '{"b":123456789012345678901234567890,"a":1.0}'),
        ('{"a":"\\ud83d"}', '{"a":"\ufffd"}'),
        ("[1]", "{}"),
        ("", "{}"),
        ("{", "{}"),
    ],
)
def test_arguments_go_back_as_the_object_they_were(arguments: str, wire: str) -> None:
    data = speak().message(Message("assistant", (ToolCall("c", "f", arguments),)), load)
    assert data.decode().endswith(f'"input":{wire}}}]}}')


def test_images_stand_between_merged_words_and_become_words_where_they_cannot_be_sent() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
    picture = {"type": "image", "source": source}
    assert said(speak(), "user", Text("a"), Text(""), Text("b"), PIXEL, Text("c")) == [
        {"type": "text", "text": "a\nb"},
        picture,
        {"type": "text", "text": "c"},
    ]

    def gone(image: Image) -> bytes:
        raise KeyError(image.artifact)

    assert b"no longer stored" in speak().message(Message("user", (PIXEL,)), gone)
    [words] = said(speak(), "user", Text("a"), Image("image/tiff", "00", 1))
    assert words["text"].startswith("a\n[image/tiff image left out")
    assert "left out" in said(speak(images=False), "user", PIXEL)[0]["text"]
    assert said(speak(), "user", Text(" ")) is None


TEXT = st.text(max_size=20)
PARTS: dict[Role, st.SearchStrategy[Any]] = {
    "user": st.one_of(st.builds(Text, TEXT), st.just(PIXEL)),
    "assistant": st.one_of(
        st.builds(Text, TEXT),
        st.builds(Reasoning, TEXT),
        st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT),
        st.just(SIGNED),
        st.just(Opaque("other", "{}")),
    ),
    "tool": st.builds(ResultPart, TEXT, TEXT, st.booleans()),
}
MESSAGES = st.sampled_from(sorted(PARTS)).flatmap(
    lambda role: st.builds(Message, st.just(role), st.lists(PARTS[role], max_size=4).map(tuple))
)


@settings(max_examples=50)
@given(messages=st.lists(MESSAGES, max_size=6), system=TEXT, replays=st.booleans())
def test_each_body_begins_with_the_one_before(messages: list[Message], system: str, replays: bool) -> None:
    dialect = speak(replays_reasoning=replays)
    wire, before = b"", dialect.body("m", system, "[]", [], RequestOptions(1))
    for message in messages:
        data = dialect.message(message, load)
        assert data == speak(replays_reasoning=replays).message(message, load)
        wire += b"," + data if wire and data else data
        body = dialect.body("m", system, "[]", [wire], RequestOptions(1))
        assert body.startswith(before.split(b'],"max_tokens"')[0])
        sent = json.loads(body)["messages"]
        assert all(one["content"] for one in sent)
        assert all(one["content"][-1]["type"] != "thinking" for one in sent)
        before = body
