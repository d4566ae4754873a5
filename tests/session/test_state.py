"""The running sum of a session is the sum of its log."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    ContextAppended,
    Event,
    JobEnded,
    JobStarted,
    ListChanged,
    MessageAdded,
    ModeChanged,
    ModelChanged,
    RequestSent,
    SessionOpened,
    SessionResumed,
    TextStreamed,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from codewhale.protocol.messages import Message, Text, ToolCall
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.stream import Usage
from codewhale.protocol.tools import Effect, Origin
from codewhale.session.state import SessionState
from codewhale.session.store import SessionStore
from codewhale.testing import FakeClock
from support.turns import HEADER, sessions


def fold(events: list[Event]) -> SessionState:
    """The state after these events."""
    state = SessionState()
    for event in events:
        state.apply(event)
    return state


@settings(max_examples=25, deadline=None)
@given(sessions(models=True, compacts=True))
def test_the_sum_is_the_same_read_back_from_disk(events: list[Event]) -> None:
    with TemporaryDirectory() as folder:
        store = SessionStore(str(Path(folder) / "home"), FakeClock())
        opened = events[0]
        assert isinstance(opened, SessionOpened)
        log = store.create(opened)
        running = fold([opened])
        for event in events[1:]:
            for envelope in log.append([event]):
                running.apply(envelope.event)
        log.close()
        again = fold([envelope.event for envelope in store.read(log.session)])
    assert vars(again) == vars(running)


def test_an_opened_session_knows_where_and_with_whom() -> None:
    state = fold([SessionOpened(1, "/work", Mode.PLAN, "deepseek", "v4"), HEADER])
    assert (state.workspace, state.mode, state.provider, state.model) == ("/work", Mode.PLAN, "deepseek", "v4")
    assert state.header is HEADER


def test_a_changed_model_has_no_head_yet() -> None:
    state = fold([HEADER, ModelChanged("other", "m")])
    assert (state.provider, state.model, state.header) == ("other", "m", None)


def test_modes_change_and_a_resume_brings_its_own() -> None:
    state = fold([ModeChanged(Mode.YOLO, Mode.AGENT), TurnStarted(1)])
    assert state.mode is Mode.YOLO and state.turn_open
    state.apply(SessionResumed(Mode.PLAN, Authority.HEADLESS))
    assert state.mode is Mode.PLAN and not state.turn_open


def test_turns_open_and_close() -> None:
    state = fold([TurnStarted(1)])
    assert (state.turns, state.turn_open) == (1, True)
    state.apply(TurnFinished(1, "done"))
    assert (state.turns, state.turn_open) == (1, False)


def test_calls_are_open_until_their_result_and_their_ids_are_never_free_again() -> None:
    calls = (ToolCall("a", "read_file", "{}"), ToolCall("b", "exec_shell", "{}"))
    state = fold([MessageAdded(Message("assistant", calls)), CallStarted("b", "exec_shell", "{}", (Effect.READS,), "")])
    assert (list(state.open_calls), state.started_calls) == (["a", "b"], {"b"})
    state.apply(CallFinished("b", "exec_shell", True, "ok"))
    assert (list(state.open_calls), state.started_calls) == (["a"], set())
    assert state.call_ids == {"a", "b"} and state.last_call == 2


def test_text_from_outside_taints_the_session_for_good() -> None:
    state = fold([CallFinished("a", "read_file", True, "ok")])
    assert not state.tainted
    state.apply(CallFinished("b", "fetch_url", True, "ok", origin=Origin.WEB))
    state.apply(CallFinished("c", "read_file", True, "ok"))
    assert state.tainted


def test_usage_adds_up_and_teaches_tokens_per_byte() -> None:
    state = fold([RequestSent(1, 500, "0", 1), UsageReported(1, Usage(input=100, output=5))])
    assert state.tokens_per_byte == 0.3
    state = fold([RequestSent(1, 2000, "0", 1), UsageReported(1, Usage(100, 5, 60, 40, 3, 0.5))])
    assert state.tokens_per_byte == 0.05
    state.apply(UsageReported(2, Usage(10, 1, 0, 10, 0, 0.25)))
    assert state.usage == Usage(110, 6, 60, 50, 3, 0.75)
    assert (state.requests, state.request_bytes) == (1, 2000)


def test_what_the_model_was_told_and_what_stands_on_the_lists_is_the_latest() -> None:
    state = fold([ContextAppended("mode", "a"), ContextAppended("mode", "b"), ListChanged("plan", ({"step": "x"},))])
    assert state.context_updates == {"mode": "b"}
    assert state.lists == {"plan": ({"step": "x"},)}


def test_kept_outputs_are_known_by_their_call() -> None:
    state = fold([CallFinished("a", "exec_shell", True, "cut", metadata={"artifact_sha256": "f" * 64})])
    assert state.artifacts == {"a": "f" * 64}


def test_jobs_that_ran_are_stale_after_a_resume() -> None:
    state = SessionState()
    state.apply(JobStarted("a", "serve", "."))
    state.apply(JobStarted("b", "true", "."))
    state.apply(JobEnded("b", "Completed", 0, 1.0))
    assert list(state.jobs) == ["a"] and not state.stale_jobs
    state.apply(SessionResumed(Mode.PLAN, Authority.HEADLESS))
    assert not state.jobs and list(state.stale_jobs) == ["a"]
    for number in range(200):
        state.apply(JobStarted(f"j{number}", "x", "."))
    state.apply(SessionResumed(Mode.PLAN, Authority.HEADLESS))
    assert len(state.stale_jobs) == 128 and list(state.stale_jobs)[-1] == "j199"


def test_what_is_only_shown_changes_nothing() -> None:
    assert vars(fold([TextStreamed("a")])) == vars(SessionState())
    assert fold([MessageAdded(Message("user", (Text("a"),)))]).messages == 1
