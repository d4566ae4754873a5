"""Which answers without calls are ends, and what a model is told of the others."""

import msgspec
import pytest

from codewhale.agent.collect import ModelAnswer
from codewhale.agent.incomplete_turn import (
    ANNOUNCED,
    EMPTY,
    LOST,
    PAUSED,
    REASONS,
    TEXT_CALL,
    TIMES,
    TOO_LONG,
    UNFINISHED,
    Moment,
    opening,
    reason_to_continue,
    reminder,
    times,
)
from codewhale.agent.pending_call import may_hold_calls
from codewhale.catalog.registry import Catalog
from codewhale.protocol.messages import Reasoning, Text
from codewhale.protocol.modes import Mode
from support.writtencalls import Sample, meant

CATALOG = Catalog.load()
FIRST = Moment("Fix the failing test.", Mode.AGENT)
READ = msgspec.structs.replace(FIRST, called=True)
ACTED = msgspec.structs.replace(READ, acted=True)


def answer(text: str, finish: str = "stop", thought: str = "") -> ModelAnswer:
    """An answer of words alone."""
    items = (*((Reasoning(thought),) if thought else ()), *((Text(text, source="model"),) if text else ()))
    return ModelAnswer(items, None, finish, None)


def short(said: ModelAnswer | str, moment: Moment = FIRST, *, writes_call: bool = False) -> str:
    said = answer(said) if isinstance(said, str) else said
    return reason_to_continue(said, moment, writes_call, lambda name: CATALOG.resolve(name) is not None)


def test_words_that_begin_like_those_which_came_with_calls_are_told_once() -> None:
    moment = msgspec.structs.replace(ACTED, openings=frozenset({opening("I see. Let me run the tests.")}))
    assert short("Good, that works. Let me now update the README.", moment) == UNFINISHED
    assert short("I updated the README and ran all tests.", moment) == ""
    assert times(UNFINISHED) == 1 and times(ANNOUNCED) == times(TEXT_CALL) == TIMES == 3


@pytest.mark.parametrize("sample", list(meant())[::20], ids=lambda sample: sample.id)
def test_a_text_that_holds_calls_is_worth_a_look(sample: Sample) -> None:
    assert may_hold_calls(sample.text)


def test_a_text_that_writes_a_call_is_told_so_at_every_moment() -> None:
    for moment in (FIRST, READ, ACTED):
        assert short("<tool_call>read it</tool_call>", moment, writes_call=True) == TEXT_CALL


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (answer(""), EMPTY),
        (answer(" \n"), EMPTY),
        (answer("", thought="I should call the tool."), EMPTY),
        (answer("", "length", thought="hm " * 50), TOO_LONG),
        (answer("", "tool_calls"), LOST),
        (answer("The limit stands in line 3.", "tool_calls"), LOST),
        (answer("", "MALFORMED_FUNCTION_CALL"), LOST),
        (answer("One moment", "pause_turn"), PAUSED),
        (answer("I'll write the", "length"), ""),
        (answer("The answer is 42."), ""),
    ],
)
def test_each_ending_is_told_what_it_is(said: ModelAnswer, kind: str) -> None:
    assert short(said) == kind
    assert not kind or (REASONS[kind] and reminder(kind, 1, None, alone=True))
