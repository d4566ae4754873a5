"""What is wrong with outgoing messages is told by its place; what is right passes, and is read once."""

import json
from typing import Any

import pytest

from codewhale.models.dialects.validate import Validator


def wire(*messages: Any) -> bytes:
    return ",".join(json.dumps(message) for message in messages).encode()


def user(text: str = "hi") -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(call_id: str = "c1", name: str = "read_file", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **fields}


def result(call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": ""}


def block(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def use(call_id: str = "c1", given: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {} if given is None else given}


def used(call_id: str = "c1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": ""}


TEXT = {"type": "text", "text": "a"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": ""}
THOUGHT = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}
ASSISTANT = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([user(), asks(call())], "messages[2] has call 'c1' without a result"),
        ([user(), asks(call()), user()], "messages[3] is where the result of call 'c1' should be"),
        (
            [user(), asks(call(), call("c2")), result(), user()],
            "messages[4] is where the result of call 'c2' should be",
        ),
        ([user(), result()], "messages[2] is a result of call 'c1', which was never made"),
        ([user(), asks(call()), result(), result()], "messages[4] is a result of call 'c1', which is answered twice"),
        (
            [user(), {"role": "assistant", "content": ""}, user()],
            "messages[2] is a message of the assistant with nothing",
        ),
        ([user("")], "messages[1] is a message of the user with nothing in it"),
        ([user(), {"role": "system", "content": "a"}], "messages[2] has the role 'system'"),
        ([user(), asks(call(name="a.b")), result()], "messages[2] calls 'a.b', which is no name"),
        ([user(), asks(call(name="n" * 65)), result()], "which is no name"),
        ([user(), asks(call(), call()), result()], "messages[2] has a call 'c1': a second one of that id"),
        ([user(), asks(call()), result(), asks(call()), result()], "messages[4] has a call 'c1': a second one"),
        ([user(), asks(call("")), result("")], "messages[2] has a call '': no id"),
        ([user(), asks(call(arguments='{"a')), result()], "messages[2] has a call 'c1' whose arguments are not a JSON"),
        ([user(), asks(call(arguments="[]")), result()], "arguments are not a JSON object"),
        ([user(), asks({"id": "c1"}), result()], "messages[2] has no usable 'function'"),
        ([user(), ASSISTANT], "messages[2] is the model's, and nothing follows"),
    ],
)
def test_chat_messages(messages: list[Any], said: str) -> None:
    found = Validator("openai-chat", {}, 1).fault(wire(*messages))
    assert said in found
    assert found.endswith(".") and (". " in found)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([block("user", TEXT), block("assistant", use()), block("user", TEXT)], "messages[2] is where the result"),
        ([block("user", TEXT), block("assistant", use(), use("c2")), block("user", used())], "messages[2] lacks the"),
        ([block("user", TEXT), block("assistant", use()), block("user", TEXT, used())], "has words before the result"),
        ([block("user", TEXT), block("assistant", use(given="a")), block("user", used())], "not a JSON object"),
        ([block("user", {"type": "text", "text": " "})], "messages[0] has a text without a word"),
        ([block("user", TEXT), block("assistant"), block("user", TEXT)], "messages[1] is a message of the assistant"),
        ([block("user", used())], "messages[0] is a result of call 'c1', which was never made"),
    ],
)
def test_anthropic_messages(messages: list[Any], said: str) -> None:
    assert said in Validator("anthropic", {}).fault(wire(*messages))


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([user(), CALL], "input[1] has call 'c1' without a result"),
        ([user(), CALL, user()], "input[2] is where the result of call 'c1' should be"),
        ([user(), OUTPUT], "input[1] is a result of call 'c1', which was never made"),
        ([user(), THOUGHT, user()], "input[2] follows reasoning that led to nothing"),
        ([user(), CALL, CALL, OUTPUT], "input[2] has a call 'c1': a second one"),
    ],
)
def test_response_items(items: list[Any], said: str) -> None:
    assert said in Validator("openai-responses", {}).fault(wire(*items))


@pytest.mark.parametrize(
    ("dialect", "facts", "messages"),
    [
        ("openai-chat", {}, [user(), asks(call(), call("c2")), result("c2"), result(), user(), user()]),
        ("openai-chat", {}, [user(), {"role": "assistant", "content": "", "reasoning_content": "r"}, user()]),
        ("openai-chat", {"replays_reasoning": True}, [user(), asks(call(), reasoning_content="r"), result()]),
        ("openai-chat", {"replays_reasoning": True, "reasoning_placeholder": False}, [user(), asks(call()), result()]),
        ("anthropic", {}, [block("user", TEXT), block("assistant", use()), block("user", used(), TEXT)]),
        (
            "openai-responses",
            {},
            [user(), THOUGHT, CALL, {**CALL, "call_id": "c2"}, OUTPUT, {**OUTPUT, "call_id": "c2"}],
        ),
        ("of another kind", {}, [{"anything": 1}]),
    ],
)
def test_what_is_right_passes(dialect: str, facts: dict[str, Any], messages: list[Any]) -> None:
    assert Validator(dialect, facts).fault(wire(*messages)) == ""


def test_reasoning_that_the_provider_wants_back() -> None:
    messages = wire(user(), asks(call(), reasoning="no"), result())
    assert Validator("openai-chat", {}).fault(messages) == ""
    assert "messages[1] has calls without the reasoning" in Validator("openai-chat", {"replays_reasoning": True}).fault(
        messages
    )
    facts = {"replays_reasoning": True, "reasoning_field": "reasoning"}
    assert Validator("openai-chat", facts).fault(messages) == ""


def test_a_pending_word_is_judged_and_then_forgotten() -> None:
    validator = Validator("openai-chat", {}, 1)
    text = bytearray(wire(user(), ASSISTANT))
    assert validator.fault(text, b"," + wire(user())) == ""
    assert "messages[2] is the model's" in validator.fault(text)
    assert "messages[3] has the role" in validator.fault(text, b"," + wire({"role": "system", "content": "a"}))
    text += b"," + wire(user("more"), asks(call()))
    assert "messages[5] is where" in validator.fault(text, b"," + wire(user()))
    text += b"," + wire(result())
    assert validator.fault(text) == ""


def test_a_fault_stays() -> None:
    validator = Validator("openai-chat", {})
    text = bytearray(wire(user(), result()))
    first = validator.fault(text)
    text += b"," + wire(user())
    assert first.startswith("messages[1]") and validator.fault(text) == first


def test_a_long_conversation_is_read_once() -> None:
    validator, text = Validator("openai-chat", {}), bytearray(wire(user()))
    step = [asks(call("c%d")), {**result("c%d"), "content": "x" * 2000}]
    for number in range(200):
        text += b"," + wire(*step).replace(b"c%d", b"c%d" % number)
        assert validator.fault(text) == ""
        text[:] = b"?" * len(text)  # what was read is not looked at again
