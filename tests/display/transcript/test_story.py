"""The fold: a record gives the blocks that were there live, however the deltas came."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from codewhale.display.transcript.blocks import (
    CallCard,
    Countdown,
    NoteBlock,
    Receipt,
    TextBlock,
    TranscriptBlock,
    Work,
    Writing,
)
from codewhale.display.transcript.model import TranscriptModel
from codewhale.protocol.events import (
    AnswerDropped,
    CallFinished,
    CallStarted,
    CallStreamed,
    ChildOpened,
    ChildProgress,
    Event,
    FileChanged,
    JobStarted,
    Notice,
    ReasoningStreamed,
    RetryCountdown,
    SessionResumed,
    ShellOutput,
    TextStreamed,
    TurnFinished,
    is_durable,
)
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import Reasoning
from codewhale.protocol.modes import Authority, Mode
from support.transcripts import (
    ANSWER,
    answered,
    begun,
    finished,
    of_record,
    request,
    said,
    sliced,
    told,
    whole_session,
)
from support.tuirecord import envelopes


def bare(blocks: list[TranscriptBlock]) -> list[tuple[str, dict[str, object]]]:
    """Blocks without their versions."""
    return [(type(block).__name__, {**msgspec.structs.asdict(block), "version": 0}) for block in blocks]


def test_a_record_gives_the_blocks_that_were_live() -> None:
    record = envelopes(whole_session())
    live = of_record(record)
    replayed = of_record([envelope for envelope in record if is_durable(envelope.event)])
    assert bare(live.settled) == bare(replayed.settled)
    assert live.live == replayed.live == []


@given(st.integers(0, len(whole_session())))
def test_so_it_is_from_any_place_on(cut: int) -> None:
    """Who comes late gets the durable events of before, and all that come."""
    record = envelopes(whole_session())
    late = [envelope for envelope in record[:cut] if is_durable(envelope.event)] + record[cut:]
    assert bare(of_record(late).settled) == bare(of_record(record).settled)


@given(
    st.lists(st.tuples(st.integers(0, len(whole_session())), st.sampled_from(["notice", "text", "retry"])), max_size=12)
)
def test_what_comes_in_between_changes_nothing(between: list[tuple[int, str]]) -> None:
    events = list(whole_session())
    made: dict[str, Event] = {
        "notice": Notice("info", "x"),
        "text": TextStreamed("y"),
        "retry": RetryCountdown(1, 2, 3, "z"),
    }
    for place, kind in sorted(between, reverse=True):
        events.insert(place, made[kind])
    record = envelopes(events)
    replayed = of_record([envelope for envelope in record if is_durable(envelope.event)])
    assert bare(of_record(record).settled) == bare(replayed.settled)


def test_ids_are_places_and_stay() -> None:
    story, seen = TranscriptModel(), dict[int, TranscriptBlock]()
    for envelope in envelopes(whole_session()):
        story.take(envelope)
        assert [block.id for block in story.settled] == list(range(len(story.settled)))
        for block in story.settled:
            assert seen.setdefault(block.id, block) is block


@given(sliced(st.just(ANSWER * 9)))
def test_streamed_words_are_those_of_the_message(case: tuple[str, list[str]]) -> None:
    text, slices = case
    story = told([*begun(), *map(TextStreamed, slices)])
    streamed = [(block.text, block.part) for block in story.live if isinstance(block, TextBlock)]
    story.take(envelopes([answered(said(text))])[0])
    settled = [block for block in story.settled if isinstance(block, TextBlock) and block.who == "model"]
    assert streamed == [(block.text, block.part) for block in settled]
    assert [new for _, new in story.became] == [block.id for block in settled]
    assert settled[0].size == len(text)


def test_reasoning_and_words_are_apart_and_each_joined() -> None:
    story = told([*begun(), ReasoningStreamed("a"), TextStreamed("x"), ReasoningStreamed("b"), TextStreamed("y")])
    assert [(block.who, block.text) for block in story.live if isinstance(block, TextBlock)] == [
        ("thought", "ab"),
        ("model", "xy"),
    ]


def test_a_message_takes_the_place_of_what_was_streamed() -> None:
    story = told([*begun(), TextStreamed("half"), CallStreamed(0, "grep"), answered(Reasoning("why"), said("whole"))])
    assert story.live == []
    assert [(block.who, block.text) for block in story.settled[-2:] if isinstance(block, TextBlock)] == [
        ("thought", "why"),
        ("model", "whole"),
    ]


def test_a_new_request_begins_anew() -> None:
    story = told([*begun(), TextStreamed("lost"), request(2), TextStreamed("kept")])
    assert [block.text for block in story.live if isinstance(block, TextBlock)] == ["kept"]


def test_an_answer_that_broke_leaves_a_line_with_what_had_come() -> None:
    events = [TextStreamed("half"), AnswerDropped(1, "cut", 1, 5, text="half"), RetryCountdown(1, 5, 2.0, "cut", True)]
    story = told([*begun(), *events])
    [note] = [block for block in story.settled if isinstance(block, NoteBlock) and block.key == "dropped"]
    assert (note.level, note.detail, [type(block) for block in story.live]) == ("warning", "half", [Countdown])
    assert not [block for block in story.settled if isinstance(block, TextBlock) and block.who == "model"]
    aside = told([*begun(), AnswerDropped(1, "cut", 1, 5, purpose="compaction")])
    assert not [block for block in aside.settled if isinstance(block, NoteBlock) and block.key == "dropped"]


def test_what_waits_is_shown_until_something_comes() -> None:
    story = told([*begun(), RetryCountdown(1, 5, 2.0, "busy"), RetryCountdown(2, 5, 4.0, "busy")])
    assert [type(block) for block in story.live] == [Countdown]
    story = told([*begun(), RetryCountdown(1, 5, 2.0, "busy"), TextStreamed("x"), CallStreamed(0, "grep")])
    assert [type(block) for block in story.live] == [TextBlock, Writing]


def test_ten_agents_have_a_line_each_that_changes_in_place() -> None:
    events: list[Event] = [ChildOpened(f"c{number}", f"agent{number}", "look") for number in range(10)]
    story = told(events)
    before = [block.id for block in story.settled]
    for number in range(10):
        story.take(envelopes([ChildProgress(f"c{number}", "read_file", f'{{"path": "{number}.py"}}')])[0])
    assert [block.id for block in story.settled] == before
    doing = [block.call and block.call.subject for block in story.settled if isinstance(block, Work)]
    assert doing == [f"{number}.py" for number in range(10)]
    assert story.touched == set(before)


def test_what_an_earlier_process_left_open_does_not_run_on() -> None:
    events: list[Event] = [
        CallStarted("call_1", "exec_shell", "{}", (), "mode"), JobStarted("shell_1", "sleep 300", "."),
        ChildOpened("c1", "agent1", "look"), SessionResumed(Mode.AGENT, Authority.PERSON),
    ]  # fmt: skip
    story = told(events)
    assert [block.status for block in story.settled if isinstance(block, Work)] == ["stale", "stale"]
    assert [block.status for block in story.settled if isinstance(block, CallCard)] == ["failed"]
    assert isinstance(last := story.settled[-1], NoteBlock) and last.key == "resumed"


def test_a_turn_ends_with_its_receipt() -> None:
    story = told(whole_session())
    receipt = next(block for block in story.settled if isinstance(block, Receipt))
    assert (receipt.status, receipt.changed, receipt.verified, receipt.stale) == ("done", 1, "", "3 passed")
    assert receipt.usage["cache_hit"] == 4_000


def test_what_an_earlier_turn_verified_is_not_said_again() -> None:
    checked = {"workspace_tree_sha256": "a", "summary": "2 passed", "tests_ran": 2}
    check = CallFinished("c1", "run_tests", True, "x", metadata=checked)
    changed = FileChanged("c9", FileChange("a.py", None, "b"))
    turns = [*begun(1), check, finished(1), *begun(2), finished(2), *begun(3), changed, finished(3)]
    receipts = [block for block in told(turns).settled if isinstance(block, Receipt)]
    assert [receipt.verified for receipt in receipts] == ["2 passed", "", ""]
    assert [receipt.stale for receipt in receipts] == ["", "2 passed", "2 passed"]


def test_an_end_without_a_result_is_an_end() -> None:
    story = told(
        [*begun(), TextStreamed("x"), TurnFinished(1, "infra", "no connection", {"usage": None, "changes": 3})]
    )
    assert isinstance(story.settled[-1], Receipt) and story.live == []


def test_turns_are_found_again() -> None:
    story = told([*begun(1), answered(said("a")), finished(1), *begun(2), answered(said("b")), finished(2)])
    firsts = [story.settled[index] for index in story.turn_starts]
    assert [(block.who, block.turn) for block in firsts if isinstance(block, TextBlock)] == [
        ("person", 1),
        ("person", 2),
    ]


def test_the_persons_own_command_is_seen_while_it_runs_and_after() -> None:
    story = told([ShellOutput("one\n"), ShellOutput("two\n")])
    assert [block.tail for block in story.live if isinstance(block, CallCard)] == [("one", "two")]
    ended = told(whole_session()).settled[-1]
    assert isinstance(ended, CallCard) and (ended.subject, ended.status) == ("ls", "done")


def test_a_line_can_be_said_that_is_no_event() -> None:
    story = TranscriptModel()
    story.say("No session.", "error")
    assert story.settled == [NoteBlock(text="No session.", level="error", asked=True)]
    assert story.find(0) is story.settled[0] and story.find(1) is None
