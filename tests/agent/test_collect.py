"""Stream events add up to one answer, also when they stop halfway."""

from collections.abc import AsyncIterator, Sequence

import pytest

from codewhale.agent.collect import Collector, RawCall
from codewhale.protocol.events import AnswerMoved, CallStreamed, Event, ReasoningStreamed, RetryCountdown, TextStreamed
from codewhale.protocol.messages import Opaque, Reasoning, Text, ToolCall
from codewhale.protocol.stream import (
    Boundary,
    CallDelta,
    Failed,
    Finished,
    OpaqueDelta,
    ReasoningDelta,
    Retrying,
    StreamEvent,
    TextDelta,
    Usage,
    UsageReport,
)
from codewhale.testing import FakeClock


async def stream(events: Sequence[StreamEvent]) -> AsyncIterator[StreamEvent]:
    """The events as a provider's stream."""
    for event in events:
        yield event


async def test_pieces_become_one_answer_and_each_is_told() -> None:
    told: list[Event] = []
    opaque = Opaque("sample", '{"signature":"x"}')
    answer = await Collector(told.append).read(
        stream(
            [
                ReasoningDelta("let me "),
                ReasoningDelta("see"),
                TextDelta("It "),
                OpaqueDelta(opaque),
                TextDelta("is."),
                UsageReport(Usage(input=3, output=2)),
                Finished("stop"),
            ]
        )
    )
    assert answer.items == (Reasoning("let me see"), Text("It is.", source="model"), opaque)
    assert (answer.text, answer.finish) == ("It is.", "stop")
    assert answer.usage == Usage(input=3, output=2)
    assert answer.failure is None and answer.calls == ()
    assert told == [
        ReasoningStreamed("let me "),
        ReasoningStreamed("see"),
        TextStreamed("It "),
        TextStreamed("is."),
    ]


async def test_parts_keep_the_order_in_which_they_began_and_blocks_stay_apart() -> None:
    first, second = Opaque("sample", "1"), Opaque("sample", "2")
    answer = await Collector(lambda event: None).read(
        stream(
            [
                ReasoningDelta("a"),
                OpaqueDelta(first),
                Boundary(),
                TextDelta("x"),
                TextDelta("y"),
                CallDelta(1, "one", "read_file", "{}"),
                Boundary(),
                TextDelta("z"),
                Boundary(),
                ReasoningDelta("b"),
                OpaqueDelta(second),
                CallDelta(0, "nought", "list_dir", ""),
            ]
        )
    )
    nought, one = RawCall("nought", "list_dir", ""), RawCall("one", "read_file", "{}")
    words = [Text(text, source="model") for text in ("xy", "z")]
    assert answer.items == (Reasoning("a"), first, words[0], nought, words[1], Reasoning("b"), second, one)
    kept = [ToolCall("c1", "list_dir", "{}"), ToolCall("c2", "read_file", "{}")]
    assert answer.parts(kept) == (Reasoning("a"), first, words[0], kept[0], words[1], Reasoning("b"), second, kept[1])
    assert answer.parts(()) == (Reasoning("a"), first, *words, Reasoning("b"), second)


async def test_interleaved_fragments_go_to_their_calls_in_order_of_index() -> None:
    told: list[Event] = []
    answer = await Collector(told.append).read(
        stream(
            [
                CallDelta(1, "b", "write_file", ""),
                CallDelta(0, "", "read_", '{"pa'),
                CallDelta(1, "", "", '{"path": '),
                CallDelta(0, "a", "file", 'th": "x"}'),
                CallDelta(1, "", "", '"y"}'),
                Finished("tool_calls"),
            ]
        )
    )
    assert answer.calls == (RawCall("a", "read_file", '{"path": "x"}'), RawCall("b", "write_file", '{"path": "y"}'))
    assert told == [CallStreamed(1, "write_file"), CallStreamed(0, "read_")]


async def test_what_comes_unseen_is_told_now_and_then() -> None:
    told: list[Event] = []
    clock = FakeClock()
    collector = Collector(told.append, True, clock=clock.monotonic)

    async def coming() -> AsyncIterator[StreamEvent]:
        yield CallDelta(0, "a", "write_file", "{")
        for _ in range(8):
            clock.advance(0.5)
            yield CallDelta(0, "", "", " ")
        yield TextDelta("<tool_call>")
        clock.advance(5)
        yield TextDelta("held back")
        yield Finished("stop")

    await collector.read(coming())
    assert told == [CallStreamed(0, "write_file"), AnswerMoved(), AnswerMoved(), AnswerMoved()]


async def test_a_failure_keeps_what_had_come() -> None:
    told: list[Event] = []
    failure = Failed("timeout", "nothing came for 300 s", True, True)
    answer = await Collector(told.append).read(
        stream([Retrying(1, 3, 0.5, "503"), TextDelta("half"), CallDelta(0, "a", "read_file", '{"pa'), failure])
    )
    assert answer.failure == failure
    assert (answer.text, answer.finish, answer.usage) == ("half", "", None)
    assert answer.calls == (RawCall("a", "read_file", '{"pa'),)
    assert told[0] == RetryCountdown(1, 3, 0.5, "503")


def test_what_has_come_can_be_read_at_any_time() -> None:
    collector = Collector(lambda event: None)
    assert collector.answer().text == ""
    collector.add(TextDelta("a"))
    assert collector.answer().text == "a"
    collector.add(TextDelta("b"))
    assert collector.answer().text == "ab"


@pytest.mark.parametrize("said", ["max_tokens", "MAX_TOKENS", "model_length", "length"])
def test_a_length_limit_has_one_name(said: str) -> None:
    collector = Collector(lambda event: None)
    collector.add(Finished(said))
    assert collector.answer().finish == "length"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_text_that_may_be_calls_is_kept_whole_and_shown_to_nobody_yet(size: int) -> None:
    words, call = "I will read it.\n", "<tool_call>\n{}\n</tool_call>"
    told: list[Event] = []
    collector = Collector(told.append, hold=True)
    text = words + call
    for at in range(0, len(text), size):
        collector.add(TextDelta(text[at : at + size]))
    answer = collector.answer()
    shown = "".join(event.text for event in told if isinstance(event, TextStreamed))
    assert (answer.text, shown + answer.held) == (text, text)
    assert "<" not in shown and answer.held.startswith("<tool_call>")
