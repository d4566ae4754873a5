"""Room in the context: results are set aside first, then all is said shorter; what fails changes nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.compaction import ConversationCompactor
from codewhale.agent.context_window import CompactionFailed, measure
from codewhale.agent.model_call import ModelCalls
from codewhale.models.dialects.base import ModelFacts, RequestOptions
from codewhale.models.scripted import ScriptedProvider
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import (
    BudgetReserved,
    BudgetSettled,
    Compacted,
    CompactionUndone,
    Event,
    HeaderPinned,
    Notice,
    PrefixInvalidated,
    RequestSent,
    ResultsPruned,
    TurnFinished,
)
from codewhale.protocol.ops import Limits, SendMessage
from codewhale.protocol.stream import StreamEvent, TextDelta
from codewhale.session.conversation import Conversation
from codewhale.session.projection import request_body
from codewhale.session.session import Session
from codewhale.session.window import ContextSettings
from codewhale.testing import harness
from support.scenes import scene
from support.stage import Stage, staged, until

SMALL = ModelFacts(16_000, "configured", 1024)


def reads(count: int) -> list[dict[str, Any]]:
    """Turns of a script, each reading a file of its own."""
    return [{"calls": [{"name": "read_file", "arguments": {"path": f"{number}.txt"}}]} for number in range(count)]


async def turn(stage: Stage, session: Session, text: str) -> list[Event]:
    """One turn to its end; all events of the log."""
    await stage.engine.send(SendMessage(session.id, text))
    await until(lambda: not stage.engine.turn(session.id).busy)
    return log(session)


def log(session: Session) -> list[Event]:
    """All events of a session."""
    return [envelope.event for envelope in session.log.read()]


def only(events: Sequence[Event], kind: Any) -> list[Any]:
    """The events of one type."""
    return [event for event in events if isinstance(event, kind)]


def assert_rebuilt(provider: ScriptedProvider, session: Session) -> None:
    """Every request that was sent is what the log alone gives."""
    events = log(session)
    for number, body in enumerate(provider.requests, start=1):
        assert request_body(events, number, lambda image: b"") == body


async def test_old_results_are_set_aside_before_anything_else(home: Path, workspace: Path) -> None:
    for number in range(12):
        (workspace / f"{number}.txt").write_text(f"text {number}\nNever call it twice.\n" + "x" * 79 * 150 + "\n")
    async with harness(home, workspace, [*reads(12), {"text": "Read."}]) as stage:
        stage.provider.model = ModelFacts(32_000, "configured", 1024)
        name = await stage.open()
        events = await stage.turn("Read all", name)
        session = stage.app.engine.session(name)
        assert only(events, TurnFinished)[0].status == "done"
        assert not only(events, Compacted)
        (pruned, *_) = only(events, ResultsPruned)
        assert {edge.reason for edge in only(events, PrefixInvalidated)} == {"pruned"}
        assert only(events, PrefixInvalidated)[0].first_changed == 3  # system, words, call, then the first result
        assert_rebuilt(stage.provider, session)
        stub = pruned.results[0].content
        assert stub.startswith("[Set aside to save room: 1") and 'read_file {"path":"0.txt"}' in stub
        assert "Never call it twice." in stub
        artifacts = stage.app.parts.artifacts
        assert isinstance(artifacts, ArtifactStore)
        (sha,) = artifacts.find(stub.split("art_")[1][:16])
        assert "text 0" in artifacts.get(sha).decode()
        assert 0.3 < measure(session, ContextSettings()).used / 32_000 < 0.8


async def test_one_step_larger_than_the_window_is_read_in_part(home: Path, workspace: Path) -> None:
    def refusing(request: dict[str, Any]) -> dict[str, Any]:
        size = len(json.dumps(request)) // 4
        if size > 32_000:
            return {"error": {"kind": "context_length"}}
        calls = [item["calls"][0] for item in reads(8)]
        return {"text": "Read."} if len(request["messages"]) > 3 else {"calls": calls}

    for number in range(8):
        (workspace / f"{number}.txt").write_text(f"first of {number}\n" + "word " * 3100 + f"\nlast of {number}\n")
    async with scene(home, workspace, ScriptedProvider(refusing)) as stage:
        stage.provider.model = ModelFacts(32_000, "configured", 1024)
        name = await stage.open()
        events = await stage.turn("Read all at once", name)
        assert only(events, TurnFinished)[0].status == "done"
        assert len(stage.provider.requests) == 2 and len(only(events, ResultsPruned)) == 1
        said = stage.provider.requests[-1].decode()
        assert all(f"first of {number}" in said and f"last of {number}" in said for number in range(8))


async def test_a_long_conversation_is_compacted_behind_its_own_prefix(home: Path, workspace: Path) -> None:
    script = [{"text": f"answer {number} " + "y" * 4000} for number in range(20)]
    script[10:10] = [{"text": "SUMMARY of it all"}]
    async with staged(home, workspace, script) as stage:
        stage.provider.model = SMALL
        session = stage.open()
        while not only(log(session), Compacted):
            events = await turn(
                stage, session, f"Question {session.state.turns}: never touch file{session.state.turns}.py"
            )
            assert session.state.turns < 18
        (sent,) = [event for event in only(events, RequestSent) if event.purpose]
        assert (sent.purpose, sent.max_tokens) == ("compaction", 1024)
        before, asked, after = stage.provider.requests[sent.request - 2 : sent.request + 1]
        assert asked.startswith(before[: before.rindex(b"]")])
        assert_rebuilt(stage.provider, session)
        (compacted,) = only(events, Compacted)
        assert (compacted.number, compacted.reason) == (1, "full")
        assert compacted.tokens_after < compacted.tokens_before / 2
        assert [edge.reason for edge in only(events, PrefixInvalidated)] == ["compaction"]
        for number in range(session.state.turns):
            assert f"never touch file{number}.py".encode() in after
        assert not any(event.code == "compaction_failed" for event in only(events, Notice))


async def compacted(stage: Stage, session: Session) -> Compacted:
    """Turns until the conversation was compacted."""
    while not only(log(session), Compacted):
        await turn(stage, session, f"Question {session.state.turns}")
        assert session.state.turns < 18
    return only(log(session), Compacted)[-1]


def answers(count: int) -> list[dict[str, Any]]:
    """Turns of a script, each a long answer."""
    return [{"text": f"answer {number} " + "y" * 4000} for number in range(count)]


async def test_undoing_brings_the_exact_bytes_back_and_none_follows_by_itself(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [*answers(10), {"text": "SUMMARY"}, *answers(9)]) as stage:
        stage.provider.model = SMALL
        session = stage.open()
        await compacted(stage, session)
        sent = [json.loads(body)["messages"] for body in stage.provider.requests]
        assert stage.control.undo_compaction(session.id) == 1
        await turn(stage, session, "Go on")
        after = json.loads(stage.provider.requests[-1])["messages"]
        assert after[: len(sent[-3])] == sent[-3]  # the last request before the one for a summary
        assert stage.provider.requests[-1].startswith(
            stage.provider.requests[-4][: stage.provider.requests[-4].rindex(b"]")]
        )
        assert [edge.reason for edge in only(log(session), PrefixInvalidated)] == ["compaction", "compaction undone"]
        assert len(only(log(session), Compacted)) == 1
        assert stage.control.undo_compaction(session.id) == 0
        assert_rebuilt(stage.provider, session)


@pytest.mark.parametrize(
    "bad", [{"error": {"kind": "bad_request"}}, {"text": " "}, {"calls": [{"name": "read_file", "arguments": {}}]}]
)
async def test_a_summary_that_does_not_come_changes_nothing(home: Path, workspace: Path, bad: dict[str, Any]) -> None:
    async with staged(home, workspace, [*answers(2), bad, bad, {"text": "SUMMARY"}]) as stage:
        session = stage.open()
        await turn(stage, session, "One")
        await turn(stage, session, "Two")
        before = log(session)
        room = ConversationCompactor(session, ContextSettings(), stage.artifacts, pauses=(0.0,))
        size = session.projection.size
        with pytest.raises(CompactionFailed):
            await room.compact(ModelCalls(stage.engine.turn(session.id)))
        assert not only(log(session)[len(before) :], Compacted | PrefixInvalidated | ResultsPruned)
        assert session.projection.size == size


async def test_a_passing_failure_is_tried_again(home: Path, workspace: Path) -> None:
    busy = {"error": {"kind": "server"}}
    async with staged(home, workspace, [*answers(2), busy, busy, {"text": "SUMMARY"}]) as stage:
        session = stage.open()
        await turn(stage, session, "One")
        await turn(stage, session, "Two")
        room = ConversationCompactor(session, ContextSettings(), stage.artifacts, pauses=(0.0, 0.0, 0.0))
        done = await room.compact(ModelCalls(stage.engine.turn(session.id)), focus="the colour")
        assert "SUMMARY" in done.messages[0].text
        assert "keep above all: the colour" in json.loads(stage.provider.requests[-1])["messages"][-1]["content"]


async def test_a_summary_that_thinking_left_no_room_for_gets_more(home: Path, workspace: Path) -> None:
    thought = {"reasoning": "hm " * 50, "finish": "length"}
    async with staged(home, workspace, [*answers(2), thought, {"text": "SUMMARY"}]) as stage:
        session = stage.open()
        await turn(stage, session, "One")
        await turn(stage, session, "Two")
        room = ConversationCompactor(session, ContextSettings(), stage.artifacts, pauses=(0.0,))
        assert "SUMMARY" in (await room.compact(ModelCalls(stage.engine.turn(session.id)))).messages[0].text
        first, second = (json.loads(body)["max_tokens"] for body in stage.provider.requests[-2:])
        assert second == 2 * first


async def test_the_whole_stays_readable_under_its_handle(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [*answers(3), {"text": "SUMMARY"}]) as stage:
        session = stage.open()
        for number in range(3):
            await turn(stage, session, f"Question {number}")
        await stage.control.compact(session.id, "")
        head = only(log(session), Compacted)[0].messages[0].text
        (sha,) = stage.artifacts.find(head.split("art_")[1][:16])
        whole = stage.artifacts.get(sha).decode()
        assert all(f"Question {number}" in whole and f"answer {number} yyy" in whole for number in range(3))


async def test_compacting_on_request_is_a_turn_of_its_own(home: Path, workspace: Path) -> None:
    script = [*answers(2), {"text": "SUMMARY", "delay": 0.05}, {"text": "Later."}, {"text": "x", "delay": 30}]
    async with staged(home, workspace, script) as stage:
        session = stage.open()
        with pytest.raises(SessionError, match="nothing to compact"):
            await stage.control.compact(session.id, "")
        await turn(stage, session, "One")
        await turn(stage, session, "Two")
        work = asyncio.create_task(stage.control.compact(session.id, ""))
        await until(lambda: len(stage.provider.requests) == 3)
        with pytest.raises(SessionError, match="turn is running"):
            await stage.control.compact(session.id, "")
        await stage.engine.send(SendMessage(session.id, "Meanwhile", delivery="queue"))
        before, after = await work
        assert after < before
        await until(lambda: session.state.turns == 3 and not stage.engine.turn(session.id).busy)
        assert json.loads(stage.provider.requests[-1])["messages"][-1]["content"].startswith("Meanwhile")
        held = asyncio.create_task(stage.control.compact(session.id, ""))
        await until(lambda: len(stage.provider.requests) == 5)
        stage.engine.interrupt(session.id)
        with pytest.raises(SessionError, match="interrupted"):
            await held
        assert len(only(log(session), Compacted)) == 1
        events = log(session)
        assert len(only(events, BudgetReserved)) == len(only(events, BudgetSettled)) == 5


class Holding(ScriptedProvider):
    """A model that begins a summary and never ends it."""

    async def stream(self, body: bytes) -> AsyncIterator[StreamEvent]:
        """The next turn."""
        if b"[Harness] The conversation above" in body:
            self.requests.append(body)
            yield TextDelta("half a summary")
            await asyncio.Event().wait()
        async for event in super().stream(body):
            yield event


async def test_a_turn_stopped_while_it_compacts_keeps_nothing_of_the_summary(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        stage.provider = Holding(answers(20))
        stage.provider.model = SMALL
        session = stage.open()
        while not stage.engine.turn(session.id).busy:
            await stage.engine.send(SendMessage(session.id, "Question"))
            await until(
                lambda: (
                    not stage.engine.turn(session.id).busy
                    or stage.engine.turn(session.id).waiting_for == "the model (compaction)"
                )
            )
        await asyncio.sleep(0)
        stage.engine.interrupt(session.id)
        await until(lambda: not stage.engine.turn(session.id).busy)
        assert not any("half a summary" in message.text for message in Conversation(log(session)).messages)
        assert only(log(session), TurnFinished)[-1].status == "interrupted"
        assert not only(log(session), Compacted)


TOO_LONG = {"error": {"kind": "context_length", "message": "maximum context length is 4096 tokens"}}


async def test_a_request_refused_as_too_long_is_made_shorter_and_sent_again(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [*answers(3), TOO_LONG, {"text": "SUMMARY"}, {"text": "Done."}]) as stage:
        session = stage.open()
        for number in range(3):
            await turn(stage, session, f"Question {number}")
        events = await turn(stage, session, "Now")
        assert only(events, TurnFinished)[-1].status == "done"
        (found,) = only(events, Compacted)
        assert found.reason == "overflow"
        assert measure(session, ContextSettings()).window == found.tokens_before
        assert measure(session, ContextSettings()).window_source == "overflow"
        assert_rebuilt(stage.provider, session)


async def test_a_conversation_that_stays_too_long_ends_the_turn_and_says_what_to_do(
    home: Path, workspace: Path
) -> None:
    async with staged(home, workspace, [*answers(4), *([TOO_LONG] * 40)]) as stage:
        session = stage.open()
        for number in range(4):
            await turn(stage, session, f"Question {number}")
        events = await turn(stage, session, "Now")
        end = only(events, TurnFinished)[-1]
        assert end.status == "failed" and "/model" in end.reason and "start a new session" in end.reason
        assert len(stage.provider.requests) <= 4 + 5
        assert len(only(events, Compacted)) <= 2
        assert_rebuilt(stage.provider, session)


async def test_a_budget_that_has_no_room_for_a_summary_leaves_the_conversation(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, answers(3)) as stage:
        session = stage.open(limits=Limits(turns=2))
        await turn(stage, session, "One")
        await turn(stage, session, "Two")
        with pytest.raises(SessionError, match="limit of 2 model calls"):
            await stage.control.compact(session.id, "")


async def test_resumed_and_forked_sessions_say_the_same(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [*answers(3), {"text": "SUMMARY"}, {"text": "a"}, {"text": "b"}]) as stage:
        session = stage.open()
        for number in range(3):
            await turn(stage, session, f"Question {number}")
        await stage.control.compact(session.id, "")
        child = stage.open(fork=session.id)
        await turn(stage, child, "Fork")
        assert stage.control.undo_compaction(child.id) == 1
        await stage.engine.close(session.id)
        again = stage.open(resume=session.id)
        await turn(stage, again, "On")
        fork, resumed = (json.loads(body)["messages"] for body in stage.provider.requests[-2:])
        assert fork[1] == resumed[1] and "SUMMARY" in str(fork[1])
        assert (
            child.projection is not None
            and b"answer 0 yyy"
            in child.projection.request(child.state.header or HeaderPinned("", "", "", "", "", ""), RequestOptions())[0]
        )
        assert not only(log(again), CompactionUndone)
