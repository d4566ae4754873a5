"""A call's way to its tool: what is asked is what runs, more rights are offered once, and a child has its parent's."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.collect import RawCall
from codewhale.agent.guard import LoopGuard
from codewhale.agent.pending_call import PendingCall, prepare
from codewhale.protocol.blocks import MarkdownBlock
from codewhale.protocol.decisions import CallView, Opinion
from codewhale.protocol.events import ApprovalAnswered, ApprovalAsked, CallFinished, CallStarted, Event, TurnFinished
from codewhale.protocol.modes import Approval, Authority, Mode, Rights
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.protocol.tools import ToolResult
from codewhale.session.session import Session
from support.stage import Stage, staged, until

REFUSED = "connect: Network is unreachable"


def begin(stage: Stage, session: Session, name: str, **told: Any) -> "asyncio.Task[PendingCall]":
    """A call under way."""
    prepared = prepare(RawCall("", name, json.dumps(told)), "call_1", stage.catalog, False, stage.runner.repairer)
    return asyncio.create_task(stage.runner.run(stage.engine.turn(session.id), prepared, LoopGuard()))


def logged(session: Session, kind: type[Event]) -> list[Any]:
    """The events of a type in the log."""
    return [envelope.event for envelope in session.log.read() if isinstance(envelope.event, kind)]


async def asked(stage: Stage, session: Session, count: int = 1) -> ApprovalAsked:
    """The approval that waits."""
    await until(lambda: len(logged(session, ApprovalAsked)) == count and bool(stage.asking.waiting(session.id)))
    found: ApprovalAsked = logged(session, ApprovalAsked)[-1]
    return found


def finished(outcome: PendingCall) -> CallFinished:
    """The result of a call."""
    event = outcome.events[0]
    assert isinstance(event, CallFinished)
    return event


async def test_the_asking_says_all_that_policy_said(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.AGENT, Authority.PERSON)
        call = begin(stage, session, "exec_shell", say="ran")
        asking = await asked(stage, session)
        assert (asking.rule, asking.kind, asking.sandbox) == ("mode.agent.execute", "policy", "workspace-write")
        assert len(asking.sha256) == 64 and asking.call_id == "call_1"
        stage.asking.answer(session, Answer(session.id, asking.request_id, allowed=True, remember="always"))
        assert finished(await call).content == "ran"
        assert logged(session, ApprovalAnswered) == [ApprovalAnswered(asking.request_id, True, "person")]
    assert stage.gate.answers == [("allowed", "")]  # nothing was offered


async def test_the_time_of_a_call_is_not_that_of_its_asking(home: Path, workspace: Path) -> None:
    loop = asyncio.get_running_loop()
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.AGENT, Authority.PERSON)
        before = loop.time()
        call = begin(stage, session, "exec_shell", say="ran")
        asking = await asked(stage, session)
        shown = loop.time()
        await asyncio.sleep(0.05)  # the person reads
        answered = loop.time()
        stage.asking.answer(session, Answer(session.id, asking.request_id, allowed=True))
        ms = finished(await call).ms
    assert ms <= (shown - before + loop.time() - answered) * 1000


async def test_a18_what_has_changed_since_it_was_shown_does_not_run(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.AGENT, Authority.PERSON)
        call = begin(stage, session, "exec_shell", say="ran")
        asking = await asked(stage, session)
        stage.gate.salt = b"other bytes"
        stage.asking.answer(session, Answer(session.id, asking.request_id, allowed=True))
        outcome = await call
        assert stage.tools.begun == [] and logged(session, CallStarted) == []
    assert outcome.denied and "has changed since" in finished(outcome).content


async def test_what_is_forbidden_meanwhile_does_not_run(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.AGENT, Authority.PERSON)
        call = begin(stage, session, "exec_shell")
        asking = await asked(stage, session)
        stage.gate.disabled = frozenset({"exec_shell"})
        stage.asking.answer(session, Answer(session.id, asking.request_id, allowed=True))
        outcome = await call
        assert stage.tools.begun == []
    assert outcome.denied and "config.tools.disabled" in finished(outcome).content


async def test_what_cannot_be_judged_does_not_run(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        stage.gate.fault = ZeroDivisionError("by zero")
        outcome = await begin(stage, stage.open(), "read_file")
        assert stage.tools.begun == []
    assert outcome.denied and "Could not decide" in finished(outcome).content


@pytest.mark.parametrize(("allowed", "runs"), [(True, 2), (False, 1)])
async def test_more_rights_are_offered_once_where_the_sandbox_refused(
    home: Path, workspace: Path, allowed: bool, runs: int
) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.AGENT, Authority.PERSON)
        call = begin(stage, session, "exec_shell", say="ran", network=REFUSED)
        first = await asked(stage, session)
        stage.asking.answer(session, Answer(session.id, first.request_id, allowed=True))
        second = await asked(stage, session, 2)
        assert (second.kind, second.rule, second.sandbox) == ("elevation", "sandbox.elevation", "workspace-write")
        assert (first.allowances, second.allowances) == ((), ("network",))
        assert first.display == second.display == (MarkdownBlock(f"ran in {workspace}"),)
        assert "Network is unreachable" in second.reason and "with the network" in second.reason
        stage.asking.answer(session, Answer(session.id, second.request_id, allowed=allowed))
        await call
        assert len(logged(session, CallStarted)) == 1 and len(logged(session, ApprovalAsked)) == 2
    assert [context.allowances for context in stage.tools.contexts] == [(), ("network",)][:runs]


async def test_where_nobody_is_the_refusal_of_the_sandbox_stands(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.AGENT, Authority.AUTO)
        await begin(stage, session, "exec_shell", network=REFUSED)
        assert logged(session, ApprovalAsked) == []
    assert [context.profile for context in stage.tools.contexts] == ["workspace-write"]


class Rewriting:
    """A hook that puts other arguments in place of the call's."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments

    async def judge(self, call: CallView) -> Opinion | None:
        """Once."""
        return Opinion("", "hook.rewrite", "", arguments=self.arguments, context="It was rewritten.")

    async def before(self, call: CallView) -> str | None:
        """What is seen is what will run."""
        assert call.arguments == self.arguments
        return None

    async def after(self, call: CallView, result: ToolResult | None) -> str | None:
        """Nothing."""
        return None


async def test_rewritten_arguments_are_what_is_shown_logged_and_run(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, observers=lambda call: (Rewriting({"say": "other"}),)) as stage:
        session = stage.open(Mode.AGENT, Authority.AUTO)
        outcome = await begin(stage, session, "exec_shell", say="this")
        (started,) = logged(session, CallStarted)
    assert json.loads(started.arguments) == {"say": "other"}
    assert finished(outcome).content == "other\n\nIt was rewritten."


async def test_rewritten_arguments_that_do_not_fit_run_nothing(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, observers=lambda call: (Rewriting({"nonsense": 1}),)) as stage:
        session = stage.open(Mode.AGENT, Authority.AUTO)
        outcome = await begin(stage, session, "exec_shell", say="this")
        assert stage.tools.begun == []
    assert not outcome.ok


async def test_h2_a_child_has_its_parents_rights_of_this_moment(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        parent = stage.open(Mode.YOLO, Authority.AUTO)
        child = stage.open(Mode.YOLO, Authority.AUTO, owner=parent.id)
        assert (await begin(stage, child, "exec_shell", say="ran")).ok
        stage.control.set_mode(parent.id, Mode.AGENT)
        parent.allow(authority=Authority.HEADLESS)
        assert (await begin(stage, child, "exec_shell", say="ran")).denied
        assert (await begin(stage, child, "write_file", say="ran")).ok
        stage.control.set_mode(parent.id, Mode.PLAN)
        assert (await begin(stage, child, "write_file", say="ran")).denied
        assert child.rights == Rights(Mode.PLAN, Authority.HEADLESS, Approval.SUGGEST)
        grandchild = stage.open(Mode.YOLO, Authority.AUTO, owner=child.id)
        assert grandchild.rights.mode is Mode.PLAN


@pytest.mark.parametrize("where", ["never", "thread"])
@pytest.mark.parametrize("name", ["read_file", "write_file", "exec_shell"])
async def test_a_tool_that_never_ends_becomes_a_result_and_the_turn_goes_on(
    home: Path, workspace: Path, name: str, where: str
) -> None:
    script = [{"calls": [{"name": name, "arguments": {"wait": where}}]}, {"text": "Gone on."}]
    async with staged(home, workspace, script, seconds=0.5) as stage:
        session = stage.open()
        await stage.engine.send(SendMessage(session.id, "Go"))
        await until(lambda: bool(logged(session, TurnFinished)))
        (result,) = logged(session, CallFinished)
        assert not result.ok and "did not end within 0.5 seconds" in result.content
        assert logged(session, TurnFinished)[-1].status == "done"
        stage.tools.latch.set()
