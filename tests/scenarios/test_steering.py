"""Words that come while a turn runs: joined at the next step, or kept for the next turn."""

import asyncio
from pathlib import Path
from typing import Any

from codewhale.protocol.events import MessageAdded, Queued, RequestSent, TurnFinished, TurnStarted
from codewhale.protocol.ops import Interrupt, SendMessage
from codewhale.protocol.stream import CallDelta, Finished, TextDelta
from codewhale.testing import harness
from support.machine import MAKES_FILES
from support.scenes import DeltaProvider, appears, only, scene, sent, watching


def words(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(role, beginning of content) of each message but the system text."""
    return [(message["role"], message["content"].split("\n")[0]) for message in messages[1:]]


@MAKES_FILES
async def test_a_steer_joins_at_the_next_step_behind_the_results(home: Path, workspace: Path) -> None:
    command = "touch started; while [ ! -e go ]; do sleep 0.02; done; echo ran"
    script = [{"calls": [{"name": "exec_shell", "arguments": {"command": command}}]}, {"text": "Both done."}]
    async with harness(home, workspace, script) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "First"))
            await appears(workspace / "started")
            await stage.client.submit(SendMessage(session, "Second", delivery="steer"))
            (workspace / "go").touch()
            await watch.until(TurnFinished)
            assert len(only(watch.events, TurnStarted)) == 1
        roles = words(sent(stage))
    assert [role for role, _ in roles] == ["user", "assistant", "tool", "user"]
    assert roles[-1] == ("user", "Second")


async def test_a_steer_during_the_last_answer_still_joins_the_turn(home: Path, workspace: Path) -> None:
    gate = asyncio.Event()
    answers = [
        [TextDelta("I am"), gate, TextDelta(" done."), Finished("stop")],
        [TextDelta("Now really."), Finished("stop")],
    ]
    async with scene(home, workspace, DeltaProvider(answers)) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "First"))
            await watch.until(RequestSent)
            await stage.client.submit(SendMessage(session, "Second", delivery="steer"))
            gate.set()
            finished = await watch.until(TurnFinished)
        assert finished.result["answer"] == "Now really."
        assert words(sent(stage)) == [("user", "First"), ("assistant", "I am done."), ("user", "Second")]


async def test_a_queued_message_is_the_next_turn(home: Path, workspace: Path) -> None:
    gate = asyncio.Event()
    answers = [[gate, TextDelta("One."), Finished("stop")], [TextDelta("Two."), Finished("stop")]]
    async with scene(home, workspace, DeltaProvider(answers)) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "First"))
            await stage.client.submit(SendMessage(session, "Second", delivery="queue"))
            await stage.client.submit(SendMessage(session, "Third"))
            assert only(watch.events, MessageAdded)[-1].message.text == "First"
            gate.set()
            await watch.until(TurnFinished, 3)
            assert [item.waiting for item in only(watch.events, Queued)] == [1, 2]
            assert [item.turn for item in only(watch.events, TurnStarted)] == [1, 2, 3]
            asked = [item.message.text for item in only(watch.events, MessageAdded) if item.message.role == "user"]
            assert asked == ["First", "Second", "Third"]
            answers_given = [item.result["answer"] for item in only(watch.events, TurnFinished)]
            assert answers_given == ["One.", "Two.", "done"]


async def test_after_an_interrupt_the_queue_waits_for_the_person(home: Path, workspace: Path) -> None:
    async with scene(home, workspace, DeltaProvider([[asyncio.Event()]])) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "First"))
            await watch.until(RequestSent)
            await stage.client.submit(SendMessage(session, "Second", delivery="queue"))
            await stage.client.submit(Interrupt(session))
            assert (await watch.until(TurnFinished)).status == "interrupted"
            await stage.client.submit(SendMessage(session, "Third"))
            await watch.until(TurnFinished, 3)
            asked = [item.message.text for item in only(watch.events, MessageAdded) if item.message.role == "user"]
            assert asked == ["First", "Third", "Second"]


async def test_a_call_written_before_a_steer_still_gets_its_result_first(home: Path, workspace: Path) -> None:
    gate = asyncio.Event()
    answers = [[CallDelta(0, "call_1", "list_dir", "{}"), gate, Finished("tool_calls")]]
    async with scene(home, workspace, DeltaProvider(answers)) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "First"))
            await watch.until(RequestSent)
            await stage.client.submit(SendMessage(session, "Second", delivery="steer"))
            gate.set()
            await watch.until(TurnFinished)
        assert [role for role, _ in words(sent(stage))] == ["user", "assistant", "tool", "user"]
