"""What a person saw of an answer while it came is what is recorded of it, whatever its text looks like."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import Event, MessageAdded, RequestSent, TextStreamed, TurnFinished
from codewhale.protocol.messages import Opaque
from codewhale.protocol.modes import Mode
from codewhale.protocol.stream import Boundary, Failed, Finished, OpaqueDelta, ReasoningDelta, StreamEvent, TextDelta
from codewhale.testing import harness
from support.scenes import DeltaProvider, only, results, scene
from support.writtencalls import READ, STANDING, WHOLE, meant, shown

# Texts whose end may be the beginning of a call, or is what one begins with.
ENDS = (
    "It is <", "It is <tool", "It is <tool_call>", "It is [", "See [TOOL_CALLS]", "So ```", "So ```json\n", "a {",
    "Use <think>", "Done.</think>", "One < two", "A\n<", "\n\n<tool_call>\n", "Look:\n\n    <tool_call>",
    "x <function=", "to=functions.read_file", "Action:", "*** Begin Patch", "ends in blanks  \n\n", " ",
    "\n\nbegins with them",
    "``` \n<tool_call>\n```", "Say `<tool_call>` first.", "<tool_call>\n{}\n</tool_call>\nThat is all.",
)  # fmt: skip
# What may stand before a call that is a whole message.
BEFORE = (
    "<think>",
    "<|im_end|>",
    "<think>I must look.</think>",
    "I must look.\n</think>\n",
    "Look:\n```\nx\n```\n</think>",
)
TEXTS = [
    *(sample.text for sample in [*meant()][::9]),
    *(sample.text for sample in [*shown()][::17]),
    *(f"{lead}{write([READ])}{end}" for write in STANDING.values() for lead in ("", "So:\n") for end in ("", "\nOk.")),
    *(f"{mark}\n{write([READ])}" for write in (*WHOLE.values(), *STANDING.values()) for mark in BEFORE),
    *ENDS,
]


CALL = STANDING["hermes"]([READ])


def pairs(events: Sequence[Event]) -> list[tuple[str, str]]:
    """(what was streamed, what was recorded) of each answer."""
    found: list[tuple[str, str]] = []
    streamed = ""
    for event in events:
        if isinstance(event, RequestSent):
            found.append(("", ""))
            streamed = ""
        elif isinstance(event, TextStreamed):
            streamed += event.text
            found[-1] = (streamed, found[-1][1])
        elif isinstance(event, MessageAdded) and event.message.role == "assistant":
            found[-1] = (streamed, event.message.text)
    return found


@pytest.mark.parametrize("facts", [{}, {"text_calls": True}, {"text_calls": False}], ids=["unknown", "text", "native"])
async def test_what_was_streamed_is_what_is_recorded(facts: dict[str, bool], home: Path, workspace: Path) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        asked = [message["content"] for message in request["messages"] if message["role"] == "user"]
        first = not any(message["role"] == "assistant" for message in request["messages"])
        number = next(word for word in json.dumps(asked).split() if word.startswith("sample-"))
        return {"text": TEXTS[int(number.removeprefix("sample-"))] if first else "Done."}

    wrong = []
    part = slice(facts["text_calls"], None, 2) if facts else slice(None)  # what a model says of itself halves the texts
    async with harness(home, workspace, answer, facts=facts) as stage:  # type: ignore[arg-type]
        for number in range(len(TEXTS))[part]:
            session = await stage.open(mode=Mode.PLAN)
            events = await stage.turn(f"Look at sample-{number} now.", session)
            assert only(events, TurnFinished)
            wrong += [(number, *pair) for pair in pairs(events) if pair[0] != pair[1]]
    assert wrong == []


@pytest.mark.parametrize("before", ["First.", "First.\n", "I will `read` it:", "<tool_call> is how it is written."])
@pytest.mark.parametrize(
    "text", ["Second.", STANDING["hermes"]([READ]), f"Now:\n{STANDING['qwen-coder']([READ])}", "<"]
)
async def test_words_in_several_parts_are_streamed_as_they_are_joined(
    before: str, text: str, home: Path, workspace: Path
) -> None:
    apart: tuple[list[StreamEvent], ...] = (
        [Boundary()],
        [Boundary(), ReasoningDelta("Hm."), Boundary()],
        [OpaqueDelta(Opaque("elsewhere", "{}")), Boundary()],
    )
    for between in apart:
        events: list[StreamEvent] = [TextDelta(before), *between, *map(TextDelta, text), Finished("stop")]
        async with scene(home, workspace, DeltaProvider([events])) as stage:
            told = await stage.turn("Go", await stage.open(mode=Mode.PLAN))
        assert [pair for pair in pairs(told) if pair[0] != pair[1]] == []
        assert pairs(told)[0][1].startswith(before)


@pytest.mark.parametrize("form", WHOLE)
async def test_a_call_behind_thoughts_is_shown_to_nobody(form: str, home: Path, workspace: Path) -> None:
    thoughts = "<think>I must look.</think>"
    script = [{"text": f"{thoughts}\n{WHOLE[form]([READ])}"}]
    async with harness(home, workspace, script, facts={"text_calls": True}) as stage:
        told = await stage.turn("Go", await stage.open(mode=Mode.PLAN))
    assert [result.name for result in results(told)] == ["read_file"]
    assert [text.rstrip() for text in pairs(told)[0]] == [thoughts] * 2


async def test_words_of_a_thought_that_ends_in_a_call_are_no_words_of_the_answer(home: Path, workspace: Path) -> None:
    events: list[StreamEvent] = [ReasoningDelta(f"I must look.\n{CALL}"), Finished("stop")]
    async with scene(home, workspace, DeltaProvider([events])) as stage:
        told = await stage.turn("Go", await stage.open(mode=Mode.PLAN))
    assert [result.name for result in results(told)] == ["read_file"]
    assert pairs(told)[0] == ("", "")


@pytest.mark.parametrize(
    "text", ["It is <tool", f"Now:\n{CALL}", f"Now:\n{CALL[:-9]}", CALL[:20], "\n<tool_call>x</think> y"]
)
async def test_words_of_an_answer_that_fails_are_streamed_to_their_end(text: str, home: Path, workspace: Path) -> None:
    events: list[StreamEvent] = [*map(TextDelta, text), Failed("content_policy", "stopped", False, True)]
    async with scene(home, workspace, DeltaProvider([events])) as stage:
        told = await stage.turn("Go", await stage.open(mode=Mode.PLAN))
    assert pairs(told) == [(text, text)]
