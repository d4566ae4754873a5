"""One call from its gate to its one result, whatever its tool does."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.agent.collect import RawCall
from codewhale.agent.guard import LoopGuard
from codewhale.agent.pending_call import PendingCall, prepare
from codewhale.protocol.blocks import MarkdownBlock
from codewhale.protocol.events import ApprovalAsked, CallFinished, CallStarted, ListChanged
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer
from codewhale.session.session import Session
from support.stage import Stage, staged, until


async def run(stage: Stage, session: Session, name: str, /, guard: LoopGuard | None = None, **told: Any) -> PendingCall:
    """The outcome of one call."""
    raw = RawCall("", name, json.dumps(told))
    prepared = prepare(raw, f"call_{len(stage.tools.begun) + 1}", stage.catalog, False, stage.runner.repairer)
    return await stage.runner.run(stage.engine.turn(session.id), prepared, guard or LoopGuard())


def result(outcome: PendingCall) -> CallFinished:
    """The result of a call: the first of its events."""
    finished = outcome.events[0]
    assert isinstance(finished, CallFinished)
    return finished


def started(session: Session) -> list[CallStarted]:
    """What the log says has begun."""
    return [envelope.event for envelope in session.log.read() if isinstance(envelope.event, CallStarted)]


async def test_a_call_starts_in_the_log_before_it_runs_and_ends_in_its_outcome(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        outcome = await run(stage, session, "write_file", say="written")
        (begun,) = started(session)
    assert (begun.name, begun.rule, json.loads(begun.arguments)) == ("write_file", "mode.yolo", {"say": "written"})
    assert (result(outcome).ok, result(outcome).content, outcome.denied) == (True, "written", "")


async def test_a_tool_that_fails_gets_no_next_call_but_its_own(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        finished = result(await run(stage, stage.open(), "exec_shell", fail="no such program"))
    assert (finished.ok, finished.error) == (False, "execution_failed")
    assert finished.content.endswith("no such program")


async def test_a_tool_that_breaks_does_not_break_the_turn(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        finished = result(await run(stage, stage.open(), "read_file", crash="oops"))
    assert (finished.ok, finished.error) == (False, "execution_failed")
    assert "RuntimeError: oops" in finished.content


@pytest.mark.parametrize("metadata", [{"error": "text of its own"}, {"error": {"why": 1}}, {"error": None}])
async def test_a_tools_own_metadata_may_hold_anything(home: Path, workspace: Path, metadata: dict[str, Any]) -> None:
    async with staged(home, workspace) as stage:
        finished = result(await run(stage, stage.open(), "read_file", metadata=metadata))
    assert finished.ok and finished.metadata == metadata


async def test_what_policy_denies_never_starts(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.AGENT, Authority.HEADLESS)
        outcome = await run(stage, session, "exec_shell")
        assert started(session) == [] and stage.tools.begun == []
    assert outcome.denied
    assert result(outcome).error == "permission_denied"
    assert "authority.headless" in result(outcome).content


async def test_a_blocked_repeat_does_not_run(home: Path, workspace: Path) -> None:
    guard = LoopGuard()
    async with staged(home, workspace) as stage:
        session = stage.open()
        outcomes = [await run(stage, session, "read_file", guard) for _ in range(8)]
        assert len(stage.tools.begun) == 4
    assert [outcome.repeats for outcome in outcomes] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [outcome.ok for outcome in outcomes] == [True] * 4 + [False] * 4


async def test_arguments_in_another_order_are_the_same_call(home: Path, workspace: Path) -> None:
    guard = LoopGuard()
    async with staged(home, workspace) as stage:
        session = stage.open()
        await run(stage, session, "read_file", guard, say="a", wait="")
        outcome = await run(stage, session, "read_file", guard, wait="", say="a")
    assert outcome.repeats == 2


async def test_polling_is_never_counted(home: Path, workspace: Path) -> None:
    guard = LoopGuard()
    async with staged(home, workspace) as stage:
        session = stage.open()
        outcomes = [await run(stage, session, "exec_shell_wait", guard) for _ in range(12)]
        assert len(stage.tools.begun) == 12
    assert {outcome.repeats for outcome in outcomes} == {0}
    assert {result(outcome).content for outcome in outcomes} == {"ok"}


async def test_changed_lists_are_told(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        outcome = await run(stage, stage.open(), "read_file", plan="a")
        named = await run(stage, stage.open(), "read_file", metadata={"task_updates": {"plan": {"items": []}}})
    assert outcome.events[1:] == (ListChanged("plan", ({"step": "a"},)),)
    assert named.events[1:] == ()


def filling(stage: Stage, mode: Mode = Mode.AGENT, authority: Authority = Authority.PERSON) -> Session:
    """A session whose provider fills in the middle."""
    facts = {**stage.provider.settings.facts, "fim": "completions"}
    stage.provider.settings = msgspec.structs.replace(stage.provider.settings, facts=facts)
    return stage.open(mode, authority)


async def test_what_a_preview_shows_is_asked_for_and_then_done(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = filling(stage)
        call = asyncio.create_task(run(stage, session, "fim_edit", say="middle"))
        await until(lambda: bool(stage.asking.waiting(session.id)))
        assert (stage.tools.shown, started(session)) == (["middle"], [])
        (asked,) = [entry.event for entry in session.log.read() if isinstance(entry.event, ApprovalAsked)]
        stage.asking.answer(session, Answer(session.id, asked.request_id, allowed=True))
        finished = result(await call)
        (begun,) = started(session)
    assert asked.display == (MarkdownBlock("shown 1: middle"),)
    assert "does not show" in asked.reason and begun.rule == "mode.agent.unseen"
    assert finished.ok and finished.content == "shown 1: middle"
    assert stage.tools.shown == ["middle"]  # worked out once: what was approved is what was done


async def test_a_preview_that_is_turned_down_does_nothing(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = filling(stage)
        call = asyncio.create_task(run(stage, session, "fim_edit", say="middle"))
        await until(lambda: bool(stage.asking.waiting(session.id)))
        stage.asking.answer(session, Answer(session.id, next(iter(stage.asking.waiting(session.id))), allowed=False))
        outcome = await call
        assert started(session) == [] and len(stage.tools.begun) == 1
    assert outcome.denied and result(outcome).error == "permission_denied"


@pytest.mark.parametrize(("mode", "authority"), [(Mode.AGENT, Authority.HEADLESS), (Mode.YOLO, Authority.PERSON)])
async def test_where_nobody_is_asked_a_preview_runs_as_a_write_does(
    home: Path, workspace: Path, mode: Mode, authority: Authority
) -> None:
    async with staged(home, workspace) as stage:
        session = filling(stage, mode, authority)
        finished = result(await run(stage, session, "fim_edit", say="middle"))
        assert len(started(session)) == 1
    assert finished.ok and finished.content == "shown 1: middle"


async def test_a_preview_is_not_worked_out_for_what_policy_denies(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        outcome = await run(stage, filling(stage, Mode.PLAN), "fim_edit", say="middle")
        assert stage.tools.begun == []
    assert outcome.denied and "mode.plan" in result(outcome).content


@pytest.mark.parametrize("told", [{"fail": "no such anchor"}, {"crash": "oops"}])
async def test_a_fault_of_a_preview_or_of_what_follows_is_told(
    home: Path, workspace: Path, told: dict[str, str]
) -> None:
    async with staged(home, workspace) as stage:
        finished = result(await run(stage, filling(stage, authority=Authority.HEADLESS), "fim_edit", **told))
    assert (finished.ok, finished.error) == (False, "execution_failed")
    assert next(iter(told.values())) in finished.content


async def test_a_closed_gate_says_what_would_work(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        outcome = await run(stage, stage.open(), "fim_edit", say="middle")
        assert stage.tools.begun == []
    finished = result(outcome)
    assert (finished.ok, finished.error, outcome.denied) == (False, "not_available", "")
    assert "edit_file" in finished.content and "providers.scripted.facts.fim" in finished.content
