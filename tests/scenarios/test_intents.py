"""Verbs in whole turns: with the tools of the intent profile, and as names of someone else's in the default one."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.catalog.lifecycle import HEAD_BYTES
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.scripted import ScriptedProvider
from codewhale.protocol.events import CallFinished, Event, RepairRecorded
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage
from codewhale.testing import collect

Call = tuple[str, dict[str, Any] | str]


async def played(folder: Path, calls: list[Call], **overrides: str) -> tuple[list[Event], list[Any]]:
    """The events of a turn in which each call is an answer of its own, and the requests of it."""
    workspace = folder / "work"
    workspace.mkdir(parents=True)
    (workspace / "store.py").write_text("class SessionStore:\n    pass\n")
    turns = [{"calls": [{"name": name, "arguments": given}]} for name, given in calls]
    provider = ScriptedProvider(turns, settings=ProviderSettings(dialect="scripted"))
    settings = {f"tools.{key}": value for key, value in overrides.items()}
    options = AppOptions(str(folder / "home"), str(workspace), "scripted", "scripted", overrides=settings)
    async with open_app(options, environ={}, providers={"scripted": provider}) as app:
        opening = OpenSession(workspace=str(workspace), mode=Mode.YOLO, authority=Authority.AUTO)
        session: str = await app.client.submit(opening)
        waiting = asyncio.ensure_future(collect(app.client.events(session, from_seq=-1)))
        await asyncio.sleep(0)
        await app.client.submit(SendMessage(session, "Go."))
        events = [envelope.event for envelope in await waiting]
    return events, [msgspec.json.decode(body) for body in provider.requests]


def results(events: list[Event]) -> list[CallFinished]:
    return [event for event in events if isinstance(event, CallFinished)]


VERBS: list[Call] = [
    ("shell_run", {"command": "echo hello"}),
    ("codebase_search", {"query": "SessionStore"}),
    ("work_update", {"items": ["read", "write"]}),
    ("work_update", {"id": 1, "status": "completed"}),
    ("read_file", {"path": "store.py"}),
]
TOOLS = ["exec_shell", "codebase_search", "checklist_write", "checklist_update", "read_file"]


@pytest.mark.parametrize("profile", ["intent", "default"])
async def test_verbs_run_in_every_profile(profile: str, tmp_path: Path) -> None:
    events, _ = await played(tmp_path, VERBS, profile=profile)
    done = results(events)
    assert [result.name for result in done] == TOOLS
    assert all(result.ok for result in done), [result.content for result in done]
    assert "hello" in done[0].content and "store.py" in done[1].content
    repairs = [event.codes for event in events if isinstance(event, RepairRecorded)]
    assert repairs == [("I1",)] * 3


async def test_verb_spelt_otherwise_runs_where_verbs_are_shown(tmp_path: Path) -> None:
    events, _ = await played(tmp_path, [("functions.ShellRun", {"command": "echo hello"})], profile="intent")
    assert results(events)[0].ok and "hello" in results(events)[0].content


async def test_profile_of_verbs_is_small_and_keeps_their_names(tmp_path: Path) -> None:
    _, requests = await played(tmp_path, VERBS, profile="intent")
    shown = [tool["function"]["name"] for tool in requests[0]["tools"]]
    assert shown == sorted(shown) and {"shell_run", "work_update", "ask_user", "agent_run", "codebase_search"} < set(
        shown
    )
    assert "exec_shell" not in shown and "agent_open" not in shown
    assert len(msgspec.json.encode(requests[0]["tools"])) <= HEAD_BYTES["intent"]
    said = [call["function"]["name"] for message in requests[-1]["messages"] for call in message.get("tool_calls", ())]
    assert said == [name for name, _ in VERBS]
    assert all(request["tools"] == requests[0]["tools"] for request in requests)


async def test_verbs_go_back_as_tools_where_they_are_none(tmp_path: Path) -> None:
    _, requests = await played(tmp_path, VERBS[:2], profile="default")
    said = [call["function"]["name"] for message in requests[-1]["messages"] for call in message.get("tool_calls", ())]
    assert said == TOOLS[:2]


async def test_search_goes_by_its_words_or_where_its_kind_says(tmp_path: Path) -> None:
    calls: list[Call] = [
        ("codebase_search", {"query": "where are the sessions stored?"}),
        ("codebase_search", {"query": "SessionStore", "kind": "content"}),
        ("codebase_search", {"query": "store.py", "kind": "file"}),
    ]
    events, _ = await played(tmp_path, calls, profile="intent")
    done = results(events)
    assert [result.name for result in done] == ["codebase_search", "grep_files", "file_search"]
    assert all(result.ok and "store.py" in result.content for result in done)


async def test_open_intent_is_told_both_calls_and_runs_none(tmp_path: Path) -> None:
    call: Call = ("shell_run", {"command": "touch made", "task_id": "shell_1"})
    events, _ = await played(tmp_path, [call], profile="intent")
    refused = results(events)[0]
    assert not refused.ok and '1. exec_shell_wait {"task_id":"shell_1"}' in refused.content
    assert '2. exec_shell {"command":"touch made"}' in refused.content and not (tmp_path / "work/made").exists()


@pytest.mark.parametrize(("extent", "ran"), [("full", [True, True]), ("names", [True, False]), ("off", [False, False])])
async def test_extent_of_repairing_is_configured(extent: str, ran: list[bool], tmp_path: Path) -> None:
    calls: list[Call] = [("ReadFile", {"path": "store.py"}), ("read_file", '{"path": "store.py",}')]
    events, _ = await played(tmp_path, calls, repair=extent)
    assert [result.ok for result in results(events)] == ran
