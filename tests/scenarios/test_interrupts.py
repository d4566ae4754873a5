"""Interrupts: in every state a turn can wait in, it ends within a second and every call has its one result."""

import asyncio
from pathlib import Path

from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    CallStarted,
    MessageAdded,
    QuestionAnswered,
    QuestionAsked,
    RequestSent,
    TextStreamed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, Interrupt, SendMessage
from codewhale.protocol.stream import CallDelta, Finished, TextDelta
from codewhale.testing import Harness, harness
from support.machine import MAKES_FILES
from support.patience import Moment
from support.running import commands, eventually, odd_seconds
from support.scenes import DeltaProvider, Watch, appears, only, results, scene, sent, watching

QUESTION = {
    "questions": [
        {
            "id": "db",
            "header": "Database",
            "question": "Which one?",
            "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
        }
    ]
}


async def stop(stage: Harness, session: str, watch: Watch) -> TurnFinished:
    """Interrupt and return the end of the turn, which came in time."""
    began = Moment()
    await stage.client.submit(Interrupt(session))
    finished = await watch.until(TurnFinished)
    assert not began.hung
    assert (finished.status, finished.result["exit_code"]) == ("interrupted", 130)
    assert not stage.app.engine.session(session).state.open_calls
    return finished


async def goes_on(stage: Harness, session: str) -> None:
    """The session takes another turn, and the model is told a result for every call."""
    events = await stage.turn("Go on", session)
    assert only(events, TurnFinished)[0].status == "done"
    said = sent(stage)
    asked = [call["id"] for message in said for call in message.get("tool_calls", ())]
    assert asked == [message["tool_call_id"] for message in said if message["role"] == "tool"]


async def test_while_the_model_has_said_nothing(home: Path, workspace: Path) -> None:
    never = asyncio.Event()
    async with scene(home, workspace, DeltaProvider([[never]])) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await watch.until(RequestSent)
            await stop(stage, session, watch)
        await goes_on(stage, session)


async def test_while_the_model_speaks_what_came_is_kept(home: Path, workspace: Path) -> None:
    answer = [TextDelta("Half a "), CallDelta(0, "call_1", "write_file", '{"path": "a", "con'), asyncio.Event()]
    async with scene(home, workspace, DeltaProvider([answer])) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await watch.until(TextStreamed)
            await stop(stage, session, watch)
            kept = only(watch.events, MessageAdded)[-1]
            assert (kept.message.text, kept.message.calls, kept.finish) == ("Half a ", (), "interrupted")
            assert results(watch.events) == []
        await goes_on(stage, session)


async def test_while_a_program_runs_whose_grandchild_holds_its_output(home: Path, workspace: Path) -> None:
    seconds = odd_seconds()
    command = f"(setsid sleep {seconds} &); sleep {seconds} & echo here; wait"
    calls = [{"name": "exec_shell", "arguments": {"command": command}}, {"name": "list_dir", "arguments": {}}]
    async with harness(home, workspace, [{"calls": calls}]) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await eventually(lambda: len(commands("sleep", seconds)) == 2)
            await stop(stage, session, watch)
            ran, waited = results(watch.events)
            assert (ran.ok, ran.error) == (False, "interrupted")
            assert "before a result came" in ran.content
            assert "did not run" in waited.content
        assert commands("sleep", seconds) == []
        await goes_on(stage, session)


async def test_while_a_person_is_asked_for_approval(home: Path, workspace: Path) -> None:
    calls = [{"name": "exec_shell", "arguments": {"command": "touch ran"}}]
    async with harness(home, workspace, [{"calls": calls}]) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            asked = await watch.until(ApprovalAsked)
            await stop(stage, session, watch)
            assert only(watch.events, ApprovalAnswered) == [ApprovalAnswered(asked.request_id, False, "cancel")]
            (result,) = results(watch.events)
            assert "did not run" in result.content
            assert only(watch.events, CallStarted) == []
        assert await stage.client.submit(Answer(session, asked.request_id, allowed=True)) is False
        assert not (workspace / "ran").exists()
        await goes_on(stage, session)


async def test_while_a_person_is_asked_a_question(home: Path, workspace: Path) -> None:
    calls = [{"name": "request_user_input", "arguments": QUESTION}]
    async with harness(home, workspace, [{"calls": calls}]) as stage:
        session = await stage.open(authority=Authority.PERSON)
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            asked = await watch.until(QuestionAsked)
            await stop(stage, session, watch)
            assert only(watch.events, QuestionAnswered) == [QuestionAnswered(asked.request_id, (), "cancel")]
            assert len(results(watch.events)) == 1
        await goes_on(stage, session)


async def test_before_the_turns_first_step(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Never asked for."}]) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            sending = asyncio.ensure_future(stage.client.submit(SendMessage(session, "Go")))
            await asyncio.sleep(0)
            await stop(stage, session, watch)
            await sending
            assert len(only(watch.events, TurnStarted)) == 1
        assert stage.provider.requests == []


@MAKES_FILES
async def test_a_second_interrupt_changes_nothing(home: Path, workspace: Path) -> None:
    calls = [{"name": "exec_shell", "arguments": {"command": "touch started; sleep 300"}}]
    async with harness(home, workspace, [{"calls": calls}]) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await appears(workspace / "started")
            for _ in range(3):
                await stage.client.submit(Interrupt(session))
                await asyncio.sleep(0)
            await watch.until(TurnFinished)
            assert len(only(watch.events, CallFinished)) == 1
            assert len(only(watch.events, TurnFinished)) == 1
        await goes_on(stage, session)


async def test_an_interrupt_without_a_turn_does_nothing(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Here."}]) as stage:
        session = await stage.open()
        await stage.client.submit(Interrupt(session))
        await goes_on(stage, session)


async def test_closing_ends_the_turn_and_what_waits_behind_it(home: Path, workspace: Path) -> None:
    answers = [[asyncio.Event()], [TextDelta("Never."), Finished("stop")]]
    async with scene(home, workspace, DeltaProvider(answers)) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await stage.client.submit(SendMessage(session, "And then", delivery="queue"))
            await watch.until(RequestSent)
            await stage.app.engine.close(session)
            assert (await watch.until(TurnFinished)).status == "interrupted"
        assert len(stage.provider.requests) == 1


async def test_what_tests_printed_before_the_interrupt_is_kept(home: Path, workspace: Path) -> None:
    (workspace / "Makefile").write_text("test:\n\t@echo began; touch there; sleep 300\n")
    async with harness(
        home, workspace, [{"calls": [{"name": "run_tests", "arguments": {}}]}, {"text": "On."}]
    ) as stage:
        session = await stage.open()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await eventually((workspace / "there").exists)
            await stop(stage, session, watch)
            (result,) = results(watch.events)
        assert not result.ok and "began" in result.content and "interrupted" in result.content
        await goes_on(stage, session)
        assert "began" in str([message for message in sent(stage) if message["role"] == "tool"])
