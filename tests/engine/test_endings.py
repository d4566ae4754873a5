"""Which answers without calls are ends, and what a model is told of the others."""

from pathlib import Path

import pytest

from codewhale.engine.collect import Answer
from codewhale.engine.endings import ANNOUNCED, EMPTY, LOST, PAUSED, REASONS, TEXT_CALL, TOO_LONG, announces, shortfall
from codewhale.engine.prepare import may_hold_calls
from codewhale.protocol.messages import Reasoning, Text
from codewhale.protocol.modes import Mode
from support.writtencalls import Sample, meant, shown

FOLDER = Path(__file__).parent / "endings"


def lines(name: str) -> list[str]:
    """The texts of a file, one a line, `\\n` for a line break."""
    told = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line.replace("\\n", "\n") for line in told if line and not line.startswith("#")]


def answer(text: str, finish: str = "stop", thought: str = "") -> Answer:
    """An answer of words alone."""
    items = (*((Reasoning(thought),) if thought else ()), *((Text(text, source="model"),) if text else ()))
    return Answer(items, None, finish, None)


@pytest.mark.parametrize("text", lines("announced.txt"))
def test_a_text_that_ends_with_what_comes_next_is_no_end(text: str) -> None:
    assert shortfall(answer(text), Mode.AGENT, False) == ANNOUNCED


@pytest.mark.parametrize("text", lines("ended.txt"))
def test_a_text_that_answers_asks_or_waits_is_an_end(text: str) -> None:
    assert shortfall(answer(text), Mode.AGENT, False) == ""
    assert shortfall(answer(text), Mode.AGENT, True) == ""


def test_a_plan_may_say_what_will_be_changed_but_not_what_will_be_read() -> None:
    assert not announces("I'll change the limit in src/app.py.", Mode.PLAN, False)
    assert announces("I'll read src/app.py first.", Mode.PLAN, False)


def test_early_words_count_before_the_first_call_alone_and_in_short_texts() -> None:
    text = "I'll read notes.txt. It is there."
    assert announces(text, Mode.AGENT, False)
    assert not announces(text, Mode.AGENT, True)
    assert not announces(f"{text} {'It is a long story. ' * 40}", Mode.AGENT, False)


def test_what_ends_with_code_is_an_answer() -> None:
    assert not announces("I'll write the function:\n```python\npass\n```", Mode.AGENT, False)


def test_texts_that_show_calls_are_ends_but_for_those_that_are_nothing_else() -> None:
    told = [sample.text for sample in shown() if shortfall(answer(sample.text), Mode.AGENT, False)]
    assert all(text.startswith("<") and text.strip().endswith(">") for text in told) and len(told) < 10


@pytest.mark.parametrize("sample", list(meant())[::20], ids=lambda sample: sample.id)
def test_a_text_that_holds_calls_is_worth_a_look(sample: Sample) -> None:
    assert may_hold_calls(sample.text)


@pytest.mark.parametrize(
    "text",
    ["Now I'll read it.\n<tool_call>read it</tool_call>", "<invoke>\n</invoke>", "[TOOL_CALL]", 'read_file(path="a")'],
)
def test_a_call_that_cannot_be_read_is_told_as_text(text: str) -> None:
    assert shortfall(answer(text), Mode.AGENT, False) == TEXT_CALL


@pytest.mark.parametrize(
    ("said", "told"),
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
def test_each_ending_is_told_what_it_is(said: Answer, told: str) -> None:
    assert shortfall(said, Mode.YOLO, False) == told
    assert not told or REASONS[told]
