"""What a person has cleared from memory stands in no later request, in whatever form it was said."""

import json

import msgspec
import pytest

from codewhale.protocol.events import CallFinished, ContextAppended, Event, MessageAdded, TextForgotten
from codewhale.protocol.messages import Message, Text, ToolCall
from codewhale.session.forgetting import REMOVED, forget, holder

FACT = 'The "staging" port is 5433 \\ über 港口'


def call(text: str) -> MessageAdded:
    arguments = json.dumps({"fact": text})
    return MessageAdded(Message("assistant", (ToolCall("c1", "remember", arguments),)))


@pytest.mark.parametrize(
    "event",
    [
        MessageAdded(Message("user", (Text(f"Note that {FACT}, please.", source="person"),))),
        CallFinished("c1", "memory_search", True, f"1. {FACT}\n"),
        CallFinished("c1", "exec_shell", True, json.dumps({"text": FACT}, ensure_ascii=False)),
        ContextAppended("memory", f"- {FACT}\n- tabs\n"),
        call(FACT),
    ],
)
def test_a_text_is_removed_in_whatever_form_it_stands(event: Event) -> None:
    (clean,) = forget([event], (FACT,))
    assert holder((FACT,))(msgspec.json.encode(event).decode())
    assert REMOVED in str(clean) and "5433" not in str(clean) and type(clean) is type(event)


def test_what_holds_none_of_them_is_the_same_object() -> None:
    event = ContextAppended("memory", "- tabs")
    assert next(iter(forget([event], (FACT,)))) is event
    record = TextForgotten((FACT,))
    assert next(iter(forget([record], (FACT,)))) is record


def test_a_short_text_is_removed_as_an_item_alone() -> None:
    events = [ContextAppended("memory", "- tabs\n- tabs in Go"), ContextAppended("x", "use tabs here")]
    clean = list(forget(events, ("tabs",)))
    assert clean == [ContextAppended("memory", f"- {REMOVED}\n- tabs in Go"), events[1]]


@pytest.mark.parametrize("texts", [(), ("",), ("  ",)])
def test_nothing_to_remove_removes_nothing(texts: tuple[str, ...]) -> None:
    event = ContextAppended("memory", "- tabs")
    assert list(forget([event], texts)) == [event] and not holder(texts)("- tabs")
