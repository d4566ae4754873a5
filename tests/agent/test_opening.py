"""How sessions begin: new, resumed and forked, with a head that stays what it was."""

from pathlib import Path

import pytest

from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import HeaderPinned, ListChanged, Notice, PrefixInvalidated, SessionOpened, TurnStarted
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Limits
from support.stage import Stage, staged


async def left_behind(stage: Stage) -> str:
    """The id of a session that had a turn and was closed."""
    session = stage.open()
    session.emit(TurnStarted(1), ListChanged("checklist", ({"id": 1},)))
    await stage.engine.close(session.id)
    return session.id


async def test_a_new_session_has_its_head_and_its_bounds(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    async with staged(home, workspace) as stage:
        session = stage.open(Mode.PLAN, Authority.PERSON, limits=Limits(seconds=9), model="large")
        first, second = [envelope.event for envelope in session.log.read()]
        assert first == SessionOpened(1, str(workspace), Mode.PLAN, "scripted", "large")
        assert isinstance(second, HeaderPinned)
        assert "Use tabs." in second.system and '"read_file"' in second.tools_json
        assert session.rights.authority is Authority.PERSON
        assert session.budget.seconds_left == 9
        assert session.state.header == second


async def test_a_resume_keeps_head_and_lists(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        name = await left_behind(stage)
        (workspace / "AGENTS.md").write_text("New rules.\n")
        session = stage.open(resume=name)
        events = [envelope.event for envelope in session.log.read()]
        heads = [event for event in events if isinstance(event, HeaderPinned)]
        assert len(heads) == 1 and "New rules." not in heads[0].system
        assert not any(isinstance(event, PrefixInvalidated) for event in events)
        assert session.state.lists == {"checklist": ({"id": 1},)}


async def test_a_torn_log_is_repaired_and_the_person_is_told(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        name = await left_behind(stage)
        with open(home / "sessions" / name / "log.jsonl", "ab") as file:
            file.write(b'{"seq": 99, "torn')
        session = stage.open(resume=name)
        notices = [item.event for item in session.log.read() if isinstance(item.event, Notice)]
        assert [(item.level, item.code) for item in notices] == [("warning", "log_damaged")]
        assert "17 bytes" in notices[0].text


async def test_a_fork_is_a_session_of_its_own(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        name = await left_behind(stage)
        child = stage.open(Mode.PLAN, fork=name)
        assert child.id != name
        assert child.state.mode is Mode.PLAN and child.state.turns == 1
        assert child.state.header is not None
        parent = stage.open(resume=name)
        parent.emit(TurnStarted(2))
        assert child.state.turns == 1


async def test_what_cannot_be_found_is_said(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        for fields in ({"resume": "latest"}, {"fork": "nothing"}, {"resume": "nothing"}):
            with pytest.raises(SessionError):
                stage.open(**fields)


async def test_a_changed_chain_is_told_until_it_was_told(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        factory, session = stage.factory, stage.open()
        assert factory.updates(session) == ()
        (workspace / "AGENTS.md").write_text("New rules.\n")
        (change,) = factory.updates(session)
        assert "New rules." in change.text
        session.emit(change)
        assert factory.updates(session) == ()
        (workspace / "AGENTS.md").write_text("")
        (change,) = factory.updates(session)
        assert "no longer apply" in change.text
