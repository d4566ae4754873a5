"""Random sessions as lists of events, in the orders in which an engine lets them happen."""

from collections.abc import Callable

from hypothesis import strategies as st

from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    Compacted,
    CompactionUndone,
    ContextAppended,
    Event,
    FileChanged,
    HeaderPinned,
    ListChanged,
    MessageAdded,
    ModeChanged,
    ModelChanged,
    PrefixInvalidated,
    RequestSent,
    ResultsPruned,
    SessionOpened,
    SessionResumed,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import Image, Message, Reasoning, ResultPart, Text, ToolCall
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.stream import Usage
from codewhale.protocol.tools import Effect, Origin

IMAGE = Image("image/png", "a" * 64, 4)
HEADER = HeaderPinned("openai-chat", "sample", "model", "You are a test.", "[]", "0" * 64)
WORDS = st.text(max_size=6)
Draw = Callable[[st.SearchStrategy[object]], object]


@st.composite
def sessions(draw: st.DrawFn, models: bool = False, compacts: bool = False) -> list[Event]:
    """A session of some turns; with `models`, the model may change between two of them; with `compacts`, results are
    pruned and the conversation is compacted before a request, and that may be undone between two turns."""
    events: list[Event] = [SessionOpened(1, "/work", Mode.AGENT, "sample", "model"), HEADER]
    made = _Counter()
    for turn in range(1, draw(st.integers(1, 3)) + 1):
        if draw(st.booleans()):
            events += draw(st.sampled_from(_BETWEEN))
        if made.facts and draw(st.booleans()):
            events.append(CompactionUndone(made.facts.pop()))
        if models and draw(st.booleans()):
            other = HeaderPinned("openai-chat", "sample", f"model-{turn}", "You are another.", "[]", "1" * 64)
            events += [ModelChanged("sample", other.model), PrefixInvalidated("model", 0), other]
        events += [TurnStarted(turn), _words(draw(WORDS))]
        events += [ContextAppended(kind, text) for kind, text in draw(st.lists(_CONTEXT, max_size=2))]
        for _ in range(draw(st.integers(1, 3))):
            if compacts:
                events += _room(draw, made)
            events += _step(draw, made)
        events.append(TurnFinished(turn, "done"))
    return events


class _Counter:
    """Numbers of calls, requests and compactions so far."""

    def __init__(self) -> None:
        self.calls = self.requests = self.compactions = 0
        self.facts: list[int] = []
        self.batches: list[tuple[str, ...]] = []


_CONTEXT = st.tuples(st.sampled_from(["mode", "facts", "instructions"]), WORDS)
_BETWEEN: list[list[Event]] = [
    [ModeChanged(Mode.PLAN, Mode.AGENT)],
    [SessionResumed(Mode.YOLO, Authority.AUTO)],
    [ListChanged("checklist", ({"id": 1, "text": "a"},))],
]


def _words(text: str) -> MessageAdded:
    return MessageAdded(Message("user", (Text(text),)))


def _room(draw: st.DrawFn, made: _Counter) -> list[Event]:
    """Some batches pruned, then perhaps a call for a summary, then perhaps a compaction with or without a tail."""
    events: list[Event] = []
    for batch in draw(st.lists(st.sampled_from(made.batches), max_size=2, unique=True)) if made.batches else ():
        events.append(ResultsPruned(tuple(ResultPart(call_id, f"[short {call_id}]") for call_id in batch)))
    if draw(st.booleans()):
        made.requests += 1
        events.append(RequestSent(made.requests, 9, "0" * 64, 1, purpose="compaction", extra="Sum it up."))
        if draw(st.booleans()):
            made.compactions += 1
            made.facts.append(made.compactions)
            events.append(Compacted(made.compactions, "full", _said_anew(draw, made)))
    return events


def _said_anew(draw: st.DrawFn, made: _Counter) -> tuple[Message, ...]:
    head = Message("user", (Text(f"summary {made.compactions}", source="harness"),))
    if not made.batches or draw(st.booleans()):
        made.batches = []
        return (head,)
    batch = made.batches[-1]
    made.batches = [batch]
    calls = tuple(ToolCall(call_id, "read_file", "{}") for call_id in batch)
    return (head, Message("assistant", calls), Message("tool", tuple(ResultPart(call.id, "kept") for call in calls)))


def _step(draw: st.DrawFn, made: _Counter) -> list[Event]:
    """A request, its answer, its calls and their results; words of others come in anywhere between."""
    made.requests += 1
    events: list[Event] = [RequestSent(made.requests, draw(st.integers(0, 5000)), "0" * 64, 1)]
    if draw(st.booleans()):
        cost = draw(st.none() | st.just(0.5))
        events.append(UsageReported(made.requests, Usage(draw(st.integers(0, 900)), 7, 1, 2, 3, cost)))
    calls = []
    for _ in range(draw(st.integers(0, 3))):
        made.calls += 1
        calls.append(ToolCall(f"call_{made.calls}", "read_file", '{"path": "a"}'))
    thought = [Reasoning(text) for text in draw(st.lists(WORDS, max_size=1))]
    said = [Text(text, source="model") for text in draw(st.lists(WORDS, max_size=1))]
    if calls or thought or said:
        events.append(MessageAdded(Message("assistant", (*thought, *said, *calls)), "stop"))
    if calls:
        made.batches.append(tuple(call.id for call in calls))
    for call in draw(st.permutations(calls)):
        events += draw(st.sampled_from(_ASIDE))
        events += [CallStarted(call.id, call.name, "{}", (Effect.READS,), "rule"), *_results(draw, call.id)]
    return events


_ASIDE: list[list[Event]] = [[], [], [ContextAppended("facts", "aside")], [_words("steered")]]


def _results(draw: st.DrawFn, call_id: str) -> list[Event]:
    shown = (IMAGE,) if draw(st.booleans()) else ()
    metadata = {"artifact_sha256": "b" * 64} if draw(st.booleans()) else {}
    origin = draw(st.sampled_from([Origin.WORKSPACE, Origin.WEB]))
    finished = CallFinished(call_id, "read_file", True, draw(WORDS), 3, "", origin, (), metadata, shown)
    return [finished, *([FileChanged(call_id, FileChange("a", None, "c" * 64))] if draw(st.booleans()) else [])]
