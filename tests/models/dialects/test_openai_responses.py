"""Request bytes of the OpenAI Responses dialect: golden, append-only, reasoning kept with what it led to."""

import json
from itertools import zip_longest
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codewhale.app.routes import build_provider
from codewhale.models.dialects.base import Fact, ProviderSettings, RequestOptions
from codewhale.models.dialects.openai_responses import OpenAIResponses
from codewhale.protocol.messages import Image, Message, Opaque, Part, Reasoning, ResultPart, Role, Text, ToolCall
from codewhale.protocol.stream import Failed, TextDelta
from codewhale.protocol.tools import Effect, ToolSpec
from support.wire import Reply, Wire, answer, sse, stream

SPEC = ToolSpec(
    name="read_file",
    family="files",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    effects=(Effect.READS,),
)
PIXEL = Image("image/png", "ab" * 32, 3)
# The spaces are the provider's: what is kept goes back byte for byte.
SEALED = Opaque("openai-responses", '{"type": "reasoning", "id":"rs_1","summary":[],"encrypted_content":"gA+/="}')
FINAL = Opaque("openai-responses", '{"type":"message","phase":"final_answer"}')
CALL = ToolCall("c1", "list_dir", "")


def dialect(**facts: Fact) -> OpenAIResponses:
    return OpenAIResponses(ProviderSettings(facts=facts))


def load(image: Image) -> bytes:
    return b"\x89PN"


def said(spoken: OpenAIResponses, role: Role, *parts: Part) -> Any:
    return json.loads(b"[" + spoken.message(Message(role, parts), load) + b"]")


def body(spoken: OpenAIResponses, *, max_tokens: int = 0, effort: str = "") -> str:
    return spoken.body("m", "", "", [b""], RequestOptions(max_tokens, effort)).decode()


def test_a_body_byte_for_byte() -> None:
    spoken = dialect()
    messages = spoken.message(Message("user", (Text("hi\n🐋"),)), load)
    whole = spoken.body("m-1", "Be brief.", spoken.tools_json([SPEC]), [messages, b""], RequestOptions(100, "low"))
    assert whole.decode() == (
        '{"model":"m-1","store":false,"stream":true,"include":["reasoning.encrypted_content"],'
        '"instructions":"Be brief.","tools":[{"type":"function","name":"read_file","description":"Read a file.",'
        '"parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"strict":false}],'
        '"input":[{"type":"message","role":"user","content":"hi\\n🐋"}],'
        '"max_output_tokens":100,"reasoning":{"effort":"low"}}'
    )


def test_fields_that_are_not_wanted_are_left_out() -> None:
    assert body(dialect(reasoning=False), effort="high") == '{"model":"m","store":false,"stream":true,"input":[]}'
    assert (
        body(dialect(replays_reasoning=False, stream=False)) == '{"model":"m","store":false,"stream":false,"input":[]}'
    )
    assert dialect().system("text") == b""


def test_efforts_in_the_words_of_the_endpoint() -> None:
    def asked(effort: str, **facts: Fact) -> str:
        return body(dialect(**facts), effort=effort).partition('"input":[]')[2]

    assert [asked(effort) for effort in ("", "off", "medium", "max")] == [
        "}",
        ',"reasoning":{"effort":"none"}}',
        ',"reasoning":{"effort":"medium"}}',
        ',"reasoning":{"effort":"xhigh"}}',
    ]
    assert asked("", reasoning_summary="auto") == ',"reasoning":{"summary":"auto"}}'
    assert asked("high", reasoning_summary="auto") == ',"reasoning":{"effort":"high","summary":"auto"}}'
    assert asked("off", effort_off='"reasoning":{"effort":"minimal"}') == ',"reasoning":{"effort":"minimal"}}'
    assert asked("off", effort_off="") == "}"
    minimal = asked("off", effort_off='"reasoning":{"effort":"minimal"}', reasoning_summary="auto")
    assert minimal == ',"reasoning":{"effort":"minimal","summary":"auto"}}'


def test_other_members_stand_behind_all_that_is_cached() -> None:
    extra = '"prompt_cache_key":"me","service_tier":"flex"'
    end = ',"input":[],"max_output_tokens":9,"reasoning":{"effort":"low"},' + extra + "}"
    assert body(dialect(extra_body=extra), max_tokens=9, effort="low").endswith(end)


def test_a_turn_with_calls_and_results() -> None:
    raw = ToolCall("c1", "Read", '{"path": 1', wire_name="read_file", wire_arguments='{"path":"a"}')
    assert said(dialect(), "assistant", Text("Reading."), raw, ToolCall("c2", "list_dir", "")) == [
        {"type": "message", "role": "assistant", "content": "Reading."},
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": '{"path":"a"}'},
        {"type": "function_call", "call_id": "c2", "name": "list_dir", "arguments": "{}"},
    ]
    assert said(dialect(), "tool", ResultPart("c1", "x"), PIXEL, ResultPart("c2", "", ok=False)) == [
        {"type": "function_call_output", "call_id": "c1", "output": "x"},
        {"type": "function_call_output", "call_id": "c2", "output": ""},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"}],
        },
    ]


def test_reasoning_goes_back_byte_for_byte_in_front_of_what_it_led_to() -> None:
    wire = dialect().message(Message("assistant", (Reasoning("why"), SEALED, CALL)), load)
    assert wire.startswith(SEALED.json.encode() + b',{"type":"function_call"')
    wire = dialect().message(Message("assistant", (SEALED, Text("so"), FINAL)), load)
    assert wire.startswith(SEALED.json.encode() + b",") and wire.endswith(b'"content":"so","phase":"final_answer"}')


def test_reasoning_that_led_to_nothing_stays_here() -> None:
    assert said(dialect(), "assistant", SEALED) == []
    assert [item["type"] for item in said(dialect(), "assistant", Text("so"), FINAL, SEALED)] == ["message"]
    twice = said(dialect(), "assistant", SEALED, Reasoning("hm"), SEALED, CALL)
    assert [item["type"] for item in twice] == ["reasoning", "function_call"]


def test_reasoning_of_others_stays_here() -> None:
    foreign = Opaque("anthropic", '{"type":"thinking","thinking":"","signature":"s"}')
    for spoken in (dialect(seal="me"), dialect(replays_reasoning=False), dialect(reasoning=False)):
        assert [item["type"] for item in said(spoken, "assistant", SEALED, CALL)] == ["function_call"]
    assert said(dialect(), "assistant", foreign, Reasoning("hm"), CALL)[0]["type"] == "function_call"
    assert said(dialect(seal="me"), "assistant", Opaque("openai-responses:me", SEALED.json), CALL)[0]["id"] == "rs_1"


def test_nothing_is_sent_where_nothing_was_said() -> None:
    for message in (Message("assistant", (Reasoning("hm"), Text(""))), Message("assistant", ()), Message("user", ())):
        assert dialect().message(message, load) == b""


def test_images_that_cannot_be_sent_become_words() -> None:
    def gone(image: Image) -> bytes:
        raise KeyError(image.artifact)

    [message] = said(dialect(images=False), "user", Text("a"), PIXEL, Text(""))
    assert [part["type"] for part in message["content"]] == ["input_text", "input_text"]
    assert "reads no images" in message["content"][1]["text"]
    assert b"no longer stored" in dialect().message(Message("user", (PIXEL,)), gone)


TEXTS = st.text(max_size=20)
PARTS = st.one_of(
    TEXTS.map(Text),
    TEXTS.map(Reasoning),
    st.sampled_from([SEALED, FINAL, CALL, Opaque("anthropic", "{}"), ToolCall("c9", "n\udc00", '{"a":"\ud83d"}')]),
)
MESSAGES = st.one_of(
    st.builds(Message, st.just("assistant"), st.lists(PARTS, max_size=5).map(tuple)),
    st.builds(Message, st.just("user"), st.lists(st.one_of(TEXTS.map(Text), st.just(PIXEL)), max_size=3).map(tuple)),
    st.builds(Message, st.just("tool"), st.lists(st.builds(ResultPart, TEXTS, TEXTS), max_size=3).map(tuple)),
)


@given(st.lists(MESSAGES, max_size=6))
def test_each_body_begins_with_the_one_before(messages: list[Message]) -> None:
    spoken = dialect()
    wire, before = b"", spoken.body("m", "s", "", [], RequestOptions(9, "low"))
    for message in messages:
        data = spoken.message(message, load)
        wire += b"," + data if data and wire else data
        whole = spoken.body("m", "s", "", [wire], RequestOptions(9, "low"))
        assert whole.startswith(before.removesuffix(b'],"max_output_tokens":9,"reasoning":{"effort":"low"}}'))
        items = json.loads(whole)["input"]
        for item, after in zip_longest(items, items[1:], fillvalue={"type": ""}):
            assert item["type"] != "reasoning" or after["type"] in ("message", "function_call")
        before = whole


async def test_over_the_wire() -> None:
    done = {"type": "response.completed", "response": {"status": "completed"}}
    good = stream(sse({"type": "response.output_text.delta", "delta": "Hi", "output_index": 0}, done))
    stale = answer(400, b'{"error":{"message":"The encrypted content gAAA could not be verified.","code":"x"}}')
    async with Wire([Reply([good]), Reply([stale])]) as wire:
        settings = ProviderSettings(dialect="openai-responses", base_url=wire.url, facts={"images": False})
        provider = build_provider("p", settings, "sk-1234567890", model="m", environ={})
        first = [event async for event in provider.stream(b"{}")]
        second = [event async for event in provider.stream(b"{}")]
        await provider.aclose()
    assert TextDelta("Hi") in first
    assert wire.requests[0].head.startswith("POST /v1/responses ")
    assert wire.requests[0].headers["authorization"] == "Bearer sk-1234567890"
    assert isinstance(second[-1], Failed) and second[-1].kind == "bad_request" and not second[-1].retryable
