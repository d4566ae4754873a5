"""What a person has cleared from memory stands in no later request, in whatever form it was said."""

import io
import json

import msgspec
import pytest

from codewhale.protocol.events import CallFinished, ContextAppended, Event, MessageAdded, TextForgotten
from codewhale.protocol.messages import Message, Text, ToolCall
from codewhale.session.forgetting import REMOVED, forget, held_in, holder

PIECE = 1 << 18  # characters that are read in one go
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
    clean, _ = forget([event, TextForgotten((FACT,))])
    assert holder((FACT,))(msgspec.json.encode(event).decode())
    assert REMOVED in str(clean) and "5433" not in str(clean) and type(clean) is type(event)


def test_what_holds_none_of_them_is_the_same_object() -> None:
    event = ContextAppended("memory", "- tabs")
    record = TextForgotten((FACT,))
    clean = list(forget([event, record]))
    assert clean[0] is event and clean[1] is record


def test_what_is_said_after_it_was_forgotten_stands_until_it_is_forgotten_again() -> None:
    said, record = ContextAppended("memory", f"- {FACT}\n"), TextForgotten((FACT,))
    once = list(forget([said, record, said]))
    assert REMOVED in str(once[0]) and once[2] is said
    twice = list(forget([said, record, said, record, said]))
    assert REMOVED in str(twice[0]) and REMOVED in str(twice[2]) and twice[4] is said


def test_a_short_text_is_removed_as_an_item_alone() -> None:
    events = [ContextAppended("memory", "- tabs\n- tabs in Go"), ContextAppended("x", "use tabs here")]
    clean = list(forget([*events, TextForgotten(("tabs",))]))
    assert clean[:2] == [ContextAppended("memory", f"- {REMOVED}\n- tabs in Go"), events[1]]


@pytest.mark.parametrize("text", [FACT, "tabs"])
@pytest.mark.parametrize("form", ["- {}\n", '"{}"'])
def test_a_text_across_a_seam_is_found_in_pieces_of_bounded_size(text: str, form: str) -> None:
    said = form.format(text) if form[0] == "-" else json.dumps(json.dumps(f"- {text}\n"))
    for at in range(PIECE - len(said) - 1, PIECE + 2):
        asked, file = list[int](), io.StringIO("x" * at + said + "y" * PIECE)

        def read(size: int, asked: list[int] = asked, file: io.StringIO = file) -> str:
            asked.append(size)
            return file.read(size)

        assert held_in(("never", text))(read) and max(asked) == PIECE and len(asked) <= 3, at
    assert not held_in((text,))(io.StringIO("x" * 3 * PIECE).read) and not held_in(())(io.StringIO("x").read)


@pytest.mark.parametrize("texts", [(), ("",), ("  ",)])
def test_nothing_to_remove_removes_nothing(texts: tuple[str, ...]) -> None:
    event = ContextAppended("memory", "- tabs")
    assert next(forget([event, TextForgotten(texts)])) is event and not holder(texts)("- tabs")
