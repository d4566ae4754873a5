"""One call from its gate to its one result, whatever its tool does."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.engine.collect import RawCall
from codewhale.engine.dispatch import Outcome
from codewhale.engine.guard import LoopGuard
from codewhale.engine.prepare import Prepared, prepare
from codewhale.engine.session import Session
from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import CallFinished, CallStarted, ListChanged
from codewhale.protocol.modes import Authority, Mode
from support.stage import Stage, staged


async def run(stage: Stage, session: Session, name: str, /, guard: LoopGuard | None = None, **told: Any) -> Outcome:
    """The outcome of one call."""
    raw = RawCall("", name, json.dumps(told))
    prepared = prepare(raw, f"call_{len(stage.tools.begun) + 1}", stage.catalog, False)
    return await stage.dispatcher.run(session, prepared, guard or LoopGuard())


def result(outcome: Outcome) -> CallFinished:
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
    assert (result(outcome).ok, result(outcome).content, outcome.denied) == (True, "written", False)


async def test_a_tool_that_fails_gets_a_next_call_from_its_row(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        finished = result(await run(stage, stage.open(), "exec_shell", fail="no such program"))
    assert (finished.ok, finished.error) == (False, "execution_failed")
    assert finished.content.endswith('no such program\nNext call: read_file {"say":"rescued"}')


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


class Refusing:
    """A hook that refuses writes."""

    async def before(self, session: Session, prepared: Prepared) -> ToolError | None:
        """No for write_file."""
        return ToolError("permission_denied", "Not on Fridays.") if prepared.name == "write_file" else None


async def test_a_hook_may_refuse_before_policy_is_asked(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, hooks=Refusing()) as stage:
        session = stage.open()
        refused, allowed = await run(stage, session, "write_file"), await run(stage, session, "read_file")
    assert refused.denied and "Not on Fridays." in result(refused).content
    assert result(allowed).ok


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
    updates = {
        "task_updates": {
            "checklist": {"items": [{"id": 1}]},
            "plan": {"plan": [{"step": "a"}], "explanation": None},
        }
    }
    async with staged(home, workspace) as stage:
        outcome = await run(stage, stage.open(), "read_file", metadata=updates)
    assert outcome.events[1:] == (ListChanged("checklist", ({"id": 1},)), ListChanged("plan", ({"step": "a"},)))
