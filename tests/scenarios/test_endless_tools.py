"""Tools that never end: with a limit on every call the model is told so, and the turn goes on."""

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.protocol.events import CallFinished, CallStarted, MessageAdded, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.session.session import Session
from support.scenes import only
from support.stage import Stage, staged, until

NETWORK = "connect: Network is unreachable"


def opened(stage: Stage, *rights: Any) -> Session:
    """A session in which every tool is there."""
    facts = {**stage.provider.settings.facts, "fim": "completions"}
    stage.provider.settings = msgspec.structs.replace(stage.provider.settings, facts=facts)
    return stage.open(*rights)


def gone(stage: Stage, session: Session, request: str) -> bool:
    """Whether a question waits no longer."""
    return request not in stage.asking.waiting(session.id)


async def ended(stage: Stage) -> list[Any]:
    """The events of a turn."""
    session = opened(stage)
    await stage.engine.send(SendMessage(session.id, "Go"))
    await until(lambda: any(isinstance(row.event, TurnFinished) for row in session.log.read()))
    return [row.event for row in session.log.read()]


@pytest.mark.parametrize("name", ["read_file", "write_file", "exec_shell", "exec_shell_wait", "fim_edit"])
async def test_every_kind_of_tool_that_never_ends_is_cut_off(name: str, home: Path, workspace: Path) -> None:
    calls = [{"name": name, "arguments": {"wait": "never"}}, {"name": "read_file", "arguments": {"say": "after"}}]
    async with staged(home, workspace, [{"calls": calls}, {"text": "Gone on."}], seconds=1.5) as stage:
        events = await ended(stage)
    first, second = only(events, CallFinished)
    assert (first.ok, first.error) == (False, "timeout") and "did not end within 1.5 seconds" in first.content
    assert second.ok and second.content.startswith("after")
    assert only(events, MessageAdded)[-1].message.text == "Gone on."
    assert only(events, TurnFinished)[0].status == "done"


async def test_side_by_side_the_one_that_never_ends_costs_the_others_nothing(home: Path, workspace: Path) -> None:
    calls = [{"name": "read_file", "arguments": {"say": say, "wait": "never" if say == "b" else ""}} for say in "abc"]
    async with staged(home, workspace, [{"calls": calls}, {"text": "Gone on."}], seconds=1.5) as stage:
        events = await ended(stage)
    assert [result.error for result in only(events, CallFinished)] == ["", "timeout", ""]


async def test_a_preview_that_never_ends_begins_nothing(home: Path, workspace: Path) -> None:
    calls = [{"name": "fim_edit", "arguments": {"wait": "never"}}]
    async with staged(home, workspace, [{"calls": calls}], seconds=1.5) as stage:
        events = await ended(stage)
        assert stage.tools.shown == [] and len(stage.tools.begun) == 1
    assert only(events, CallStarted) == [] and [result.error for result in only(events, CallFinished)] == ["timeout"]


@pytest.mark.parametrize(("name", "asked", "runs"), [("exec_shell", 1, 1), ("exec_shell", 2, 2), ("fim_edit", 1, 2)])
async def test_what_runs_once_the_person_has_allowed_it_is_bounded_too(
    name: str, asked: int, runs: int, home: Path, workspace: Path
) -> None:
    """The first time, or the second with more rights, or what was shown before."""
    given: dict[str, Any] = {"say": "ran"} | ({"network": NETWORK} if asked == 2 else {})
    script = [{"calls": [{"name": name, "arguments": given}]}, {"text": "Gone on."}]
    async with staged(home, workspace, script, seconds=2.0) as stage:
        session = opened(stage, Mode.AGENT, Authority.PERSON)
        await stage.engine.send(SendMessage(session.id, "Go"))
        for number in range(1, asked + 1):
            await until(lambda: bool(stage.asking.waiting(session.id)))
            stage.tools.hang = number == asked
            (request,) = stage.asking.waiting(session.id)
            stage.asking.answer(session, Answer(session.id, request, allowed=True))
            await until(partial(gone, stage, session, request))
        await until(lambda: any(isinstance(row.event, TurnFinished) for row in session.log.read()))
        events = [row.event for row in session.log.read()]
        assert len(stage.tools.begun) == runs
    assert [result.error for result in only(events, CallFinished)] == ["timeout"]
    assert only(events, TurnFinished)[0].status == "done"
