"""What is sent is a pure fold: the same from scratch, a prefix of the next request, with calls and results together."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from codewhale.models.dialects.base import RequestOptions
from codewhale.protocol.events import (
    CallFinished,
    ContextAppended,
    Event,
    HeaderPinned,
    MessageAdded,
    ModelChanged,
    RequestSent,
)
from codewhale.protocol.messages import Image, Message, Reasoning, Text, ToolCall
from codewhale.session.projection import LOST_RESULT, Projection, header_sha256, pinned_dialect, request_body
from support.turns import HEADER, IMAGE, sessions


def load(image: Image) -> bytes:
    """Four bytes for any image."""
    return b"\x89PNG"


def requests(events: Sequence[Event]) -> list[bytes]:
    """The body of every request that was sent, each asked for just before it was."""
    projection, header, found = Projection(pinned_dialect(HEADER), load), HEADER, list[bytes]()
    for event in events:
        if isinstance(event, HeaderPinned):
            header = event
        if isinstance(event, RequestSent):
            found.append(projection.request(header, RequestOptions())[0])
        projection.apply(event)
    return found


def messages(body: bytes) -> list[dict[str, Any]]:
    """The messages of a body, without the system text."""
    found: list[dict[str, Any]] = json.loads(body)["messages"]
    assert found[0]["role"] == "system"
    return found[1:]


@settings(max_examples=40, deadline=None)
@given(sessions())
def test_each_request_begins_with_the_one_before(events: list[Event]) -> None:
    bodies = requests(events)
    for before, after in pairwise(bodies):
        assert before.endswith(b"]}")
        assert after.startswith(before[:-2])


@settings(max_examples=40, deadline=None)
@given(sessions(models=True))
def test_any_request_is_rebuilt_from_the_log_alone(events: list[Event]) -> None:
    for number, body in enumerate(requests(events), start=1):
        assert request_body(events, number, load) == body
    assert request_body(events, 99, load) is None


@settings(max_examples=40, deadline=None)
@given(sessions(models=True))
def test_every_call_is_directly_followed_by_its_one_result(events: list[Event]) -> None:
    for body in requests(events):
        said = messages(body)
        waiting: list[str] = []
        for message in said:
            if message["role"] == "tool":
                waiting.remove(message["tool_call_id"])
            else:
                assert waiting == [], "something stands between a call and its result"
                waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert waiting == []


@settings(max_examples=40, deadline=None)
@given(sessions())
def test_no_word_is_lost_or_said_twice(events: list[Event]) -> None:
    last = max(index for index, event in enumerate(events) if isinstance(event, RequestSent))
    said = messages(requests(events)[-1])
    results = [event for event in events[:last] if isinstance(event, CallFinished)]
    assert [message["content"] for message in said if message["role"] == "tool"] == [item.content for item in results]
    images = sum(part["type"] == "image_url" for message in said for part in parts(message))
    assert images == sum(len(item.images) for item in results)
    steered = json.dumps(said).count("steered")
    assert steered == sum(
        isinstance(event, MessageAdded) and "steered" in event.message.text for event in events[:last]
    )


def parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a message's content."""
    return message["content"] if isinstance(message["content"], list) else []


@settings(max_examples=40, deadline=None)
@given(sessions())
def test_asking_for_a_request_that_is_never_sent_changes_nothing(events: list[Event]) -> None:
    quiet, asked = Projection(pinned_dialect(HEADER), load), Projection(pinned_dialect(HEADER), load)
    for event in events:
        asked.request(HEADER, RequestOptions())
        quiet.apply(event)
        asked.apply(event)
    assert asked.request(HEADER, RequestOptions()) == quiet.request(HEADER, RequestOptions())


def test_words_of_person_and_harness_travel_as_one_message_until_they_are_sent() -> None:
    projection = Projection(pinned_dialect(HEADER), load)
    for event in (MessageAdded(Message("user", (Text("hello"),))), ContextAppended("mode", "Mode: plan.")):
        projection.apply(event)
    body, sha, count = projection.request(HEADER, RequestOptions())
    assert messages(body) == [{"role": "user", "content": "hello\nMode: plan."}]
    assert (len(sha), count) == (64, 1)
    projection.apply(RequestSent(1, 0, sha, count))
    projection.apply(ContextAppended("nudge", "Go on."))
    again, other, count = projection.request(HEADER, RequestOptions())
    assert messages(again)[1:] == [{"role": "user", "content": "Go on."}]
    assert other != sha and count == 2


def test_an_image_follows_all_results_of_its_batch() -> None:
    projection = Projection(pinned_dialect(HEADER), load)
    calls = (ToolCall("call_1", "read_file", "{}"), ToolCall("call_2", "read_file", "{}"))
    projection.apply(MessageAdded(Message("assistant", calls)))
    projection.apply(CallFinished("call_1", "read_file", True, "one", images=(IMAGE,)))
    projection.apply(CallFinished("call_2", "read_file", True, "two"))
    said = messages(projection.request(HEADER, RequestOptions())[0])
    assert [message["role"] for message in said] == ["assistant", "tool", "tool", "user"]
    assert [part["type"] for part in parts(said[3])] == ["text", "image_url"]


def test_an_image_that_is_gone_is_said_to_be() -> None:
    def lost(image: Image) -> bytes:
        raise KeyError(image.artifact)

    projection = Projection(pinned_dialect(HEADER), lost)
    projection.apply(MessageAdded(Message("assistant", (ToolCall("call_1", "read_file", "{}"),))))
    projection.apply(CallFinished("call_1", "read_file", True, "one", images=(IMAGE,)))
    assert b"no longer stored" in projection.request(HEADER, RequestOptions())[0]


def test_an_answer_of_thoughts_alone_has_nothing_to_say() -> None:
    projection = Projection(pinned_dialect(HEADER), load)
    projection.apply(MessageAdded(Message("assistant", (Reasoning("hm"),))))
    assert messages(projection.request(HEADER, RequestOptions())[0]) == []


@pytest.mark.parametrize("replays", [True, False])
def test_the_pinned_facts_decide_the_bytes_whatever_is_configured_later(replays: bool) -> None:
    header = HeaderPinned("openai-chat", "sample", "m", "s", "[]", "0", {"replays_reasoning": replays})
    events = [
        header,
        MessageAdded(Message("assistant", (Reasoning("hm"), Text("so", source="model")))),
        RequestSent(1, 0, "0", 1),
    ]
    body = request_body(events, 1, load)
    assert body is not None
    assert (b'"reasoning_content":"hm"' in body) is replays


def test_the_model_and_the_limit_come_from_head_and_event() -> None:
    events: list[Event] = [HEADER, MessageAdded(Message("user", (Text("a"),))), RequestSent(1, 0, "0", 1, 4096)]
    other = HeaderPinned("openai-chat", "sample", "larger", "Another.", "[]", "1" * 64)
    events += [ModelChanged("sample", "larger"), other, MessageAdded(Message("user", (Text("b"),)))]
    events += [RequestSent(2, 0, "0", 2)]
    first, second = request_body(events, 1, load), request_body(events, 2, load)
    assert first is not None and json.loads(first)["max_tokens"] == 4096
    assert second is not None and json.loads(second)["model"] == "larger"
    assert "max_tokens" not in json.loads(second)
    assert [message["content"] for message in json.loads(second)["messages"]] == ["Another.", "a", "b"]


def test_the_name_of_a_head_tells_text_and_tools_apart() -> None:
    assert header_sha256("ab", "c") != header_sha256("a", "bc")


@settings(max_examples=60, deadline=None)
@given(sessions(), strategies.data())
def test_calls_and_results_stand_in_pairs_whatever_records_are_lost(
    events: list[Event], data: strategies.DataObject
) -> None:
    projection = Projection(pinned_dialect(HEADER), load)
    for event in events:
        if isinstance(event, RequestSent) or data.draw(strategies.booleans()):
            projection.apply(event)
    projection.apply(MessageAdded(Message("assistant", (Text("Resumed."),))))
    waiting: list[str] = []
    for message in messages(projection.request(HEADER, RequestOptions())[0]):
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", ())]


def test_a_lost_result_is_said_to_be_lost_and_one_told_later_is_not_repeated() -> None:
    projection = Projection(pinned_dialect(HEADER), load)
    calls = tuple(ToolCall(f"call_{number}", "read_file", "{}") for number in (1, 2))
    projection.apply(MessageAdded(Message("assistant", calls)))
    projection.apply(CallFinished("call_2", "read_file", True, "two"))
    projection.apply(MessageAdded(Message("user", (Text("Go on."),))))
    projection.apply(RequestSent(1, 0, "", 0))
    projection.apply(CallFinished("call_1", "read_file", False, "Interrupted, outcome unknown"))
    projection.apply(CallFinished("call_7", "read_file", True, "of a call that is lost"))
    said = messages(projection.request(HEADER, RequestOptions())[0])
    assert [message["role"] for message in said] == ["assistant", "tool", "tool", "user"]
    assert [message["content"] for message in said[1:3]] == ["two", LOST_RESULT]
