"""Those who watch calls: their word before policy, before the run, and after it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.collect import RawCall
from codewhale.agent.guard import LoopGuard
from codewhale.agent.pending_call import PendingCall, prepare
from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.events import CallFinished, CallStarted
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import Effect, ToolResult
from codewhale.session.session import Session
from support.stage import Stage, staged, until


class Witness:
    """Writes down what it saw, and says what it was told to say."""

    def __init__(self, opinion: Opinion | None = None, reason: str = "", note: str = "") -> None:
        self.opinion, self.reason, self.note = opinion, reason, note
        self.seen: list[Any] = []
        self.view: CallView | None = None

    async def judge(self, call: CallView) -> Opinion | None:
        """Its opinion."""
        self.view = call
        self.seen.append("judge")
        return self.opinion

    async def before(self, call: CallView) -> str | None:
        """Its objection."""
        self.seen.append("before")
        return self.reason

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        """Its note."""
        self.seen.append(("after", None if result is None else result.content))
        return self.note


async def run(stage: Stage, session: Session, name: str, **told: Any) -> PendingCall:
    """The outcome of one call."""
    prepared = prepare(RawCall("", name, json.dumps(told)), "call_1", stage.catalog, False, stage.runner.repairer)
    return await stage.runner.run(stage.engine.turn(session.id), prepared, LoopGuard())


def finished(outcome: PendingCall) -> CallFinished:
    """The result of a call."""
    event = outcome.events[0]
    assert isinstance(event, CallFinished)
    return event


async def test_an_observer_sees_the_whole_life_of_a_call(home: Path, workspace: Path) -> None:
    witness = Witness(note="Seen.")
    async with staged(home, workspace, observers=lambda call: (witness,)) as stage:
        outcome = await run(stage, stage.open(), "write_file", say="written")
    assert witness.seen == ["judge", "before", ("after", "written")]
    assert finished(outcome).content == "written\n\nSeen."
    view = witness.view
    assert view is not None
    assert (view.tool, view.arguments, view.mode) == ("write_file", {"say": "written"}, Mode.YOLO)
    assert (view.call_id, view.workspace, Effect.WRITES in view.effects) == ("call_1", str(workspace), True)


async def test_an_opinion_may_deny_a_call_in_every_mode(home: Path, workspace: Path) -> None:
    witness = Witness(Opinion("deny", "hook.friday", "Not on Fridays."))
    async with staged(home, workspace, observers=lambda call: (witness,)) as stage:
        outcome = await run(stage, stage.open(), "write_file")
        assert stage.tools.begun == []
    assert outcome.denied and "Not on Fridays." in finished(outcome).content
    assert "hook.friday" in finished(outcome).content and witness.seen == ["judge"]


async def test_an_objection_keeps_the_call_from_starting_and_ends_what_had_begun(home: Path, workspace: Path) -> None:
    first, second = Witness(), Witness(reason="The disk is full.")
    third = Witness()
    async with staged(home, workspace, observers=lambda call: (first, second, third)) as stage:
        session = stage.open()
        outcome = await run(stage, session, "write_file")
        assert not any(isinstance(envelope.event, CallStarted) for envelope in session.log.read())
    assert outcome.denied and "The disk is full." in finished(outcome).content
    assert first.seen == second.seen == ["judge", "before", ("after", None)] and third.seen == ["judge"]


@pytest.mark.parametrize("told", [{"fail": "no"}, {"crash": "oops"}])
async def test_the_end_of_a_failed_call_is_seen(home: Path, workspace: Path, told: dict[str, str]) -> None:
    witness = Witness(note="never said")
    async with staged(home, workspace, observers=lambda call: (witness,)) as stage:
        outcome = await run(stage, stage.open(), "exec_shell", **told)
    assert witness.seen[-1] == ("after", None) and "never said" not in finished(outcome).content


async def test_the_end_of_a_cancelled_call_is_seen(home: Path, workspace: Path) -> None:
    witness = Witness()
    async with staged(home, workspace, observers=lambda call: (witness,)) as stage:
        call = asyncio.create_task(run(stage, stage.open(), "exec_shell", wait="for ever"))
        await until(lambda: bool(stage.tools.begun))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert witness.seen == ["judge", "before", ("after", None)]
