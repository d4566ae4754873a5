"""Logs made out again: what each call means today, beside what it did then."""

import asyncio
import json
from pathlib import Path

import pytest

from codewhale.catalog.lifecycle import ALIASES
from codewhale.catalog.registry import Catalog
from codewhale.cli.offline.replay import replay
from codewhale.lib.clock import SystemClock
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import CallFinished, CallStarted, Event, MessageAdded, SessionOpened
from codewhale.protocol.messages import Message, ToolCall
from codewhale.protocol.modes import Mode
from codewhale.protocol.replays import Replayed
from codewhale.protocol.tools import Effect
from codewhale.session.store import SessionStore
from support.scenes import scene


def replayed(home: Path, session: str, run_reads: bool = False) -> list[Replayed]:
    async def every() -> list[Replayed]:
        return [told async for told in replay(str(home), session, {}, run_reads)]

    return asyncio.run(every())


def played(tmp_path: Path, *calls: tuple[str, str]) -> str:
    """The session of a real turn in which the model made these calls."""
    turns = [{"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}, {"text": "done"}]

    async def play() -> str:
        async with scene(tmp_path / "home", tmp_path / "work", ScriptedProvider(turns)) as stage:
            session = await stage.open()
            await stage.turn("go", session)
            return session

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n")
    return asyncio.run(play())


def recorded(tmp_path: Path, *events: Event) -> str:
    log = SessionStore(str(tmp_path / "home"), SystemClock()).create(
        SessionOpened(1, str(tmp_path / "gone"), Mode.AGENT, "p", "m")
    )
    log.append(events)
    log.close()
    return log.session


def called(name: str, arguments: str, finish: str = "") -> MessageAdded:
    return MessageAdded(Message("assistant", (ToolCall("c1", name, arguments),)), finish)


OLD_NAMES = sorted(name for name, row in ALIASES.items() if Catalog.load().spec(row.canonical) is not None)
DAMAGED = (
    ("readfile", '{"path": "a.txt",}'),
    ("write_file", '{"path": "b.txt", "content": "b"}'),
    ("todo_write", '{"todos": [{"content": "x", "status": "Done"}]}'),
    ("write_file", '{"path": "c.txt", "content": "cut'),
    ("summon_the_whale", "{}"),
)


def test_a_session_of_ours_is_understood_as_it_was(tmp_path: Path) -> None:
    session = played(tmp_path, *DAMAGED)
    before = sorted(path.name for path in (tmp_path / "work").iterdir())
    told = replayed(tmp_path / "home", session)
    assert [(row.canonical, row.outcome) for row in told] == [
        ("read_file", "run"),
        ("write_file", "run"),
        ("checklist_write", "run"),
        ("write_file", "refuse"),
        ("summon_the_whale", "refuse"),
    ]
    assert [row.drift for row in told] == [""] * 5
    assert told[0].repairs == ("N1", "P1")
    assert told[2].state == "deprecated"
    assert [row.then.ok for row in told if row.then is not None] == [True, True, True, False, False]
    assert told[3].error is not None
    assert told[3].error["fix"] is None
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == before == ["a.txt", "b.txt"]


def test_reads_run_in_a_copy_when_asked(tmp_path: Path) -> None:
    here = tmp_path / "work"
    session = played(tmp_path, *DAMAGED, ("read_file", json.dumps({"path": str(here / "a.txt")})), ("list_dir", "{}"))
    (here / "b.txt").unlink()
    told = replayed(tmp_path / "home", session, run_reads=True)
    assert [row.now is not None for row in told] == [True, False, False, False, False, True, True]
    assert [row.not_run for row in told[1:5]] == [
        "it does more than read",
        "it is about the session",
        "it would be refused",
        "it would be refused",
    ]
    read, again, listing = told[0].now, told[5].now, told[6].now
    assert read is not None
    assert again is not None
    assert listing is not None
    assert (read.ok, read.same) == (True, True)
    assert (again.ok, again.same) == (True, True)
    assert (listing.ok, listing.same) == (True, False)
    assert not (here / "b.txt").exists()


def test_reads_need_their_workspace(tmp_path: Path) -> None:
    session = recorded(tmp_path, called("read_file", '{"path":"a"}'))
    assert len(replayed(tmp_path / "home", session)) == 1
    with pytest.raises(SessionError, match="gone"):
        replayed(tmp_path / "home", session, run_reads=True)


@pytest.mark.parametrize("alias", OLD_NAMES)
def test_every_old_name_is_replayed(tmp_path: Path, alias: str) -> None:
    canonical = ALIASES[alias].canonical
    arguments = {
        "checklist_write": {"todos": []},
        "checklist_add": {"content": "x"},
        "checklist_update": {"id": 1, "status": "pending"},
        "exec_shell_wait": {"task_id": "job_1"},
        "mcp_read_resource": {"server": "notes", "uri": "notes://day"},
        "exec_shell_interact": {"task_id": "job_1", "input": "x"},
    }.get(canonical, {})
    session = recorded(tmp_path, called(alias, json.dumps(arguments)), CallFinished("c1", canonical, True, "as it was"))
    (told,) = replayed(tmp_path / "home", session)
    assert (told.name, told.canonical, told.outcome, told.drift) == (alias, canonical, "run", "")
    assert told.state == ALIASES[alias].state


def test_what_would_go_otherwise_today_is_told(tmp_path: Path) -> None:
    started = CallStarted("c1", "read_file", '{"path":"a"}', (Effect.READS,), "mode.read")
    finished = CallFinished("c1", "read_file", True, "a")

    def drift(message: MessageAdded, *events: Event) -> str:
        return replayed(tmp_path / "home", recorded(tmp_path, message, *events))[0].drift

    assert drift(called("read_file", '{"path":"a"}'), started, finished) == ""
    assert "with {" in drift(called("read_file", '{"path":"b"}'), started, finished)
    assert "refused today" in drift(called("read_file", "{}"), started, finished)
    assert "as list_dir today" in drift(called("list_dir", '{"path":"a"}'), started, finished)
    assert "refused today" in drift(called("read_file", '{"path": "a"}', "length"), finished)
    assert drift(called("their_own_tool", "{}"), finished) == ""
    assert drift(called("read_file", '{"path":"a"}')) == ""
