"""How answers in the Responses dialect are read, in shapes beside those of the fixtures."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.agent.collect import Collector, ModelAnswer
from codewhale.models.dialects.failures import ProviderFailure
from codewhale.models.dialects.openai_responses_stream import ResponsesParser
from codewhale.protocol.messages import Opaque, Text
from codewhale.protocol.stream import (
    Boundary,
    CallDelta,
    Finished,
    OpaqueDelta,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)

A = '{"p":"a"}'


def event(kind: str, number: Any = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": number, **fields}


def item(kind: str, when: str = "done", number: Any = 0, **fields: Any) -> dict[str, Any]:
    return event(f"output_item.{when}", number, item={"type": kind, **fields})


def completed(**response: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"status": "completed", **response}}


def read(*chunks: Any) -> list[StreamEvent]:
    parser, out = ResponsesParser("seal"), []
    for chunk in chunks:
        parser.feed("message", chunk if isinstance(chunk, str) else json.dumps(chunk), out)
    parser.finish(out)
    return out


def answer(*chunks: Any) -> ModelAnswer:
    collector = Collector(lambda event: None)
    for one in read(*chunks):
        collector.add(one)
    return collector.answer()


def calls(*chunks: Any) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in answer(*chunks).calls]


CALL = {"call_id": "c1", "name": "f"}


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([item("function_call", arguments=A, **CALL)], id="whole, never announced"),
        pytest.param(
            [item("function_call", "added", **CALL), item("function_call", arguments=A, **CALL)], id="whole at its end"
        ),
        pytest.param(
            [item("function_call", "added", **CALL), event("function_call_arguments.done", arguments=A)],
            id="its end never comes",
        ),
        pytest.param(
            [
                item("function_call", "added", 0, id="x1", **CALL),
                event("function_call_arguments.delta", 0, delta=A),
                item("function_call", "done", 3, id="x2", arguments=A, **CALL),
            ],
            id="another number and id at its end",
        ),
        pytest.param(
            [
                item("function_call", "added", id="fc"),
                event("function_call_arguments.delta", delta=A),
                item("function_call", id="fc", name="f", arguments=A),
            ],
            id="the name comes late, no call id",
        ),
        pytest.param(
            [item("function_call", "added", name="f"), item("function_call", name="f", arguments={"p": "a"})],
            id="no ids, arguments as an object",
        ),
        pytest.param(
            [item("function_call", arguments=A, **CALL), item("function_call", arguments=A, **CALL)], id="said twice"
        ),
        pytest.param([completed(output=[{"type": "function_call", "arguments": A, **CALL}])], id="only in the end"),
        pytest.param(
            [
                item("function_call", arguments=A, **CALL),
                completed(output=[{"type": "function_call", "arguments": A, **CALL}]),
            ],
            id="in the end again",
        ),
    ],
)
def test_one_call_however_it_comes(chunks: list[Any]) -> None:
    [(call_id, name, arguments)] = calls(*chunks)
    assert (call_id in ("c1", "fc", ""), name, arguments) == (True, "f", A)


def test_a_call_without_arguments_has_none() -> None:
    for fields in ({}, {"arguments": ""}, {"arguments": None}, {"arguments": {}}):
        [(_, name, arguments)] = calls(item("function_call", **CALL, **fields))
        assert (name, arguments) == ("f", "")


def test_calls_side_by_side_and_under_one_number() -> None:
    both = [("a", "f", A), ("b", "g", A)]
    assert both == calls(
        item("function_call", "added", 1, call_id="a", name="f"),
        item("function_call", "added", 2, call_id="b", name="g"),
        event("function_call_arguments.delta", 2, delta=A),
        event("function_call_arguments.delta", 1, delta=A),
    )
    assert both == calls(
        item("function_call", "done", None, call_id="a", name="f", arguments=A),
        item("function_call", "done", None, call_id="b", name="g", arguments=A),
    )


def test_without_numbers_words_are_not_taken_for_arguments() -> None:
    said = answer(
        item("function_call", "added", None, **CALL),
        event("output_text.delta", None, delta="And"),
        item("function_call", "done", None, arguments=A, **CALL),
        event("output_text.delta", None, delta=" so."),
    )
    assert [(call.name, call.arguments) for call in said.calls] == [("f", A)]
    assert said.text.replace("\n", "") == "And so."


def test_blocks_stay_apart_and_in_order() -> None:
    said = answer(
        item("reasoning", "added", 0),
        event("reasoning_summary_text.delta", 0, delta="x"),
        item("reasoning", "done", 0, encrypted_content="e"),
        item("message", "added", 1),
        event("output_text.delta", 1, delta="one"),
        item("message", "done", 1, content=[{"type": "output_text", "text": "one"}], phase="commentary"),
        item("message", "added", 2),
        event("output_text.delta", 2, delta="two"),
    )
    assert [type(part).__name__ for part in said.items] == ["Reasoning", "Opaque", "Text", "Opaque", "Text"]
    assert said.items[-1] == Text("two", source="model")


def test_items_that_come_whole() -> None:
    thought = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    assert read(item("reasoning", summary=thought), item("message", "done", 1, content=[{"refusal": "no"}])) == [
        Boundary(),
        ReasoningDelta("a\n\nb"),
        Boundary(),
        TextDelta("no"),
        Finished("stop"),
    ]


def test_reasoning_is_kept_byte_for_byte_where_it_can_go_back() -> None:
    raw = '{"id" : "rs_1",  "type":"reasoning","summary":[],"encrypted_content":"gA\\u003d\\ud83d\\udc0b", "n":1e2}'
    out = read('{"type":"response.output_item.done","output_index":0,"item":' + raw + "}")
    assert out[1] == OpaqueDelta(Opaque("seal", raw))
    assert not any(isinstance(event, OpaqueDelta) for event in read(item("reasoning", id="rs_1", summary=[])))


def test_the_end_and_what_follows_it() -> None:
    usage = {"input_tokens": 9, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 2}}
    assert read(completed(usage=usage), event("output_text.delta", delta="late"), "[DONE]") == [
        UsageReport(Usage(input=9, output=4, reasoning=2)),
        Finished("stop"),
    ]
    assert read("[DONE]") == [Finished("stop")]
    unended = ResponsesParser("seal")
    unended.feed("message", json.dumps(event("output_text.delta", delta="a")), [])
    assert not unended.ended


def test_what_is_not_known_is_passed_over() -> None:
    assert read(
        "  ",
        event("created", response={"error": None, "output": "?"}),
        event("output_text.annotation.added", annotation={}),
        {"type": ["?"], "delta": 3},
        item("web_search_call", "added", 4),
        event("function_call_arguments.delta", 9, delta="{"),
    ) == [Boundary(), Finished("stop")]


def test_the_name_of_the_event_stands_in_for_its_type() -> None:
    out: list[StreamEvent] = []
    ResponsesParser("seal").feed("response.output_text.delta", '{"output_index":0,"delta":"a"}', out)
    assert out == [Boundary(), TextDelta("a")]


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "Sorry"}, "server"),
        ({"type": "error", "error": {"code": "insufficient_quota", "message": "Pay"}}, "quota"),
        ({"error": {"message": "invalid_api_key"}}, "auth"),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}}, "rate_limit"),
        ({"type": "response.failed", "response": {"status": "failed"}}, "server"),
        ({"type": "response.completed", "response": {"output": 3}}, "malformed"),
        ("{not json", "malformed"),
        ("[1]", "malformed"),
        ("[" * 100_000, "malformed"),
    ],
)
def test_errors_inside_the_stream(chunk: Any, kind: str) -> None:
    with pytest.raises(ProviderFailure) as caught:
        read(chunk)
    assert caught.value.failure.kind == kind


def test_an_end_without_a_reason_inside_a_call_is_a_break() -> None:
    begun = item("function_call", "added", 1, arguments="", **CALL)
    half = event("function_call_arguments.delta", 1, delta=A[:4])
    with pytest.raises(ProviderFailure) as caught:
        read(begun, half, "[DONE]")
    assert caught.value.failure.kind == "interrupted"
    done = item("function_call", "done", 1, arguments=A, **CALL)
    assert read(begun, half, done, "[DONE]")[-1] == Finished("tool_calls")


@pytest.mark.parametrize("data", [b"{}", b"[]", b"\xff{}", b'{"error":{"message":"no"}}', b'{"output":{}}'])
def test_whole_answers_that_are_none(data: bytes) -> None:
    with pytest.raises(ProviderFailure):
        ResponsesParser("seal").whole(data, [])


def test_what_is_nearly_json_is_read() -> None:
    nearly = '{"type":"response.output_text.delta","output_index":0,"delta":"a\\ud83d\tb","logprobs":NaN}'
    assert read(nearly)[1] == TextDelta("a�\tb")


def test_size_counts_all_content() -> None:
    parser = ResponsesParser("seal")
    for chunk in (event("output_text.delta", delta="abc"), item("function_call", "done", 1, arguments=A, **CALL)):
        parser.feed("message", json.dumps(chunk), [])
    assert parser.size == 3 + len(A)


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just('{"a":'))
NAMES = st.sampled_from(
    "type output_index summary_index delta item response error id call_id name arguments phase encrypted_content "
    "content summary output status usage incomplete_details reason text refusal input_tokens".split()
)
KINDS = st.sampled_from(
    "output_text.delta reasoning_text.delta output_item.added output_item.done function_call_arguments.delta "
    "function_call_arguments.done reasoning_summary_part.added completed incomplete failed".split()
).map("response.".__add__)
VALUES = st.recursive(
    st.one_of(LEAVES, st.sampled_from(["function_call", "message", "reasoning"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=5)),
    max_leaves=12,
)


@given(st.lists(st.tuples(KINDS, st.dictionaries(NAMES, VALUES, max_size=5)), min_size=1, max_size=4))
def test_no_shape_raises_anything_but_a_failure(chunks: list[tuple[str, dict[str, Any]]]) -> None:
    parser, out = ResponsesParser("seal"), []
    try:
        for kind, fields in chunks:
            parser.feed("message", json.dumps({**fields, "type": kind}), out)
        parser.finish(out)
        ResponsesParser("seal").whole(json.dumps(chunks[0][1]).encode(), [])
    except ProviderFailure as error:
        assert error.failure.message
    positions = [one.index for one in out if isinstance(one, CallDelta)]
    assert set(positions) == set(range(len(set(positions))))
