"""The engine's own decisions: which sessions are open, what a message begins, what changes between turns."""

import re
from pathlib import Path

import pytest

from codewhale.agent.engine import workspace_facts
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import ContextAppended, MessageAdded, ModeChanged, TurnFinished, TurnStarted
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import SendMessage
from support.stage import Stage, staged, until


async def turn(stage: Stage, session_id: str, text: str = "Go", context: str = "") -> None:
    """Send a message and wait for the end of its turn."""
    session = stage.engine.session(session_id)
    await stage.engine.send(SendMessage(session_id, text, context))
    await until(lambda: not stage.engine.turn(session.id).busy)


async def test_only_open_sessions_are_known(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        assert stage.engine.session(session.id) is session
        await stage.engine.close(session.id)
        with pytest.raises(SessionError, match="not open here"):
            stage.engine.session(session.id)
        with pytest.raises(SessionError):
            await stage.engine.send(SendMessage(session.id, "Go"))


async def test_a_message_is_on_disk_when_it_was_taken(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        await stage.engine.send(SendMessage(session.id, "Words", "<selection/>"))
        found = [item.event for item in stage.sessions.read(session.id) if isinstance(item.event, MessageAdded)]
        assert found[0].message.text == "Words\n<selection/>"
        await until(lambda: not stage.engine.turn(session.id).busy)


async def test_turns_are_numbered_and_end_once(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        await turn(stage, session.id)
        await turn(stage, session.id)
        events = [item.event for item in session.log.read() if isinstance(item.event, TurnStarted | TurnFinished)]
    assert [(type(event).__name__, event.turn) for event in events] == [
        ("TurnStarted", 1),
        ("TurnFinished", 1),
        ("TurnStarted", 2),
        ("TurnFinished", 2),
    ]


async def test_the_same_mode_again_is_no_change(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.AGENT)
        stage.control.set_mode(session.id, Mode.AGENT)
        stage.control.set_mode(session.id, Mode.PLAN)
        stage.control.set_mode(session.id, Mode.PLAN)
        found = [item.event for item in session.log.read() if isinstance(item.event, ModeChanged)]
    assert found == [ModeChanged(Mode.PLAN, Mode.AGENT)]


async def test_facts_are_told_once_until_they_change(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open()
        for stage.facts in ("Monday", "Monday", "Tuesday"):
            await turn(stage, session.id)
        events = [item.event for item in session.log.read() if isinstance(item.event, ContextAppended)]
    assert [event.text for event in events if event.kind == "facts"] == ["Monday", "Tuesday"]


async def test_closers_run_before_the_log_closes(home: Path, workspace: Path) -> None:
    seen: list[tuple[str, int]] = []
    async with staged(home, workspace) as stage:
        session = stage.open()
        await turn(stage, session.id)

        async def closer(name: str) -> None:
            seen.append((name, stage.engine.session(name).log.seq))

        stage.engine.on_close(closer)
    assert [name for name, _ in seen] == [session.id]


def test_facts_name_the_day_and_the_branch() -> None:
    text = workspace_facts("main")
    assert re.fullmatch(r"<context>\ndate: \d{4}-\d\d-\d\d\ngit branch: main\n</context>", text)
    assert "branch" not in workspace_facts(None)
