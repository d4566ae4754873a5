"""The loop's batches: side by side where that is safe, alone where not, recorded in order, cut short cleanly."""

import asyncio
from pathlib import Path

from codewhale.protocol.events import CallFinished, CallStarted, Event, TurnFinished
from codewhale.protocol.ops import SendMessage
from support.stage import Stage, staged, until


def call(name: str, **told: str) -> dict[str, object]:
    """A call of a script."""
    return {"name": name, "arguments": told}


async def begin(stage: Stage, session: str) -> None:
    """Send a message."""
    await stage.engine.send(SendMessage(session, "Go"))


async def ended(stage: Stage, session_id: str) -> list[Event]:
    """The events of a session once its turn is over."""
    session = stage.engine.session(session_id)
    await until(lambda: not stage.engine.turn(session.id).busy)
    return [envelope.event for envelope in session.log.read()]


def finished(events: list[Event]) -> list[tuple[str, str]]:
    """(call id, first line) of each result."""
    return [(item.call_id, item.content.split("\n")[0]) for item in events if isinstance(item, CallFinished)]


async def test_parallel_calls_run_together_and_are_recorded_in_order(home: Path, workspace: Path) -> None:
    calls = [call("read_file", wait="one", say="first"), call("read_file", wait="two", say="second")]
    async with staged(home, workspace, [{"calls": calls}]) as stage:
        session = stage.open()
        await begin(stage, session.id)
        await until(lambda: len(stage.tools.begun) == 2)
        stage.tools.gate("two").set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(session.state.open_calls) == 2
        stage.tools.gate("one").set()
        assert finished(await ended(stage, session.id)) == [("call_1", "first"), ("call_2", "second")]


async def test_a_call_that_changes_things_waits_for_those_before_and_holds_those_after(
    home: Path, workspace: Path
) -> None:
    calls = [call("read_file", wait="one"), call("write_file", wait="two"), call("read_file"), call("read_file")]
    async with staged(home, workspace, [{"calls": calls}]) as stage:
        session = stage.open()
        await begin(stage, session.id)
        await until(lambda: stage.tools.begun == ["call_1"])
        stage.tools.gate("one").set()
        await until(lambda: stage.tools.begun == ["call_1", "call_2"])
        assert stage.engine.turn(session.id).waiting_for == "write_file"
        stage.tools.gate("two").set()
        await ended(stage, session.id)
        assert sorted(stage.tools.begun[2:]) == ["call_3", "call_4"]


async def test_an_interrupted_batch_keeps_the_results_that_had_come(home: Path, workspace: Path) -> None:
    calls = [call("read_file", say="first"), call("read_file", wait="never"), call("read_file", say="third")]
    async with staged(home, workspace, [{"calls": [*calls, call("write_file")]}]) as stage:
        session = stage.open()
        await begin(stage, session.id)
        await until(lambda: len(stage.tools.begun) == 3)
        await asyncio.sleep(0)
        stage.engine.interrupt(session.id)
        events = await ended(stage, session.id)
    assert dict(finished(events))["call_1"] == "first"
    assert dict(finished(events))["call_3"] == "third"
    assert dict(finished(events))["call_2"].startswith("The user interrupted this")
    assert dict(finished(events))["call_4"].startswith("Interrupted before it started")
    assert len(finished(events)) == 4
    assert [event.status for event in events if isinstance(event, TurnFinished)] == ["interrupted"]


async def test_repeats_in_one_batch_end_the_turn_and_leave_no_call_open(home: Path, workspace: Path) -> None:
    calls = [call("read_file") for _ in range(9)]
    async with staged(home, workspace, [{"calls": [*calls, call("write_file")]}]) as stage:
        session = stage.open()
        await begin(stage, session.id)
        events = await ended(stage, session.id)
        assert not session.state.open_calls
    assert len(finished(events)) == 10
    assert finished(events)[-1][1].startswith("Interrupted before it started")
    (end,) = [event for event in events if isinstance(event, TurnFinished)]
    assert end.status == "failed" and "read_file was called 9 times" in end.reason


async def test_a_call_that_swallows_its_cancel_does_not_keep_the_turn_going(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"calls": [call("exec_shell", wait="gate")]}, {"text": "Never."}]) as stage:
        session = stage.open()
        await begin(stage, session.id)
        await until(lambda: stage.tools.begun == ["call_1"])
        stage.engine.turn(session.id).stop_reason = "interrupted"
        stage.tools.gate("gate").set()
        events = await ended(stage, session.id)
    assert len(stage.provider.requests) == 1
    assert [event.status for event in events if isinstance(event, TurnFinished)] == ["interrupted"]


async def test_every_start_is_in_the_log_before_its_result(home: Path, workspace: Path) -> None:
    calls = [call("read_file", say=str(number)) for number in range(3)] + [call("write_file")]
    async with staged(home, workspace, [{"calls": calls}]) as stage:
        session = stage.open()
        await begin(stage, session.id)
        events = await ended(stage, session.id)
    places = {(type(event), event.call_id): place for place, event in enumerate(events) if is_call(event)}
    for number in range(1, 5):
        assert places[CallStarted, f"call_{number}"] < places[CallFinished, f"call_{number}"]


def is_call(event: Event) -> bool:
    """Whether an event is a call's start or end."""
    return isinstance(event, CallStarted | CallFinished)


async def test_a_write_under_way_when_the_turn_is_stopped_is_recorded(home: Path, workspace: Path) -> None:
    script = [{"calls": [call("write_file", wait="latch", say="written")]}, {"text": "Never."}]
    async with staged(home, workspace, script) as stage:
        session = stage.open()
        await begin(stage, session.id)
        await until(lambda: stage.tools.begun == ["call_1"])
        stage.engine.interrupt(session.id)
        await asyncio.sleep(0)
        assert not finished([envelope.event for envelope in session.log.read()])
        stage.tools.latch.set()
        events = await ended(stage, session.id)
    assert finished(events) == [("call_1", "written")]
    assert [event.status for event in events if isinstance(event, TurnFinished)] == ["interrupted"]
