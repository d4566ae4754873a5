"""How Anthropic answers are read, in the shapes that the conversations of `conformance` leave out."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codewhale.models.dialects.anthropic import AnthropicMessages
from codewhale.models.dialects.anthropic_stream import MessagesParser
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.dialects.failures import Failure, ProviderFailure
from codewhale.models.http import HttpProvider
from codewhale.models.retries import Retries
from codewhale.protocol.stream import (
    Boundary,
    CallDelta,
    Finished,
    Resent,
    Retrying,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)
from support.wire import Reply, Wire, sse, stream


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def begin(index: Any, kind: str, **fields: Any) -> dict[str, Any]:
    return event("content_block_start", index=index, content_block={"type": kind, **fields})


def more(index: Any, **delta: Any) -> dict[str, Any]:
    return event("content_block_delta", index=index, delta=delta)


END = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 1})


def read(*events: Any) -> list[StreamEvent]:
    parser, out = MessagesParser(), []
    for one in events:
        parser.feed("message", one if isinstance(one, str) else json.dumps(one), out)
    parser.finish(out)
    return out


def fault(*events: Any) -> Failure:
    with pytest.raises(ProviderFailure) as raised:
        read(*events)
    return raised.value.failure


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
        ("something_new", "something_new"),
    ],
)
def test_why_an_answer_ended(reason: str, word: str) -> None:
    assert read(event("message_delta", delta={"stop_reason": reason}))[-1] == Finished(word)


def test_an_end_without_a_reason_goes_by_the_calls() -> None:
    assert read(event("message_stop"))[-1] == Finished("stop")
    assert read(begin(0, "tool_use", id="a", name="f"), event("message_stop"))[-1] == Finished("tool_calls")


def test_an_end_without_a_reason_inside_a_call_is_a_break() -> None:
    half = more(0, type="input_json_delta", partial_json='{"path": "a')
    with pytest.raises(ProviderFailure) as caught:
        read(begin(0, "tool_use", id="a", name="f"), half, event("message_stop"))
    assert caught.value.failure.kind == "interrupted"
    rest = more(0, type="input_json_delta", partial_json='"}')
    assert read(begin(0, "tool_use", id="a", name="f"), half, rest, event("message_stop"))[-1] == Finished("tool_calls")


def test_nothing_is_told_before_there_is_content() -> None:
    """Until then a request that broke may be sent again."""
    parser, out = MessagesParser(), []
    for one in (event("message_start", message={"usage": {"input_tokens": 3}}), event("ping"), begin(0, "thinking")):
        parser.feed(one["type"], json.dumps(one), out)
    assert out == [] and not parser.ended


def test_only_words_after_other_words_are_set_apart() -> None:
    told = read(begin(0, "text", text="a"), begin(1, "text"), begin(2, "text"), more(2, type="text_delta", text="b"))
    assert told[:-1] == [TextDelta("a"), Boundary(), TextDelta("b")]


def test_calls_are_numbered_as_they_come_whatever_their_blocks_are_called() -> None:
    told = read(
        begin(4, "tool_use", id="a", name="f", input={"x": 1}),
        begin(7, "tool_use", id="b", name="g", input={}),
        more(7, type="input_json_delta", partial_json='{"y"'),
        more(7, type="input_json_delta", partial_json=":2}"),
        event("content_block_stop", index=4),
        event("content_block_stop", index=7),
    )
    calls = {0: "", 1: ""}
    for one in told:
        if isinstance(one, CallDelta):
            calls[one.index] += one.arguments
    assert calls == {0: '{"x":1}', 1: '{"y":2}'}


def test_totals_take_the_place_of_totals_and_nothing_hides_them() -> None:
    started = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": None}
    first = event("message_start", message={"usage": started | {"output_tokens": 1}})
    then = {"input_tokens": 0, "cache_creation_input_tokens": 7, "output_tokens": 30, "server_tool_use": None}
    last = event("message_delta", delta={}, usage=then | {"output_tokens_details": {"thinking_tokens": 20}})
    assert read(first, last)[0] == UsageReport(Usage(22, 30, cache_hit=5, cache_miss=17, reasoning=20))
    assert read(END)[0] == UsageReport(Usage(0, 1))
    assert read(event("message_stop")) == [Finished("stop")]


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "server", True),
        ({"type": "api_error", "message": "Internal server error"}, "server", True),
        ({"type": "rate_limit_error", "message": "This request would exceed your limit"}, "rate_limit", True),
        ({"type": "invalid_request_error", "message": "messages.1: unexpected"}, "bad_request", False),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}, "context_length", False),
        (
            {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 9 + 1"},
            "context_length",
            False,
        ),
        ({"type": "authentication_error", "message": "invalid x-api-key"}, "auth", False),
        ({"type": "billing_error", "message": "Your credit balance is too low"}, "quota", False),
    ],
)
def test_an_error_in_the_stream(error: dict[str, str], kind: str, retryable: bool) -> None:
    told = fault(event("error", error=error))
    assert (told.kind, told.retryable) == (kind, retryable)
    assert error["message"] in told.message
    with pytest.raises(ProviderFailure) as raised:
        MessagesParser().whole(json.dumps(event("error", error=error)).encode(), [])
    assert raised.value.failure.kind == kind


async def test_a_server_that_gives_up_before_the_first_word_is_asked_again() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    begun = event("message_start", message={"usage": {"input_tokens": 3}})
    busy = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    replies = [Reply([stream(sse(begun, begin(0, "text", text=""), busy))]), Reply([stream(sse(begun, END))])]
    async with Wire(replies) as wire:
        settings = ProviderSettings(dialect="anthropic", base_url=wire.url)
        provider = HttpProvider("p", settings, "k", AnthropicMessages(settings), retries=Retries(sleep=sleep))
        told = [one async for one in provider.stream(b"{}")]
        await provider.aclose()
    assert [type(one) for one in told] == [Retrying, Resent, UsageReport, Finished]
    assert len(waited) == 1 and len(wire.requests) == 2


def test_a_refusal_says_why_and_what_it_cost() -> None:
    told = fault(event("message_delta", delta={"stop_reason": "refusal", "stop_details": {"category": "bio"}}))
    assert (told.kind, told.message, told.retryable) == ("content_policy", "the model declined to answer: bio", False)
    assert fault(event("message_delta", delta={"stop_reason": "refusal"})).message == "the model declined to answer"


@pytest.mark.parametrize("data", ["[1]", "nonsense", '"x"', "{"])
def test_what_is_no_event_fails(data: str) -> None:
    assert fault(data).kind == "malformed"
    assert fault(more(3, type="text_delta", text="of what?")).kind == "malformed"


def test_half_a_surrogate_pair_does_not() -> None:
    broken = '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a\\ud83d"}}'
    assert read(broken)[0] == TextDelta("a\ufffd")


def test_nothing_is_read_behind_the_end() -> None:
    assert read(END, event("message_stop"), begin(0, "text", text="late"), "junk") == read(END)
    assert read(END, "[DONE]") == read(END)


def test_a_whole_answer_is_read_like_its_stream() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "i", "name": "f", "input": {"x": []}}, 7]
    answer = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 2}}
    parser, out = MessagesParser(), []
    parser.whole(json.dumps(answer).encode(), out)
    assert parser.ended
    assert out[:3] == [TextDelta("a"), CallDelta(0, "i", "f", ""), CallDelta(0, "", "", '{"x":[]}')]
    for data in (b"\xff{}", b'{"content":null}', b"[]"):
        with pytest.raises(ProviderFailure):
            MessagesParser().whole(data, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["text", "thinking", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["index", "content_block", "delta", "message", "usage", "error", "text", "stop_reason"])
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "error"]
)
BLOCK = st.fixed_dictionaries({"type": JSON}, optional={"text": JSON, "id": JSON, "input": JSON, "thinking": JSON})


@settings(max_examples=50)
@given(st.lists(st.tuples(KINDS, st.dictionaries(KEYS, JSON | BLOCK, max_size=4)), max_size=6))
def test_no_event_makes_it_fail_in_another_way(events: list[tuple[str, dict[str, Any]]]) -> None:
    parser, out = MessagesParser(), []
    try:
        for kind, fields in events:
            parser.feed(kind, json.dumps(fields | {"type": kind}), out)
        parser.finish(out)
    except ProviderFailure:
        return
    assert isinstance(out[-1], Finished)
