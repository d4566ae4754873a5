"""How chat answers are read, in all the shapes that endpoints give them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.models.dialects.failures import ProviderFailure
from codewhale.models.dialects.openai_stream import ChatParser, parse_usage
from codewhale.protocol.stream import (
    CallDelta,
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)
from support.wire import delta


def read(*chunks: Any) -> list[StreamEvent]:
    parser, out = ChatParser(), []
    for chunk in chunks:
        parser.feed("message", chunk if isinstance(chunk, str) else json.dumps(chunk), out)
    parser.finish(out)
    return out


def fragment(name: str | None = None, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {**fields, "function": {key: value for key, value in function.items() if value is not None}}


def calls(*fragments: dict[str, Any], together: bool = False) -> list[tuple[str, str, str]]:
    """The calls that fragments add up to, as (id, name, arguments)."""
    chunks = [delta(tool_calls=list(fragments))] if together else [delta(tool_calls=[one]) for one in fragments]
    found: dict[int, list[str]] = {}
    for event in read(*chunks):
        if isinstance(event, CallDelta):
            call = found.setdefault(event.index, ["", "", ""])
            for place, piece in enumerate((event.id, event.name, event.arguments)):
                call[place] += piece
    assert list(found) == list(range(len(found)))
    return [(call[0], call[1], call[2]) for call in found.values()]


A, B = '{"p":"a"}', '{"p":"b"}'


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [
                fragment("f", "", index=0, id="x"),
                fragment(None, '{"p":', index=0),
                fragment("g", "", index=1, id="y"),
                fragment(None, '"a"}', index=0),
                fragment(None, B, index=1),
            ],
            [("x", "f", A), ("y", "g", B)],
            id="interleaved by index",
        ),
        pytest.param(
            [
                fragment("f", "", index=0, id="x"),
                fragment(None, A, index=0),
                fragment("f", "", index=0, id="y"),
                fragment(None, B, index=0),
            ],
            [("x", "f", A), ("y", "f", B)],
            id="one index, new id",
        ),
        pytest.param(
            [fragment("f", A, index=0, id="x"), fragment("g", B, index=0, id="x")],
            [("x", "f", A), ("x", "g", B)],
            id="one index, one id, new name",
        ),
        pytest.param(
            [fragment("f", A, index=0, id="x"), fragment("f", B, index=1, id="x")],
            [("x", "f", A), ("x", "f", B)],
            id="duplicate id under two indexes",
        ),
        pytest.param(
            [fragment("f", A, index=0, id="x"), fragment("f", B, index=0, id="x")],
            [("x", "f", A), ("x", "f", B)],
            id="duplicate id under one index, each whole",
        ),
        pytest.param(
            [fragment("f", A, index=0, id="x"), fragment("f", A, index=0, id="x")], [("x", "f", A)], id="said twice"
        ),
        pytest.param(
            [fragment("f", '{"p":', index=0, id="x"), fragment("f", '"a"}', index=0, id="x")],
            [("x", "f", A)],
            id="id and name repeated in each fragment",
        ),
        pytest.param([fragment("f", A), fragment("f", B)], [("", "f", A), ("", "f", B)], id="no index, no id, whole"),
        pytest.param(
            [fragment("f", "", id="x"), fragment(None, A), fragment("g", "", id="y"), fragment(None, B)],
            [("x", "f", A), ("y", "g", B)],
            id="no index",
        ),
        pytest.param(
            [fragment("f", "", id="x"), fragment(None, '{"p":', id="x"), fragment(None, '"a"}', id="x")],
            [("x", "f", A)],
            id="no index, id repeated",
        ),
        pytest.param(
            [fragment("f", A, index=0, id=""), fragment("f", B, index=0, id="")],
            [("", "f", A), ("", "f", B)],
            id="empty ids under one index",
        ),
        pytest.param(
            [fragment("f", "", index=0), fragment(None, A, index=0, id="x")], [("x", "f", A)], id="the id comes late"
        ),
        pytest.param(
            [fragment("f", {"p": "a"}, index=0, id="x"), fragment("g", {}, index=1, id="y")],
            [("x", "f", A), ("y", "g", "{}")],
            id="arguments as objects",
        ),
        pytest.param([{"name": "f", "arguments": {"p": "a"}}], [("", "f", A)], id="no function wrapper"),
        pytest.param([fragment("f", None, index=0, id="x")], [("x", "f", "")], id="no arguments"),
        pytest.param([{"index": 0, "id": "x", "function": None}], [("x", "", "")], id="no function"),
    ],
)
def test_fragments_add_up(fragments: list[dict[str, Any]], expected: list[Any], together: bool) -> None:
    assert calls(*fragments, together=together) == expected


def test_text_reasoning_usage_and_the_end() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    assert read(
        delta(role="assistant", content=""),
        delta(reasoning_content="hm"),
        delta(reasoning="so", content=None),
        delta(content="He"),
        delta("stop", content="y"),
        {"choices": [], "usage": usage},
        "[DONE]",
        delta(content="after the end"),
    ) == [
        ReasoningDelta("hm"),
        ReasoningDelta("so"),
        TextDelta("He"),
        TextDelta("y"),
        UsageReport(Usage(input=9, output=4)),
        Finished("stop"),
    ]


def test_other_shapes_of_content() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thinking, {"type": "thinking"}, {"type": "text", "text": "a"}, {"text": "b"}, {"type": "reference"}, 3]
    assert read(delta(content=parts), delta("stop")) == [
        ReasoningDelta("hm"),
        TextDelta("a"),
        TextDelta("b"),
        Finished("stop"),
    ]
    legacy = read(delta("function_call", function_call={"name": "f", "arguments": A}))
    assert legacy == [CallDelta(0, "", "f", A), Finished("tool_calls")]
    second = {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]}
    assert read(second, "[DONE]") == [TextDelta("yes"), Finished("stop")]


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "tool_calls", "eos"])
def test_the_reason_is_the_providers(reason: str) -> None:
    assert read(delta(reason))[-1] == Finished(reason)


def test_usage_inside_a_choice() -> None:
    chunk = delta("stop")
    chunk["choices"][0]["usage"] = {"prompt_tokens": 9, "completion_tokens": 4, "cached_tokens": 8}
    assert read(chunk)[0] == UsageReport(Usage(input=9, output=4, cache_hit=8, cache_miss=1))


def test_whole_answers() -> None:
    message = {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "r",
        "tool_calls": [fragment("f", A, id="x"), fragment("g", {"p": "b"}, id="y")],
    }
    answer = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3},
    }
    parser, out = ChatParser(), []
    parser.whole(json.dumps(answer).encode(), out)
    parser.finish(out)
    assert out == [
        ReasoningDelta("r"),
        TextDelta("a"),
        CallDelta(0, "x", "f", A),
        CallDelta(1, "y", "g", B),
        UsageReport(Usage(input=3)),
        Finished("tool_calls"),
    ]


@pytest.mark.parametrize("arguments", ["", "{", '{"path": "a'])
def test_an_end_without_a_reason_inside_a_call_is_a_break(arguments: str) -> None:
    begun = delta(tool_calls=[fragment("f", arguments, index=0, id="a")])
    with pytest.raises(ProviderFailure) as caught:
        read(begun, "[DONE]")
    assert caught.value.failure.kind == "interrupted"
    assert read(begun, delta("tool_calls"), "[DONE]")[-1] == Finished("tool_calls")
    whole = delta(tool_calls=[fragment("f", '{"path": "a"}', index=0, id="a")])
    assert read(whole, "[DONE]")[-1] == Finished("tool_calls")
    assert read(delta(content="Done."), "[DONE]")[-1] == Finished("stop")


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        ({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, "rate_limit"),
        ({"error": {"message": "Upstream", "code": 502}}, "server"),
        ({"error": "This model's maximum context length is 8 tokens"}, "context_length"),
        (delta("insufficient_system_resource"), "server"),
        (delta("error"), "server"),
        ("{not json", "malformed"),
        ("[1]", "malformed"),
    ],
)
def test_errors_inside_the_stream(chunk: Any, kind: str) -> None:
    with pytest.raises(ProviderFailure) as caught:
        read(chunk)
    assert caught.value.failure.kind == kind


def test_an_event_named_error_is_one() -> None:
    with pytest.raises(ProviderFailure) as caught:
        ChatParser().feed("error", '{"message": "overloaded"}', [])
    assert caught.value.failure.kind == "server"


def test_what_is_nearly_json_is_read() -> None:
    assert read('{"choices":[{"delta":{"content":"a\\ud83d"}}]}', "[DONE]")[0] == TextDelta("a\ufffd")
    assert read('{"choices":[{"delta":{"content":"a\tb"},"logprobs":NaN}]}', "[DONE]")[0] == TextDelta("a\tb")
    assert read("  ", {"choices": None}, {"choices": [None, 3]}, {"usage": 3}, "[DONE]") == [Finished("stop")]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 2},
            Usage(input=10, output=2, cache_hit=8, cache_miss=2),
        ),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(input=10, cache_hit=4, cache_miss=6),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}}, Usage(input=10, cache_miss=10)),
        ({"prompt_tokens": 10, "prompt_tokens_details": None}, Usage(input=10)),
        (
            {"input_tokens": 5, "output_tokens": 6, "output_tokens_details": {"reasoning_tokens": 3}},
            Usage(input=5, output=6, reasoning=3),
        ),
        ({"prompt_tokens": None, "completion_tokens": "7"}, Usage()),
    ],
)
def test_usage(usage: dict[str, Any], expected: Usage) -> None:
    assert parse_usage(usage) == expected


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just('{"a":'))
NAMES = st.sampled_from(
    "choices delta message index finish_reason content reasoning tool_calls function name arguments id usage "
    "prompt_tokens prompt_tokens_details cached_tokens error code text type function_call".split()
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


@given(choices=st.lists(st.dictionaries(NAMES, VALUES, max_size=4), max_size=3), rest=st.dictionaries(NAMES, VALUES))
def test_no_shape_raises_anything_but_a_failure(choices: list[Any], rest: dict[str, Any]) -> None:
    chunk = json.dumps({**rest, "choices": choices})
    for parser in (ChatParser(), ChatParser()):
        try:
            parser.feed("message", chunk, [])
            parser.feed("message", chunk, [])
            parser.whole(chunk.encode(), [])
            parser.finish([])
        except ProviderFailure as error:
            assert error.failure.message


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"choices":' * 50_000, '{"error":' + "[" * 100_000])
def test_bottomless_json_is_a_failure(deep: str) -> None:
    with pytest.raises(ProviderFailure):
        read(deep)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [(0.25, 0.25), (0, 0.0), (3, 3.0), (None, None), (-1, None), ("0.25", None), (True, None), ({"total": 1}, None)],
)
def test_a_gateways_own_cost_is_taken_where_it_is_a_number(cost: Any, expected: float | None) -> None:
    assert parse_usage({"prompt_tokens": 5, "cost": cost}).cost == expected
    assert parse_usage({"prompt_tokens": 5, "cost": float("nan")}).cost is None
