"""How the session stands, folded from its events."""

from typing import Any

import pytest

from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalChanged,
    CallFinished,
    CallStarted,
    CallStreamed,
    ChildClosed,
    ChildOpened,
    Compacted,
    EffortChanged,
    Event,
    JobEnded,
    JobStarted,
    ModeChanged,
    ModelChanged,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    Queued,
    ReasoningStreamed,
    RequestSent,
    RetryCountdown,
    SessionOpened,
    SessionResumed,
    TextStreamed,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import StatusView
from codewhale.protocol.stream import Usage
from codewhale.testing import FakeClock
from codewhale.tui.facts import SessionFacts
from support.tuirecord import envelopes

OPENED = SessionOpened(1, "/w", Mode.AGENT, "p", "m")
SENT = RequestSent(1, 10, "", 1)
RUNS = CallStarted("c1", "exec_shell", "{}", (), "")
OVER = CallFinished("c1", "exec_shell", True, "", display=(TerminalBlock("ls", ""),))


def after(*events: Event) -> SessionFacts:
    """How it stands after these."""
    standing = SessionFacts(FakeClock().monotonic)
    for envelope in envelopes([OPENED, *events]):
        standing.take(envelope)
    return standing


@pytest.mark.parametrize(
    ("events", "doing", "subject"),
    [
        ([], "", ""),
        ([TurnStarted(1)], "model", ""),
        ([TurnStarted(1), SENT, ReasoningStreamed("hm")], "thinking", ""),
        ([TurnStarted(1), SENT, TextStreamed("a")], "writing", ""),
        ([TurnStarted(1), SENT, CallStreamed(0, "exec_shell")], "call", "exec_shell"),
        ([TurnStarted(1), SENT, RUNS], "tool", "exec_shell"),
        ([TurnStarted(1), RUNS, CallStarted("c2", "grep", "{}", (), "")], "tools", "2"),
        ([TurnStarted(1), RUNS, OVER], "model", ""),
        ([TurnStarted(1), RetryCountdown(1, 3, 4.0, "429")], "retry", "1/3: 429"),
        ([TurnStarted(1), RequestSent(2, 1, "", 1, purpose="compaction")], "compaction", ""),
        ([TurnStarted(1), RequestSent(2, 1, "", 1, purpose="relay")], "relay", ""),
        ([TurnStarted(1), ApprovalAsked("r", "c1", "exec_shell", (), "")], "approval", "exec_shell"),
        ([TurnStarted(1), ApprovalAsked("r", "c1", "x", (), ""), ApprovalAnswered("r", True)], "model", ""),
        ([TurnStarted(1), RUNS, QuestionAsked("q", ())], "question", ""),
        ([TurnStarted(1), RUNS, QuestionAsked("q", ()), QuestionAnswered("q", ())], "tool", "exec_shell"),
        ([TurnStarted(1), RUNS, TurnFinished(1, "done")], "", ""),
        ([TurnStarted(1), RUNS, SessionResumed(Mode.PLAN, Authority.PERSON)], "", ""),
        ([TextStreamed("late")], "", ""),
    ],
)
def test_what_is_waited_for(events: list[Event], doing: str, subject: str) -> None:
    standing = after(*events)
    assert (standing.doing, standing.subject) == (doing, subject)
    assert standing.busy == bool(doing)


def test_time_goes_on_while_the_same_is_waited_for() -> None:
    clock = FakeClock()
    standing = SessionFacts(clock.monotonic)
    began = clock.monotonic()
    for event in (OPENED, TurnStarted(1), SENT, TextStreamed("a")):
        standing.take(envelopes([event])[0])
    clock.advance(5)
    assert not standing.take(envelopes([TextStreamed("b")])[0])
    assert standing.since == began
    standing.take(envelopes([SENT])[0])
    assert (standing.doing, standing.since, standing.turn_since) == ("model", began + 5, began)


def test_figures_add_up() -> None:
    first = UsageReported(1, Usage(1000, 100, 800, 200, cost=0.01, currency="USD"))
    second = UsageReported(2, Usage(2000, 50, 1900, 100, cost=0.02))
    aside = UsageReported(3, Usage(90_000, 10, cost=0.5))
    standing = after(SENT, first, RequestSent(2, 1, "", 1), second, RequestSent(3, 1, "", 1, purpose="complete"), aside)
    assert (standing.context_used, standing.hit) == (2050, 0.95)
    assert standing.cost == pytest.approx(0.53)
    assert after(Compacted(1, "full", (), 9000, 700)).context_used == 700
    unknown = after(SENT, UsageReported(1, Usage(10, 1)))
    assert (unknown.cost, unknown.hit) == (None, None)


@pytest.mark.parametrize(
    ("events", "name", "value"),
    [
        ([ModeChanged(Mode.PLAN, Mode.AGENT)], "mode", "plan"),
        ([ModelChanged("q", "n")], "model", "n"),
        ([EffortChanged("high")], "effort", "high"),
        ([Queued("a", 1), Queued("b", 2), QueueChanged(1)], "queue", 1),
        (
            [JobStarted("j1", "make", "."), JobStarted("j2", "make", "."), JobEnded("j1", "Completed", 0, 1.0)],
            "jobs",
            {"j2": "make"},
        ),
        ([JobStarted("j1", "make", "."), SessionResumed(Mode.AGENT, Authority.PERSON)], "jobs", {}),
        ([ChildOpened("a", "A", ""), ChildOpened("b", "B", ""), ChildClosed("a", "done")], "children", {"b": "B"}),
    ],
)
def test_counts_and_settings(events: list[Event], name: str, value: Any) -> None:
    assert getattr(after(*events), name) == value


def view_at(seq: int, mode: Mode) -> StatusView:
    """What a session with this mode says of itself when `seq` is its last event."""
    counts = {"turns": 0, "messages": 0, "requests": 0, "tokens_in": 0, "tokens_out": 0}
    return StatusView(
        session="s", workspace="/w", mode=mode, authority=Authority.PERSON, provider="p", model="m", busy=False,
        waiting_for="", instructions=(), seq=seq, branch="main", **counts,
    )  # fmt: skip


def test_what_is_asked_is_as_the_view_says_unless_it_was_chosen_since() -> None:
    chosen, wide = ApprovalChanged(Approval.SANDBOX, Approval.SUGGEST), ApprovalChanged(Approval.AUTO, Approval.SUGGEST)
    standing = after(wide, TurnStarted(1))
    standing.see(view_at(2, Mode.AGENT))
    assert standing.approval == "suggest"
    standing = after(TurnStarted(1), TurnStarted(2))
    standing.see(view_at(1, Mode.AGENT))
    assert standing.approval == "suggest"
    standing = SessionFacts(FakeClock().monotonic)
    standing.see(view_at(3, Mode.AGENT))
    for envelope in envelopes([OPENED, wide, TurnStarted(1), chosen]):
        standing.take(envelope)
        assert standing.approval == ("sandbox" if envelope.event is chosen else "suggest")
    standing.see(view_at(3, Mode.AGENT))
    assert standing.approval == "sandbox"


def test_a_view_that_arrives_after_a_later_event_does_not_undo_it() -> None:
    standing = after(ModeChanged(Mode.PLAN, Mode.AGENT))
    standing.see(view_at(1, Mode.AGENT))
    assert (standing.mode, standing.branch) == ("plan", "main")
    standing.see(view_at(2, Mode.AGENT))
    assert standing.mode == "agent"
