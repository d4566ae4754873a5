"""What stands in a conversation after results were pruned, after a compaction, and after it was undone."""

from itertools import pairwise

from hypothesis import given, settings, strategies

from codewhale.models.dialects.base import RequestOptions
from codewhale.protocol.events import (
    CallFinished,
    Compacted,
    CompactionUndone,
    ContextAppended,
    Event,
    MessageAdded,
    RequestSent,
    ResultsPruned,
)
from codewhale.protocol.messages import Image, Message, ResultPart, Text, ToolCall
from codewhale.session.conversation import Conversation, result_parts
from codewhale.session.projection import Projection, pinned_dialect, request_body
from support.turns import HEADER, sessions

SHORT = Message("user", (Text("In short: a.", source="harness"),))


def load(image: Image) -> bytes:
    """Four bytes for any image."""
    return b"\x89PNG"


def body(events: list[Event]) -> bytes:
    """The body of the request that would be next."""
    return folded(events).request(HEADER, RequestOptions())[0]


def folded(events: list[Event]) -> Projection:
    """The projection after these events."""
    projection = Projection(pinned_dialect(HEADER), load)
    for event in events:
        projection.apply(event)
    return projection


def said(text: str, role: str = "user") -> MessageAdded:
    """A message of one text."""
    source = "person" if role == "user" else "model"
    return MessageAdded(Message(role, (Text(text, source=source),)))  # type: ignore[arg-type]


def asked(number: int, purpose: str = "") -> RequestSent:
    """A request that was sent."""
    return RequestSent(number, 0, "", 0, purpose=purpose)


def read(name: str, content: str) -> list[Event]:
    """A call and its result."""
    call = MessageAdded(Message("assistant", (ToolCall(name, "read_file", "{}"),)))
    return [call, CallFinished(name, "read_file", True, content)]


TALK: list[Event] = [
    said("a"),
    asked(1),
    *read("call_1", "long one"),
    asked(2),
    *read("call_2", "long two"),
    asked(3),
    said("b", "assistant"),
    said("c"),
]


def without_compactions(events: list[Event]) -> list[Event]:
    """The events as if no compaction that was undone had ever been, nor what was pruned just before it."""
    kept: list[Event] = []
    for event in events:
        if not isinstance(event, CompactionUndone):
            kept.append(event)
            continue
        place = next(i for i, item in enumerate(kept) if isinstance(item, Compacted) and item.number == event.number)
        sent = [i for i in range(place) if isinstance(item := kept[i], RequestSent) and not item.purpose]
        since = sent[-1] if sent else 0
        before = [item for item in kept[since:place] if not isinstance(item, ResultsPruned)]
        kept = [*kept[:since], *before, *kept[place + 1 :]]
    return kept


@settings(max_examples=150, deadline=None)
@given(sessions(models=True, compacts=True))
def test_an_undone_compaction_leaves_the_bytes_as_if_it_had_never_been(events: list[Event]) -> None:
    assert body(events) == body(without_compactions(events))


@settings(max_examples=80, deadline=None)
@given(sessions(models=True, compacts=True))
def test_any_request_is_rebuilt_from_the_log_alone_and_keeps_calls_with_results(events: list[Event]) -> None:
    projection, header = Projection(pinned_dialect(HEADER), load), HEADER
    for event in events:
        if isinstance(event, type(HEADER)):
            header = event
        if isinstance(event, RequestSent):
            options = RequestOptions(event.max_tokens, event.effort)
            sent = projection.request(header, options, event.extra)
            assert request_body(events, event.request, load) == sent[0]
        projection.apply(event)


@settings(max_examples=80, deadline=None)
@given(sessions(compacts=True))
def test_each_request_begins_with_the_one_before_but_at_a_named_edge(events: list[Event]) -> None:
    projection = Projection(pinned_dialect(HEADER), load)
    bodies: list[tuple[bytes, bool]] = []
    edge = False
    for event in events:
        if isinstance(event, RequestSent) and not event.purpose:
            bodies.append((projection.request(HEADER, RequestOptions())[0], edge))
            edge = False
        edge = edge or isinstance(event, Compacted | CompactionUndone | ResultsPruned)
        projection.apply(event)
    for (before, _), (after, edged) in pairwise(bodies):
        assert edged or after.startswith(before[:-2])


@settings(max_examples=80, deadline=None)
@given(sessions(compacts=True), strategies.data())
def test_messages_and_bytes_tell_the_same_whatever_records_are_lost(
    events: list[Event], data: strategies.DataObject
) -> None:
    left = [event for event in events if data.draw(strategies.integers(0, 4))]
    left.append(said("Resumed.", "assistant"))
    conversation = Conversation(left)
    dialect = pinned_dialect(HEADER)
    wire = b",".join(filter(None, (dialect.message(message, load) for message in conversation.messages)))
    assert b'"messages":[' + dialect.system(HEADER.system) + (b"," + wire if wire else b"") + b"]" in body(left)
    waiting: list[str] = []
    for message in conversation.messages:
        if message.role == "tool":
            assert [part.call_id for part in result_parts(message)] and waiting
            assert sorted(waiting) == sorted(part.call_id for part in result_parts(message))
            waiting = []
        else:
            assert not waiting
            waiting = [call.id for call in message.calls]


def test_a_pruned_batch_is_said_shorter_and_nothing_else_moves() -> None:
    events = [*TALK, ResultsPruned((ResultPart("call_1", "[kept as art_1]"),))]
    assert body(events) == body(TALK).replace(b"long one", b"[kept as art_1]")
    assert folded(TALK).index(["call_2", "call_1"]) == 3
    assert body([*events, ResultsPruned((ResultPart("call_9", "of a call that is lost"),))]) == body(events)


def test_a_batch_pruned_in_part_only_stays_whole() -> None:
    calls = (ToolCall("x", "read_file", "{}"), ToolCall("y", "read_file", "{}"))
    events: list[Event] = [MessageAdded(Message("assistant", calls))]
    events += [CallFinished(name, "read_file", True, "text") for name in ("x", "y")]
    assert body([*events, ResultsPruned((ResultPart("x", "short"),))]) == body(events)


def test_a_compaction_stands_for_what_was_and_waiting_words_follow_it() -> None:
    events: list[Event] = [*TALK, asked(4, "compaction"), Compacted(1, "full", (SHORT,))]
    assert Conversation(events).messages == (SHORT,)
    assert b'"In short: a."' in body(events) and body(events).endswith(b'{"role":"user","content":"c"}]}')
    assert b"long one" not in body(events)


def test_undoing_brings_back_what_was_pruned_for_it_but_not_what_was_sent_pruned() -> None:
    pruned = [ResultsPruned((ResultPart("call_1", "[one]"),))]
    later: list[Event] = [asked(6), said("d", "assistant")]
    both: list[Event] = [*TALK, *pruned, asked(4, "compaction"), Compacted(1, "full", (SHORT,)), *later]
    assert body([*both, CompactionUndone(1)]) == body([*TALK, *later])
    sent: list[Event] = [*TALK, *pruned, asked(4), asked(5, "compaction"), Compacted(1, "full", (SHORT,)), *later]
    assert body([*sent, CompactionUndone(1)]) == body([*TALK, *pruned, asked(4), *later])


def test_compactions_are_undone_from_the_last_one_and_no_other() -> None:
    twice: list[Event] = [*TALK, Compacted(1, "full", (SHORT,)), asked(4), said("d", "assistant"), said("e")]
    twice += [Compacted(2, "full", (SHORT,)), asked(5), ContextAppended("mode", "f")]
    assert body([*twice, CompactionUndone(1)]) == body(twice)
    plain = [event for event in twice if not isinstance(event, Compacted)]
    assert body([*twice, CompactionUndone(2), CompactionUndone(1)]) == body(plain)


def test_pictures_are_counted_apart_from_words() -> None:
    picture = Image("image/png", "a" * 64, 3000)
    projection = Projection(pinned_dialect(HEADER), lambda image: b"x" * 3000)
    projection.apply(MessageAdded(Message("user", (Text("See."), picture))))
    assert projection.picture_bytes == 4000
    projection.apply(asked(1))
    assert projection.picture_bytes == 4000
    projection.apply(Compacted(1, "full", (SHORT,)))
    assert projection.picture_bytes == 0
