"""What waits for an answer: a fold of events that needs no screen."""

from codewhale.display.asks import MOST_CALLS, Asks, held_by, kind_of
from codewhale.display.words import Words
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    MessageAdded,
    Notice,
    QuestionAnswered,
    TurnFinished,
)
from codewhale.protocol.messages import Message, ToolCall
from codewhale.protocol.tools import PathSubject
from support.tuiasking import approval, question
from support.tuirecord import envelopes


def test_the_first_that_was_asked_comes_first_until_it_is_answered() -> None:
    asks = Asks()
    changed = [asks.take(envelope) for envelope in envelopes([approval(), Notice("info", "x"), question()])]
    assert changed == [True, False, True] and len(asks) == 2
    assert asks.first is not None and asks.first.event == approval()
    answered = envelopes([ApprovalAnswered("ask_1", True), ApprovalAnswered("ask_1", True)])
    assert [asks.take(envelope) for envelope in answered] == [True, False]
    assert asks.first is not None and asks.first.event == question()
    assert asks.drop("ask_q") and not asks.drop("ask_q") and asks.first is None


def test_the_end_of_a_turn_ends_the_asks_of_its_session_alone() -> None:
    asks = Asks()
    for envelope in (*envelopes([approval()]), *envelopes([approval("b", "ask_2")], session="other")):
        asks.take(envelope)
    (end,) = envelopes([TurnFinished(1, "done")])
    assert asks.take(end) and not asks.take(end)
    assert asks.first is not None and asks.first.session == "other"
    assert not asks.take(envelopes([QuestionAnswered("ask_9", ())])[0])


def test_what_calls_were_written_with_is_kept_within_a_bound() -> None:
    asks = Asks()
    for number in range(MOST_CALLS + 5):
        message = Message("assistant", (ToolCall(f"call_{number}", "run_tests", f'{{"n": {number}}}'),))
        asks.take(envelopes([MessageAdded(message)])[0])
    session = envelopes([Notice("info", "x")])[0].session
    assert asks.arguments(session, "call_204") == '{"n": 204}'
    assert asks.arguments(session, "call_0") == asks.arguments("other", "call_204") == ""


def test_a_path_outside_has_a_title_of_its_own_and_says_what_a_yes_opens() -> None:
    for language in ("en", "zh-Hans"):
        words = Words(language)
        for write, title in ((False, "outside"), (True, "outside_file")):
            subject = PathSubject("/elsewhere/a.txt", write=write)
            ask = ApprovalAsked("r", "c", "read_file", (subject,), "why", rule="path.outside")
            assert kind_of(ask) == title and words(f"asking.title_{title}", tool="read_file")
            assert held_by(ask, words) == words("asking.sandbox_path") != words("asking.sandbox_none")
