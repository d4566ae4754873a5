"""Calls: one card from the first word to the result, answers, checks, and a bound on what is kept."""

import pytest

from codewhale.display.transcript.blocks import AskRecord, CallCard
from codewhale.display.transcript.model import TAIL_LINES, TranscriptModel, seconds_of, subject_of
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    CallProgress,
    CallStarted,
    Event,
    FileChanged,
    TurnFinished,
)
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.tools import CommandSubject
from support.transcripts import answered, begun, told, whole_session
from support.tuirecord import envelopes

CALL = answered(ToolCall("c1", "exec_shell", '{"command":"make"}'))
STARTED = CallStarted("c1", "exec_shell", '{"command":"make all"}', (), "mode")


def card_of(*events: Event) -> CallCard:
    return next(block for block in told([*begun(), *events]).settled if isinstance(block, CallCard))


def test_a_call_goes_from_waiting_to_done() -> None:
    assert card_of(CALL).status == "waiting"
    assert (card_of(CALL, STARTED).status, card_of(CALL, STARTED).subject) == ("running", "make all")
    done = card_of(CALL, STARTED, CallProgress("c1", "x"), CallFinished("c1", "exec_shell", True, "fine", 7))
    assert (done.status, done.tail, done.said, done.ms) == ("done", (), "fine", 7)
    assert card_of(CALL, CallFinished("c1", "exec_shell", False, "no", error="denied")).status == "failed"


def test_a_call_without_a_result_fails_with_its_turn() -> None:
    assert card_of(CALL, STARTED, TurnFinished(1, "interrupted")).status == "failed"


def test_a_result_without_a_call_has_a_card() -> None:
    assert card_of(CallFinished("c7", "grep", True, "x")).name == "grep"


def test_what_it_tells_is_bounded() -> None:
    card = card_of(CALL, STARTED, *(CallProgress("c1", f"{number}\n" * 50) for number in range(50)))
    assert len(card.tail) == TAIL_LINES and card.tail[-1] == "49"
    assert max(map(len, card_of(CALL, STARTED, CallProgress("c1", "x" * 1_000_000)).tail)) == 2_000


def test_an_approval_is_a_line_with_its_answer() -> None:
    ask = ApprovalAsked("r1", "c1", "exec_shell", (CommandSubject("make", "sub"),), "agent asks")
    story = told([*begun(), CALL, ask])
    assert card_of(CALL, ask).status == "asking" and story.asking
    story.take(envelopes([ApprovalAnswered("r1", False)])[0])
    asked = story.settled[-1]
    assert isinstance(asked, AskRecord)
    assert (asked.state, asked.rows) == ("denied", (("command", "make  (sub)"),))
    assert not story.asking
    card = next(block for block in story.settled if isinstance(block, CallCard))
    assert asked.card and card.answer == "denied"


def test_questions_have_their_answers() -> None:
    asked = [block for block in told(whole_session()).settled if isinstance(block, AskRecord)]
    assert [(block.kind, block.state) for block in asked] == [("approval", "allowed_session"), ("question", "answered")]
    assert asked[1].rows == (("Which one?", "this"),)


RAN = {"workspace_tree_sha256": "a", "summary": "9 passed", "tests_ran": 9}


def test_a_check_is_stale_behind_the_next_change() -> None:
    check = CallFinished("c1", "run_tests", True, "x", metadata=RAN)
    story = told([*begun(), CALL, check])
    assert story.checked == ("9 passed", "")
    story.take(envelopes([FileChanged("c1", FileChange("a.py", None, "b"))])[0])
    assert (story.checked, story.last_file) == (("", "9 passed"), "a.py")


@pytest.mark.parametrize("ran", [0, None])
def test_a_check_in_which_no_test_ran_is_none(ran: int | None) -> None:
    check = CallFinished("c1", "run_verifiers", True, "x", metadata={**RAN, "tests_ran": ran})
    assert told([*begun(), CALL, check]).checked == ("", "")


def test_the_oldest_results_are_shortened_where_there_is_too_much() -> None:
    story = TranscriptModel(most_kept=10_000)
    for number in range(8):
        event = CallFinished(f"c{number}", "t", True, "x" * 1_000, display=(TerminalBlock("c", "y" * 2_000, 0),))
        story.take(envelopes([event])[0])
    cards = [block for block in story.settled if isinstance(block, CallCard)]
    assert [card.shortened > 0 for card in cards] == [True] * 5 + [False] * 3
    assert sum(len(card.said) for card in cards) < 10_000


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        ('{"command": "ls -l"}', "ls -l"),
        ('{"n": 3, "what": "it"}', "it"),
        ('{"path": "a.py", "old": "x"}', "a.py"),
        ("{broken", "{broken"),
        ("[1]", "[1]"),
        ("", ""),
        ('{"command": "a\\u001b[2Jb"}', "a\\x1b[2Jb"),
    ],
)
def test_what_a_call_is_about(arguments: str, subject: str) -> None:
    assert subject_of(arguments) == subject


def test_times() -> None:
    assert seconds_of("1970-01-01T00:01:00.500Z") == 60.5
    assert seconds_of("never") == 0.0
