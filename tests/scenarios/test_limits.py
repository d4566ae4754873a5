"""A turn that goes nowhere is stopped, and no bound is crossed."""

import asyncio
import time
from pathlib import Path

import pytest

from codewhale.protocol.events import BudgetReserved, BudgetSettled, CallStarted, Notice, RequestSent, TurnFinished
from codewhale.protocol.ops import Limits, RunCommand, SendMessage
from codewhale.testing import collect, harness
from support.scenes import DeltaProvider, ending, only, results, scene, watching


def listing() -> dict[str, object]:
    """A turn of the script that lists the workspace."""
    return {"calls": [{"name": "list_dir", "arguments": {"path": "."}}]}


async def test_the_same_call_is_told_refused_and_at_last_ends_the_turn(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [listing()] * 20) as stage:
        events = await stage.turn("Look")
    found = results(events)
    assert len(found) == 8
    assert ["[loop guard]" in item.content for item in found[:4]] == [False, False, True, True]
    assert "repeat 3 of list_dir" in found[2].content
    assert [item.ok for item in found] == [True] * 4 + [False] * 4
    assert all(item.content.startswith("Error (loop guard)") for item in found[4:])
    assert len(only(events, CallStarted)) == 4
    assert ending(events).status == "failed"
    assert "list_dir was called 8 times" in ending(events).reason


async def test_a_cycle_of_two_calls_ends_too(home: Path, workspace: Path) -> None:
    (workspace / "a").write_text("a\n")
    reading = {"calls": [{"name": "read_file", "arguments": {"path": "a"}}]}
    async with harness(home, workspace, [listing(), reading] * 20) as stage:
        events = await stage.turn("Look")
    assert ending(events).status == "failed"
    assert len(results(events)) == 16


async def test_the_same_failing_call_counts_like_any_other(home: Path, workspace: Path) -> None:
    wrong = {"calls": [{"name": "edit_file", "arguments": {"path": "a", "search": "x", "replace": "y"}}]}
    async with harness(home, workspace, [wrong] * 20) as stage:
        events = await stage.turn("Edit")
    assert len(results(events)) == 8
    assert ending(events).status == "failed"


async def test_a_repeat_whose_result_changes_is_work(home: Path, workspace: Path) -> None:
    grow = {"calls": [{"name": "exec_shell", "arguments": {"command": "date +%s%N"}}]}
    async with harness(home, workspace, [grow] * 9 + [{"text": "Enough."}]) as stage:
        events = await stage.turn("Watch")
    assert [item.ok for item in results(events)] == [True] * 9
    assert ending(events).status == "done"


async def test_waiting_for_a_job_is_no_loop(home: Path, workspace: Path) -> None:
    start = {"calls": [{"name": "exec_shell", "arguments": {"command": "sleep 300", "background": True}}]}

    def wait(request: dict[str, object]) -> dict[str, object]:
        job = stage.app.parts.services.jobs.jobs(session)[0].id
        return {"calls": [{"name": "exec_shell_wait", "arguments": {"task_id": job, "wait": False}}]}

    async with harness(home, workspace, [start, *[wait] * 10, {"text": "Still running."}]) as stage:
        session = await stage.open()
        events = await stage.turn("Wait", session)
        assert [item.ok for item in results(events)] == [True] * 11
        assert "loop guard" not in "".join(item.content for item in results(events))
        assert ending(events).status == "done"


async def test_each_turn_counts_its_loops_anew(home: Path, workspace: Path) -> None:
    script = [listing(), listing(), {"text": "Once."}, listing(), listing(), {"text": "Twice."}]
    async with harness(home, workspace, script) as stage:
        session = await stage.open()
        await stage.turn("Look", session)
        events = await stage.turn("Look again", session)
    assert not any("[loop guard]" in item.content for item in results(events))


@pytest.mark.parametrize(("limits", "calls"), [(Limits(turns=3), 3), (Limits(turns=0), 0), (Limits(tokens=10), 0)])
async def test_a_bound_stops_the_turn_before_the_call_that_would_cross_it(
    home: Path, workspace: Path, limits: Limits, calls: int
) -> None:
    def look(request: dict[str, object]) -> dict[str, object]:
        return {"calls": [{"name": "exec_shell", "arguments": {"command": "date +%s%N"}}]}

    async with harness(home, workspace, [look] * 9) as stage:
        events = await stage.turn("Look", limits=limits)
    assert len(stage.provider.requests) == calls
    assert len(only(events, RequestSent)) == calls
    assert (ending(events).status, ending(events).result["exit_code"]) == ("budget", 4)
    assert "Stopped before the next model call" in ending(events).reason


async def test_tokens_used_stay_within_the_bound(home: Path, workspace: Path) -> None:
    def look(request: dict[str, object]) -> dict[str, object]:
        return {"calls": [{"name": "exec_shell", "arguments": {"command": "date +%s%N"}}]}

    limit = 60_000
    async with harness(home, workspace, [look] * 40) as stage:
        events = await stage.turn("Look", limits=Limits(tokens=limit))
    settled = only(events, BudgetSettled)
    assert ending(events).status == "budget"
    assert 1 < len(settled) < 40
    assert settled[-1].tokens <= limit
    assert [item.request for item in only(events, BudgetReserved)] == [item.request for item in settled]


async def test_a_time_bound_ends_a_model_call_that_is_under_way(home: Path, workspace: Path) -> None:
    async with scene(home, workspace, DeltaProvider([[asyncio.Event()]])) as stage:
        began = time.monotonic()
        events = await stage.turn("Go", limits=Limits(seconds=0.2))
        assert time.monotonic() - began >= 0.2
    assert ending(events).status == "budget"
    assert "time limit" in ending(events).reason


async def test_a_time_bound_ends_a_program_and_its_call_has_a_result(home: Path, workspace: Path) -> None:
    script = [{"calls": [{"name": "exec_shell", "arguments": {"command": "sleep 300"}}]}]
    async with harness(home, workspace, script) as stage:
        events = await stage.turn("Go", limits=Limits(seconds=0.5))
    assert [item.error for item in results(events)] == ["interrupted"]
    assert ending(events).status == "budget"


async def test_a_time_bound_counts_for_each_turn_and_a_stopped_session_goes_on(home: Path, workspace: Path) -> None:
    async with scene(home, workspace, DeltaProvider([[asyncio.Event()]])) as stage:
        session = await stage.open(limits=Limits(seconds=300))
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go"))
            await watch.until(RequestSent)
            stage.app.engine.turn(session).stop("budget")
            assert (await watch.until(TurnFinished)).status == "budget"
        assert ending(await stage.turn("Go on", session)).status == "done"


async def test_a_bound_on_cost_that_nothing_can_reach_is_said(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Done."}]) as stage:
        session = await stage.open(limits=Limits(cost=0.01))
        await stage.turn("Look", session)
        (notice,) = [one.event for one in await collect(stage.client.events(session)) if isinstance(one.event, Notice)]
    assert notice.code == "no_price" and "costs nothing" in notice.text


async def test_a_retry_asks_a_provider_again_that_refused_for_money(home: Path, workspace: Path) -> None:
    refusal = {"error": {"message": "insufficient balance", "kind": "quota"}}
    async with harness(home, workspace, [refusal, {"text": "Here it is."}]) as here:
        session = await here.open()
        assert "insufficient balance" in ending(await here.turn("Say it", session)).reason
        waiting = asyncio.ensure_future(collect(here.client.events(session, -1)))
        await here.client.submit(RunCommand(session, "/retry"))
        events = [envelope.event for envelope in await waiting]
    assert (ending(events).status, ending(events).result["answer"]) == ("done", "Here it is.")
