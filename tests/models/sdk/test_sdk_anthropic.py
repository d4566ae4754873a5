"""The Anthropic dialect against the anthropic SDK: its request types take our bodies, its stream parser hears the
same."""

import json
from typing import Any

import pytest

from codewhale.models.dialects.anthropic import AnthropicMessages
from codewhale.models.dialects.base import Fact, ProviderSettings, RequestOptions
from codewhale.protocol.messages import Image, Message, ResultPart, Text
from support.conformance import Case, cases
from support.sdk import accept, answers, bodies, content, last, serving

CASES = [pytest.param(case, id=case.name) for case in cases("anthropic")]
FINISHED = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "pause_turn": "pause_turn"}
FINISHED["model_context_window_exceeded"] = "length"


def request_type(body: bytes) -> Any:
    """The type of a request; bound thinking is still a beta of its own."""
    from anthropic.types import message_create_params
    from anthropic.types.beta import message_create_params as beta

    return (beta if b'"block_binding"' in body else message_create_params).MessageCreateParamsStreaming


@pytest.mark.parametrize("case", CASES)
async def test_bodies_fit_the_request_type(case: Case) -> None:
    async for body in bodies(case):
        accept(body, request_type(body))


@pytest.mark.parametrize("thinking", ["adaptive", "always", "between_tools", "budget", "none"])
def test_so_does_every_effort_and_every_kind_of_part(thinking: str) -> None:
    facts: dict[str, Fact] = {"thinking": thinking}
    dialect = AnthropicMessages(ProviderSettings(facts=facts))
    picture = Image("image/webp", "00", 3)
    user = dialect.message(Message("user", (Text("a"), picture, Text("b"))), lambda image: b"abc")
    results = dialect.message(Message("tool", (ResultPart("c", "", ok=False), picture)), lambda image: b"abc")
    for effort in ("", "off", "low", "medium", "high", "max"):
        body = dialect.body("m", "s", "[]", [user, b",", results], RequestOptions(40_000, effort))
        accept(body, request_type(body))


async def test_a_body_of_another_shape_would_be_noticed() -> None:
    from pydantic import ValidationError

    [good] = [[body async for body in bodies(case)][1] for case in cases("anthropic") if "tools" in case.name]
    with pytest.raises(AssertionError):
        accept(good.replace(b'"tool_use_id":', b'"id":"x","tool_use_id":'), request_type(good))
    with pytest.raises(ValidationError):
        accept(good.replace(b'"tool_result"', b'"tool_outcome"'), request_type(good))


@pytest.mark.parametrize("case", CASES)
async def test_its_parser_hears_what_ours_does(case: Case) -> None:
    for data, events in answers(case):
        async with serving(data) as url:
            message, told = await listen(url)
        expected = [spoken(event) for event in content(events)]
        for one, other in zip(told, expected, strict=False):
            if "call" in other and other["call"][-1] is None:
                one["call"][-1] = None
        if last(events, "failed"):
            assert message is None or message.stop_reason == "refusal"
            assert told == expected
            continue
        assert told == expected
        assert usage(message.usage) == last(events, "usage")
        assert FINISHED[message.stop_reason] == last(events, "finished")


def spoken(event: dict[str, Any]) -> dict[str, Any]:
    """One event of a fixture, with what a call says as the value that it is; None for one that was cut."""
    if "call" in event:
        *call, arguments = event["call"]
        return {"call": [*call, json.loads(arguments or "{}") if arguments[-1:] in ("", "}") else None]}
    if event.get("opaque", {}).get("signature") == "":
        return {"opaque": {key: value for key, value in event["opaque"].items() if key != "signature"}}
    return event


async def listen(url: str) -> tuple[Any, list[dict[str, Any]]]:
    """The message that the SDK makes of an answer, None where it fails, and what was said, as a fixture says it."""
    import anthropic

    out: list[dict[str, Any]] = []
    client = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0, http_client=client) as sdk:
        asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
        async with sdk.messages.stream(**asked) as heard:
            try:
                async for event in heard:
                    note(event, out)
            except (anthropic.APIStatusError, UnicodeDecodeError):
                return None, out
            return await heard.get_final_message(), out


def note(event: Any, out: list[dict[str, Any]]) -> None:
    """Add an event of the SDK, neighbouring deltas merged."""
    if event.type in ("text", "thinking"):
        key, piece = ("text", event.text) if event.type == "text" else ("reasoning", event.thinking)
        if out and key in out[-1]:
            out[-1][key] += piece
        else:
            out.append({key: piece})
    elif event.type == "content_block_stop":
        block = event.content_block
        if block.type == "tool_use":
            out.append({"call": [sum("call" in one for one in out), block.id, block.name, block.input]})
        elif block.type != "text":
            out.append({"opaque": block.to_dict()})


def usage(told: Any) -> dict[str, int]:
    """A message's usage in the words of a fixture."""
    hit, written = told.cache_read_input_tokens or 0, told.cache_creation_input_tokens or 0
    thought = told.output_tokens_details.thinking_tokens if told.output_tokens_details else 0
    counts = {"input": told.input_tokens + written + hit, "output": told.output_tokens, "cache_hit": hit}
    counts |= {"cache_miss": told.input_tokens + written, "reasoning": thought}
    return {name: count for name, count in counts.items() if count}
