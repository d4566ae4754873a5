"""Sessions of another program become sessions of ours."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from codewhale.cli.offline.importing import import_session
from codewhale.cli.offline.stored_sessions import envelopes, summaries
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import CallFinished, Event, MessageAdded, RepairRecorded, SessionOpened, TurnFinished
from codewhale.protocol.modes import Mode
from codewhale.protocol.replays import Imported
from codewhale.protocol.tools import Origin
from support.scenes import scene


def answered(call_id: str, name: str, arguments: dict[str, Any], content: str = "ok") -> list[dict[str, Any]]:
    """A call and its result, as the file holds them."""
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": content}]},
    ]


TODO = {"todos": [{"content": "a", "status": "done"}]}
MESSAGES = [
    {"role": "system", "content": "You are another program."},
    {"role": "user", "content": "begin"},
    *answered("t1", "todo_write", TODO),
    *answered("t2", "exec_wait", {"task_id": "shell_1"}),
    *answered("t3", "exec_interact", {"task_id": "shell_1", "input": "y\n"}),
    *answered("t2", "web_search", {"query": "whales"}),
    {"role": "user", "content": "go on"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t9", "name": "edit.file!", "input": {}}]},
]


def imported(tmp_path: Path, environ: dict[str, str] | None = None, **about: Any) -> tuple[Imported, list[Event]]:
    """What was told, and the events of the session."""
    file = tmp_path / "session.json"
    metadata = {"id": "0f", "title": "Old", "workspace": str(tmp_path), "mode": "plan", **about}
    file.write_text(json.dumps({"schema_version": 1, "metadata": metadata, "messages": MESSAGES}))
    home = str(tmp_path / "home")
    told = asyncio.run(import_session(str(file), home, str(tmp_path), environ or {}))
    return told, [envelope.event for envelope in envelopes(home, told.session)]


def test_calls_take_the_names_of_today(tmp_path: Path) -> None:
    told, events = imported(tmp_path)
    calls = [call for event in events if isinstance(event, MessageAdded) for call in event.message.calls]
    assert [(call.name, call.sent_name) for call in calls] == [
        ("todo_write", "checklist_write"),
        ("exec_wait", "exec_shell_wait"),
        ("exec_interact", "exec_shell_interact"),
        ("web_search", "web_search"),
        ("edit.file!", calls[4].sent_name),
    ]
    assert json.loads(calls[0].sent_arguments) == TODO
    assert len({call.id for call in calls}) == 5
    finished = {event.call_id: event for event in events if isinstance(event, CallFinished)}
    assert [finished[call.id].name for call in calls[:3]] == [call.sent_name for call in calls[:3]]
    assert [finished[call.id].ok for call in calls] == [True, True, True, True, False]
    assert finished[calls[3].id].origin is Origin.WEB
    assert told.renamed["exec_wait -> exec_shell_wait"] == 1
    assert told.left_out == 1
    assert next(event.codes for event in events if isinstance(event, RepairRecorded)) == ("N2", "A7")


def test_the_listing_and_the_beginning(tmp_path: Path) -> None:
    told, events = imported(tmp_path, provider="deepseek", model="deepseek-v4-pro")
    assert isinstance(events[0], SessionOpened)
    opened = events[0]
    assert (opened.workspace, opened.mode) == (os.path.realpath(tmp_path), Mode.PLAN)
    assert (opened.provider, opened.model) == ("deepseek", "deepseek-v4-pro")
    (row,) = summaries(str(tmp_path / "home"))
    assert (row.id, row.title, row.turns, row.state) == (told.session, "Old", 2, "idle")


def test_a_folder_or_mode_that_is_not_here_gives_way(tmp_path: Path) -> None:
    _, events = imported(tmp_path, workspace="/nowhere/at/all", mode="operate", model="gpt")
    assert isinstance(events[0], SessionOpened)
    assert (events[0].workspace, events[0].mode, events[0].provider) == (str(tmp_path), Mode.AGENT, "deepseek")
    assert events[0].model != "gpt"


def test_secrets_do_not_come_along(tmp_path: Path) -> None:
    told, _ = imported(tmp_path, {"SOME_TOKEN": "whales-and-more"})
    assert told.calls == 5
    file = tmp_path / "secret.json"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "begin whales-and-more"}]}))
    home = str(tmp_path / "home")
    told = asyncio.run(import_session(str(file), home, str(tmp_path), {"SOME_TOKEN": "whales-and-more"}))
    log = Path(home, "sessions", told.session, "log.jsonl").read_text()
    assert "whales-and-more" not in log
    assert "[redacted SOME_TOKEN]" in log


def test_nothing_is_left_of_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text('{"schema_version": 1, "messages": []}')
    with pytest.raises(SessionError, match="contains no messages"):
        asyncio.run(import_session(str(file), str(tmp_path / "home"), str(tmp_path), {}))
    with pytest.raises(FileNotFoundError):
        asyncio.run(import_session(str(tmp_path / "none"), str(tmp_path / "home"), str(tmp_path), {}))
    assert not (tmp_path / "home" / "sessions").exists()


def test_an_imported_session_goes_on(tmp_path: Path) -> None:
    told, _ = imported(tmp_path)
    provider = ScriptedProvider([{"text": "done"}])

    async def resume() -> list[Event]:
        async with scene(tmp_path / "home", tmp_path, provider) as stage:
            opened = await stage.open(resume=told.session, provider="scripted", model="scripted")
            return await stage.turn("and now?", opened)

    ended = asyncio.run(resume())[-1]
    assert isinstance(ended, TurnFinished)
    assert (ended.status, ended.turn) == ("done", 3)
    body = json.loads(provider.requests[0])
    said = json.dumps(body)
    assert "exec_shell_wait" in said
    assert "exec_wait" not in said.replace("exec_shell_wait", "")


def test_broken_calls_of_the_file_go_out_as_sound_ones(tmp_path: Path) -> None:
    calls = [
        {"id": "", "function": {"name": "write_file", "arguments": '{"path": "a", "content": "cut'}},
        {"id": "x y", "function": {"name": "", "arguments": "[1, 2"}},
        {"id": "x y", "function": {"name": "read_file", "arguments": "{'path': 'a'}"}},
    ]
    file = tmp_path / "session.json"
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": calls}]
    file.write_text(json.dumps({"messages": messages}))
    told = asyncio.run(import_session(str(file), str(tmp_path / "home"), str(tmp_path), {}))
    provider = ScriptedProvider([{"text": "done"}])

    async def resume() -> list[Event]:
        async with scene(tmp_path / "home", tmp_path, provider) as stage:
            opened = await stage.open(resume=told.session, provider="scripted", model="scripted")
            return await stage.turn("and now?", opened)

    ended = asyncio.run(resume())[-1]
    assert isinstance(ended, TurnFinished)
    assert ended.status == "done"
    said = [message for message in json.loads(provider.requests[0])["messages"] if message["role"] != "system"]
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "tool", "tool", "user"]
    sent = [call["function"] for call in said[1]["tool_calls"]]
    assert [call["name"] for call in sent] == ["write_file", "unknown_tool", "read_file"]
    assert [json.loads(call["arguments"]) for call in sent] == [{}, {}, {"path": "a"}]
    assert [call["id"] for call in said[1]["tool_calls"]] == [message["tool_call_id"] for message in said[2:5]]
