"""A session outlives its process: what was sent is sent again byte for byte, and nothing is left open."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from codewhale.cli.offline.stored_sessions import request_body
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import (
    CallStarted,
    ContextAppended,
    Envelope,
    HeaderPinned,
    MessageAdded,
    Notice,
    PrefixInvalidated,
    SessionOpened,
    SessionResumed,
    TurnStarted,
)
from codewhale.protocol.messages import Message, Text, ToolCall
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession, GetMessages, ListSessions
from codewhale.protocol.tools import Effect
from codewhale.session.store import SessionStore
from codewhale.testing import FakeClock, harness
from support.scenes import ending, only, results, sent

DONE = {"text": "That is all."}
LOOK = {"calls": [{"name": "list_dir", "arguments": {}}]}


def log(home: Path, session: str) -> list[Envelope]:
    """The events of a session nobody holds."""
    return list(SessionStore(str(home), FakeClock()).read(session))


async def test_after_a_resume_the_next_request_begins_with_the_last(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    async with harness(home, workspace, [LOOK, DONE]) as stage:
        session = await stage.open()
        await stage.turn("One", session)
        first = stage.provider.requests
    async with harness(home, workspace, [LOOK, DONE]) as stage:
        assert await stage.open(resume=session) == session
        events = await stage.turn("Two", session)
        bodies = [*first, *stage.provider.requests]
    assert ending(events).status == "done"
    for before, after in pairwise(bodies):
        assert after.startswith(before[:-2])
    assert [request_body(str(home), session, number) for number in range(1, 5)] == bodies
    events = [envelope.event for envelope in log(home, session)]
    assert only(events, PrefixInvalidated) == [] and len(only(events, HeaderPinned)) == 1
    assert len(only(events, SessionResumed)) == 1


async def test_latest_and_a_unique_beginning_find_the_session(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE, DONE, DONE]) as stage:
        session = await stage.open()
        await stage.turn("One", session)
        await stage.client.submit(CloseSession(session))
        assert await stage.open(resume="latest") == session
        await stage.client.submit(CloseSession(session))
        assert await stage.open(resume=session[:-2]) == session
        rows = await stage.client.query(ListSessions(str(workspace)))
        assert [(row.id, row.turns, row.state) for row in rows] == [(session, 1, "open")]
        with pytest.raises(SessionError, match="no session"):
            await stage.open(resume="19990101")


async def test_a_session_that_is_open_cannot_be_opened_twice(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open()
        await stage.turn("One", session)
        with pytest.raises(SessionError):
            await stage.open(resume=session)


async def test_calls_that_died_with_their_process_get_one_result_and_are_not_repeated(
    home: Path, workspace: Path
) -> None:
    store = SessionStore(str(home), FakeClock())
    left = store.create(SessionOpened(1, str(workspace), Mode.YOLO, "scripted", "scripted"))
    calls = (
        ToolCall("call_1", "write_file", '{"path": "a", "content": "b"}'),
        ToolCall("call_2", "list_dir", "{}"),
    )
    left.append([TurnStarted(1), MessageAdded(Message("user", (Text("Write"),)))])
    left.append([MessageAdded(Message("assistant", calls), "tool_calls")])
    left.append([CallStarted("call_1", "write_file", calls[0].arguments, (Effect.WRITES,), "mode.yolo")])
    left.close()
    async with harness(home, workspace, [DONE]) as stage:
        await stage.open(resume=left.session)
        events = await stage.turn("Go on", left.session)
        assert ending(events).status == "done"
    found = results([envelope.event for envelope in log(home, left.session)])
    assert [(item.call_id, item.ok, item.error) for item in found] == [
        ("call_1", False, "interrupted"),
        ("call_2", False, "interrupted"),
    ]
    assert "outcome unknown" in found[0].content and "did not run" in found[1].content
    assert not (workspace / "a").exists()
    assert [message["role"] for message in sent(stage)] == ["system", "user", "assistant", "tool", "tool", "user"]


async def test_a_fork_begins_with_everything_its_parent_sent(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [LOOK, DONE, DONE, DONE]) as stage:
        parent = await stage.open()
        await stage.turn("One", parent)
        child = await stage.open(fork=parent)
        assert child != parent
        await stage.turn("In the child", child)
        await stage.turn("In the parent", parent)
        _, last, forked, went_on = stage.provider.requests
        assert forked.startswith(last[:-2]) and went_on.startswith(last[:-2])
        assert b"In the child" not in went_on
        messages = await stage.client.query(GetMessages(child))
        assert [message.text for message in messages if message.role == "user"] == ["One", "In the child"]
    opened = log(home, child)[0].event
    assert isinstance(opened, SessionOpened)
    assert opened.parent == parent and len(opened.parent_sha256) == 64


async def test_two_sessions_in_one_workspace_share_their_whole_first_request(home: Path, git_workspace: Path) -> None:
    (git_workspace / "AGENTS.md").write_text("Use tabs.\n")
    async with harness(home, git_workspace, [DONE, DONE]) as stage:
        await stage.turn("Fix it", await stage.open())
        await stage.turn("Fix it", await stage.open())
        assert stage.provider.requests[0] == stage.provider.requests[1]
    async with harness(home, git_workspace, [DONE]) as again:
        await again.turn("Fix it")
        assert again.provider.requests[0] == stage.provider.requests[0]
    assert "Use tabs." in sent(stage)[0]["content"]
    assert "git branch: main" in sent(stage)[1]["content"]


async def test_changed_instructions_are_told_once_behind_the_next_words(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("Use tabs.\n")
    environ = {"API_KEY": "sk-0123456789abcdef"}
    async with harness(home, workspace, [DONE] * 5, environ) as stage:
        session = await stage.open()
        first = await stage.turn("One", session)
        (workspace / "AGENTS.md").write_text("Use spaces. The key is sk-0123456789abcdef.\n")
        second = await stage.turn("Two", session)
        third = await stage.turn("Three", session)
        (workspace / "AGENTS.md").unlink()
        fourth = await stage.turn("Four", session)
        fifth = await stage.turn("Five", session)
    told = [
        [item.text for item in only(events, ContextAppended) if item.kind == "instructions"]
        for events in (first, second, third, fourth, fifth)
    ]
    assert [len(texts) for texts in told] == [0, 1, 0, 1, 0]
    assert "Use spaces. The key is [redacted API_KEY]." in told[1][0]
    assert "were removed" in told[3][0]
    for before, after in pairwise(stage.provider.requests):
        assert after.startswith(before[:-2])
    assert "Use tabs." in sent(stage)[0]["content"]


async def test_instructions_that_hold_a_secret_are_not_told_again_and_again(home: Path, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("The key is sk-0123456789abcdef.\n")
    async with harness(home, workspace, [DONE, DONE], {"API_KEY": "sk-0123456789abcdef"}) as stage:
        session = await stage.open()
        for words in ("One", "Two"):
            events = await stage.turn(words, session)
            assert [item for item in only(events, ContextAppended) if item.kind == "instructions"] == []
    assert b"sk-0123456789abcdef" not in b"".join(stage.provider.requests)


async def test_a_resume_brings_its_own_mode_and_the_model_is_told(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open(mode=Mode.AGENT)
        await stage.turn("One", session)
    write = {"calls": [{"name": "write_file", "arguments": {"path": "a", "content": "b"}}]}
    async with harness(home, workspace, [write, DONE]) as stage:
        await stage.open(resume=session, mode=Mode.PLAN, authority=Authority.HEADLESS)
        events = await stage.turn("Two", session)
    assert [item.text[:10] for item in only(events, ContextAppended)] == ["Mode: plan"]
    assert results(events)[0].error == "permission_denied"


async def test_a_resume_with_another_model_is_an_edge(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        session = await stage.open(model="small")
        await stage.turn("One", session)
    async with harness(home, workspace, [DONE]) as stage:
        await stage.open(resume=session, model="large")
        await stage.turn("Two", session)
    assert b'"model":"large"' in stage.provider.requests[0]
    events = [envelope.event for envelope in log(home, session)]
    assert only(events, PrefixInvalidated) == [PrefixInvalidated("model", 0)]
    assert request_body(str(home), session, 2) == stage.provider.requests[0]


async def test_an_unknown_provider_leaves_no_trace(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [DONE]) as stage:
        with pytest.raises(Exception, match="no provider 'nowhere'"):
            await stage.open(provider="nowhere")
        assert await stage.client.query(ListSessions()) == []
        session = await stage.open()
        await stage.turn("One", session)
        await stage.client.submit(CloseSession(session))
        before = log(home, session)
        with pytest.raises(Exception, match="no provider 'nowhere'"):
            await stage.open(resume=session, provider="nowhere")
        with pytest.raises(Exception, match="no provider 'nowhere'"):
            await stage.open(fork=session, provider="nowhere")
        assert log(home, session) == before
        assert len(await stage.client.query(ListSessions())) == 1


async def test_a_session_without_a_turn_leaves_nothing_behind(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        await stage.open()
    assert [name for name in os.listdir(home / "sessions") if not name.startswith(".")] == []


async def test_a_session_whose_workspace_is_gone_goes_on_for_a_person_alone(home: Path, tmp_path: Path) -> None:
    space = tmp_path / "space"
    space.mkdir()
    async with harness(home, space, [DONE, DONE]) as stage:
        session = await stage.open()
        await stage.turn("One", session)
        await stage.client.submit(CloseSession(session))
        before = len(log(home, session))
        space.rmdir()
        for fields in ({"resume": session}, {"fork": session}):
            with pytest.raises(SessionError, match=r"space, is gone: it was deleted or moved\. Restore it"):
                await stage.open(**fields)
        assert len(log(home, session)) == before and len(list((home / "sessions").glob("[!.]*"))) == 1
        assert await stage.open(resume=session, authority=Authority.PERSON) == session
        told = only([envelope.event for envelope in log(home, session)[before:]], Notice)
    assert [(notice.level, notice.code) for notice in told] == [("warning", "workspace_gone")]
