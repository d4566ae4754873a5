"""Going back to a former message through the front door: the conversation, the files, or both; undone,
resumed, forked."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished, CompactionUndone, Event, PrefixInvalidated, Rewound
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CloseSession, CommandOutput, GetMessages, OpenSession, RunCommand
from codewhale.protocol.views import GetContext, GetTools, ListFormer, PreviewRewind
from codewhale.session.projection import request_body
from codewhale.testing import Harness, harness
from support.machine import MAKES_FILES
from support.scenes import only


def write(path: str, content: str) -> list[dict[str, Any]]:
    return [{"calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]}, {"text": "Done."}]


async def run(agent: Harness, session: str, line: str) -> CommandOutput:
    output: CommandOutput = await agent.client.submit(RunCommand(session, line))
    return output


def messages(request: bytes) -> list[Any]:
    found: list[Any] = json.loads(request)["messages"]
    return found


def said(request: bytes) -> str:
    return json.dumps(messages(request))


def events(agent: Harness, session: str) -> list[Event]:
    return [envelope.event for envelope in agent.app.engine.session(session).log.read()]


async def reopen(agent: Harness, session: str, **more: Any) -> str:
    await agent.client.submit(CloseSession(session))
    opening = OpenSession(str(agent.workspace), Mode.YOLO, Authority.AUTO, resume=session, **more)
    return await agent.client.submit(opening)


@MAKES_FILES
async def test_conversation_and_files_go_back_and_the_requests_begin_alike(home: Path, git_workspace: Path) -> None:
    script = [*write("a", "1\n"), *write("a", "2\n"), *write("b", "3\n"), {"text": "Again."}, {"text": "More."}]
    async with harness(home, git_workspace, script) as agent:
        session = await agent.open()
        for text in ("One", "Two", "Three"):
            await agent.turn(text, session)
        assert [row.text for row in await agent.client.query(ListFormer(session))] == ["One", "Two", "Three"]
        view = await agent.client.query(PreviewRewind(session, 2))
        assert view.messages == ("Two", "Three")
        assert sorted(view.files) == ["removed: b", "reverted: a"] and view.diffs
        output = await run(agent, session, "/rewind 2")
        assert output.ok and output.draft == "Two" and "Undone in 2 files." in output.text
        assert (git_workspace / "a").read_text() == "1\n" and not (git_workspace / "b").exists()
        before = len(agent.provider.requests)
        await agent.turn("Instead", session)
        request, first = agent.provider.requests[before], agent.provider.requests[1]
        assert messages(request)[: len(messages(first))] == messages(first)
        assert "Two" not in said(request) and "Three" not in said(request) and "Instead" in said(request)
        assert [row.text for row in await agent.client.query(ListFormer(session))] == ["One", "Instead"]
        assert [edge.reason for edge in only(events(agent, session), PrefixInvalidated)] == ["rewind"]
        texts = [message.text for message in await agent.client.query(GetMessages(session)) if message.role == "user"]
        assert texts == ["One", "Instead"]
        # Nothing of it is lost, and a later process sends the same.
        assert "Three" in json.dumps([str(event) for event in events(agent, session)])
        session = await reopen(agent, session)
        await agent.turn("On", session)
        last = agent.provider.requests[-1]
        assert messages(last)[: len(messages(request))] == messages(request) and "Three" not in said(last)
        log = events(agent, session)
        for number, sent in enumerate(agent.provider.requests, 1):
            assert request_body(log, number, lambda image: b"") == sent


async def test_what_the_model_was_told_since_is_told_again(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "A."}, {"text": "B."}, {"text": "C."}, {"text": "D."}]) as agent:
        session = await agent.open(mode=Mode.AGENT)
        await agent.turn("One", session)
        await run(agent, session, "/mode plan")
        await agent.turn("Two", session)
        await run(agent, session, "/rewind 2")
        await agent.turn("Instead", session)
        assert said(agent.provider.requests[-1]).count("Mode: plan") == 1
        await run(agent, session, "/rewind 3")
        await run(agent, session, "/rewind back")
        await agent.turn("Again", session)
        assert said(agent.provider.requests[-1]).count("Mode: plan") == 1


@MAKES_FILES
async def test_a_rewind_is_undone_whole_until_something_is_said(home: Path, git_workspace: Path) -> None:
    script = [*write("a", "1\n"), *write("a", "2\n"), {"text": "On."}, {"text": "Off."}]
    async with harness(home, git_workspace, script) as agent:
        session = await agent.open()
        await agent.turn("One", session)
        await agent.turn("Two", session)
        await run(agent, session, "/rewind 2")
        assert (await run(agent, session, "/rewind 1")).draft == "One"
        assert not (git_workspace / "a").exists()
        assert (await run(agent, session, "/rewind back")).ok
        assert (git_workspace / "a").read_text() == "1\n"
        session = await reopen(agent, session)
        output = await run(agent, session, "/rewind back")
        assert output.ok
        former = agent.provider.requests[-1]
        await agent.turn("Three", session)
        request = agent.provider.requests[-1]
        assert messages(request)[: len(messages(former))] == messages(former)
        assert [row.text for row in await agent.client.query(ListFormer(session))] == ["One", "Two", "Three"]
        await run(agent, session, "/rewind 3 conversation")
        await agent.turn("Four", session)
        refused = await run(agent, session, "/rewind back")
        assert not refused.ok and "no rewind since the last message" in refused.text
        assert [event.back for event in only(events(agent, session), Rewound)] == [False, False, True, True, False]


@MAKES_FILES
async def test_the_parts_go_alone(home: Path, git_workspace: Path) -> None:
    script = [*write("a", "1\n"), {"text": "Seen."}, *write("a", "2\n"), {"text": "Known."}]
    async with harness(home, git_workspace, script) as agent:
        session = await agent.open()
        await agent.turn("One", session)
        output = await run(agent, session, "/rewind 1 conversation")
        assert output.draft == "One" and (git_workspace / "a").read_text() == "1\n"
        await agent.turn("Look", session)
        assert "files changed since then stay" in said(agent.provider.requests[-1])
        await agent.turn("Write", session)
        output = await run(agent, session, "/rewind 3 files")
        assert output.ok and not output.draft and (git_workspace / "a").read_text() == "1\n"
        await agent.turn("Go on", session)
        last = said(agent.provider.requests[-1])
        assert "Write" in last and "The user undid file changes" in last


@MAKES_FILES
async def test_what_the_person_changed_since_stays_and_is_named(home: Path, git_workspace: Path) -> None:
    script = [*write("a", "one\ntwo\n"), *write("b", "1\n")]
    async with harness(home, git_workspace, script) as agent:
        session = await agent.open(authority=Authority.PERSON)
        await agent.turn("One", session)
        await agent.turn("Two", session)
        (git_workspace / "b").write_text("mine\n")
        preview = await run(agent, session, "/rewind 1")
        assert preview.ok and "Nothing has changed yet." in preview.text
        assert "goes: One" in preview.text and "goes: Two" in preview.text and "not undone: b" in preview.text
        assert (git_workspace / "a").exists() and len(await agent.client.query(ListFormer(session))) == 2
        output = await run(agent, session, "/rewind 1 both yes")
        assert output.ok and "not undone: b" in output.text
        assert (git_workspace / "b").read_text() == "mine\n" and not (git_workspace / "a").exists()


async def test_a_rewind_past_a_compaction_says_the_whole_conversation_again(home: Path, workspace: Path) -> None:
    texts = [{"text": f"Answer {number}. " + "words " * 400} for number in range(6)]
    script = [*texts[:4], {"text": "A summary."}, *texts[4:]]
    async with harness(home, workspace, script) as agent:
        session = await agent.open()
        for number in range(4):
            await agent.turn(f"Message {number}", session)
        whole = agent.provider.requests[-1]
        assert (await run(agent, session, "/compact")).ok
        await agent.turn("After", session)
        assert (await run(agent, session, "/rewind 4")).ok
        assert (await agent.client.query(GetContext(session))).compactions == 0
        assert not (await run(agent, session, "/compact undo")).ok and not only(
            events(agent, session), CompactionUndone
        )
        await agent.turn("Message 3", session)
        assert messages(agent.provider.requests[-1]) == messages(whole)


async def test_a_fork_from_a_message_shares_the_bytes_before_it(home: Path, workspace: Path) -> None:
    script = [{"text": "First."}, {"text": "Second."}, {"text": "Third."}, {"text": "Fourth."}]
    async with harness(home, workspace, script) as agent:
        parent = await agent.open()
        await agent.turn("One", parent)
        await agent.turn("Two", parent)
        output = await run(agent, parent, "/fork 2")
        assert output.ok and output.draft == "Two" and output.session not in ("", parent)
        await agent.turn("Other", output.session)
        second, forked = agent.provider.requests[1], agent.provider.requests[2]
        assert messages(forked)[:-1] == messages(second)[:-1]
        assert forked.startswith(second[: second.index(b'"Two')])
        rows = {row.id: row for row in agent.app.parts.sessions.summaries()}
        assert rows[output.session].parent == parent
        assert [row.text for row in await agent.client.query(ListFormer(parent))] == ["One", "Two"]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("/rewind 9", "has number 9"),
        ("/rewind -1", "Use /rewind"),
        ("/rewind \u0661", "Use /rewind"),
        ("/rewind 1 everything", "Use /rewind"),
        ("/rewind 99999999999999999999", "Use /rewind"),
        ("/rewind back", "Nothing to undo"),
        ("/fork 9", "has number 9"),
        ("/fork x\x1b[2J", "has number"),
    ],
)
async def test_what_cannot_be_gone_back_to_is_named_and_changes_nothing(
    home: Path, workspace: Path, line: str, wrong: str
) -> None:
    async with harness(home, workspace, [{"text": "First."}]) as agent:
        session = await agent.open()
        await agent.turn("One", session)
        output = await run(agent, session, line)
        assert not output.ok and wrong in output.text and "\x1b" not in output.text
        assert not only(events(agent, session), Rewound)


def tools_of(request: bytes) -> list[str]:
    return [wire["function"]["name"] for wire in json.loads(request)["tools"]]


async def checklist(agent: Harness, session: str) -> list[str]:
    """What the tool answers when it is asked for the list."""
    sent = len(agent.provider.requests)
    await agent.turn("Which?", session)
    answer = messages(agent.provider.requests[sent + 1])[-1]["content"]
    items = json.loads(answer.partition("\n")[2])["items"]
    return [item["content"] for item in items]


async def test_checklist_and_found_tools_follow(home: Path, workspace: Path) -> None:
    found = {"name": "tool_search_tool_bm25", "arguments": {"query": "jot down a remark for later", "max_results": 1}}
    added = [{"name": "checklist_add", "arguments": {"content": name}} for name in ("first", "second")]
    asked = [{"calls": [{"name": "checklist_list", "arguments": {}}]}, {"text": "Those."}]
    done = {"text": "Done."}
    script = [{"calls": added[:1]}, done, {"calls": [found, added[1]]}, done, *asked, *asked, *asked]
    async with harness(home, workspace, script) as agent:
        session = await agent.open()
        await agent.turn("One", session)
        await agent.turn("Two", session)
        assert "note" in tools_of(agent.provider.requests[-1])
        assert (await run(agent, session, "/rewind 2")).ok
        assert "note" not in (await agent.client.query(GetTools(session))).activated
        assert await checklist(agent, session) == ["first"]
        first, again = agent.provider.requests[1], agent.provider.requests[4]
        assert tools_of(again) == tools_of(first) and messages(again)[: len(messages(first))] == messages(first)
        session = await reopen(agent, session)
        assert await checklist(agent, session) == ["first"]
        log = events(agent, session)
        for number, sent in enumerate(agent.provider.requests, 1):
            assert request_body(log, number, lambda image: b"") == sent


async def test_checklist_and_found_tools_come_back_when_the_rewind_is_undone(home: Path, workspace: Path) -> None:
    found = {"name": "tool_search_tool_bm25", "arguments": {"query": "jot down a remark for later", "max_results": 1}}
    calls = [found, {"name": "checklist_add", "arguments": {"content": "first"}}]
    asked = [{"calls": [{"name": "checklist_list", "arguments": {}}]}, {"text": "Those."}]
    async with harness(home, workspace, [{"text": "Hello."}, {"calls": calls}, {"text": "Done."}, *asked]) as agent:
        session = await agent.open()
        await agent.turn("Zero", session)
        await agent.turn("One", session)
        for line in ("/rewind 2", "/rewind 1", "/rewind back", "/rewind back"):
            assert (await run(agent, session, line)).ok
        assert await checklist(agent, session) == ["first"]
        assert tools_of(agent.provider.requests[3]) == tools_of(agent.provider.requests[2])


@MAKES_FILES
@pytest.mark.parametrize("line", ["/rewind 2", "/undo 1 yes"])
async def test_a_file_that_was_taken_back_is_written_again_at_once(home: Path, git_workspace: Path, line: str) -> None:
    (git_workspace / "old").write_text("old\n")
    edited = {"calls": [{"name": "edit_file", "arguments": {"path": "old", "search": "old", "replace": "new"}}]}
    read = {"calls": [{"name": "read_file", "arguments": {"path": "old"}}]}
    script = [read, {"text": "Read."}, *write("new", "1\n"), *write("new", "2\n")]
    if line.startswith("/rewind"):
        script[2:2] = [edited]
        script.insert(-1, edited)
    async with harness(home, git_workspace, script) as agent:
        session = await agent.open()
        await agent.turn("Look", session)
        await agent.turn("One", session)
        assert (await run(agent, session, line)).ok and not (git_workspace / "new").exists()
        done = only(await agent.turn("Again", session), CallFinished)
        assert [call.content for call in done if not call.ok] == []
        assert (git_workspace / "new").read_text() == "2\n"


@MAKES_FILES
async def test_what_stays_in_added_folders_is_said(home: Path, git_workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    script = [*write("a", "1\n"), *write(str(tmp_path / "beside" / "b"), "1\n")]
    async with harness(home, git_workspace, script) as agent:
        session = await agent.open(folders=(str(tmp_path / "beside"),))
        await agent.turn("One", session)
        await agent.turn("Two", session)
        for line in ("/rewind 1 both preview", "/rewind 1"):
            output = await run(agent, session, line)
            assert output.ok and f"Changes in added folders stay: {tmp_path}/beside." in output.text
        assert not (git_workspace / "a").exists() and (tmp_path / "beside" / "b").read_text() == "1\n"


@MAKES_FILES
@pytest.mark.parametrize(
    "line",
    [
        "echo new > new && mkdir -p far/away && echo x > far/away/x",
        "rm file kept/file",
        "mv file other && mv kept moved",
        "mv kept moved && echo more >> moved/file",
        "chmod 755 file && chmod 600 run.sh",
        "rm file && ln -s run.sh file",
        "ln -sfn run.sh link",
        "rm link && echo file > link",
        "rm -r kept && ln -s /tmp kept",
        "rm file && mkdir file && echo x > file/x",
        "printf '\\000\\001' > file && : > run.sh",
    ],
)
async def test_whatever_a_command_did_to_files_is_taken_back_and_done_again(
    home: Path, git_workspace: Path, line: str
) -> None:
    (git_workspace / "kept").mkdir()
    for name in ("file", "run.sh", "kept/file", "kept/empty"):
        (git_workspace / name).write_text(name * (name != "kept/empty"))
    (git_workspace / "link").symlink_to("file")
    script = [{"text": "Hello."}]
    for command in ("sleep 0.2", line):
        script += [{"calls": [{"name": "exec_shell", "arguments": {"command": command}}]}, {"text": "Done."}]
    async with harness(home, git_workspace, script) as agent:
        session = await agent.open()
        for text in ("Hello", "Wait", "Do it"):
            before = standing_in(git_workspace) if text == "Do it" else {}
            await agent.turn(text, session)
        after = standing_in(git_workspace)
        assert after != before
        assert (await run(agent, session, "/rewind 3")).ok and standing_in(git_workspace) == before
        assert (await run(agent, session, "/rewind back")).ok and standing_in(git_workspace) == after


def standing_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Each file and link below a folder: its mode, and its bytes or where it leads."""
    paths = [path for path in folder.rglob("*") if ".git" not in path.parts and (path.is_symlink() or path.is_file())]
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes(),
        )
        for path in paths
    }


@MAKES_FILES
async def test_nothing_is_taken_back_where_that_cannot_be_written_down(home: Path, git_workspace: Path) -> None:
    async with harness(home, git_workspace, [*write("a", "1\n"), *write("b", "2\n")]) as agent:
        session = await agent.open()
        await agent.turn("One", session)
        await agent.turn("Two", session)
        assert "removed: b" in (await run(agent, session, "/rewind 2 both preview")).text
        (journal,) = (folder for folder in (home / "snapshots").iterdir() if folder.is_dir())
        (journal / "room").mkdir()
        output = await run(agent, session, "/rewind 1")
        assert not output.ok and "no room" in output.text
        assert (git_workspace / "a").exists() and (git_workspace / "b").exists()
        assert len(await agent.client.query(ListFormer(session))) == 2
        (journal / "room").rmdir()
        assert (await run(agent, session, "/rewind 1")).ok and not (git_workspace / "a").exists()
        assert (await run(agent, session, "/rewind back")).ok and (git_workspace / "b").read_text() == "2\n"


@MAKES_FILES
async def test_a_job_that_may_still_write_is_said_and_what_it_wrote_meanwhile_stays_or_is_named(
    home: Path, git_workspace: Path
) -> None:
    line = "while true; do echo line >> log; sleep 0.02; done"
    start = {"calls": [{"name": "exec_shell", "arguments": {"command": line, "background": True}}]}
    look = {"calls": [{"name": "exec_shell", "arguments": {"command": "until test -s log; do sleep 0.02; done"}}]}
    async with harness(home, git_workspace, [start, {"text": "Runs."}, look, {"text": "Writes."}]) as agent:
        session = await agent.open()
        await agent.turn("Start", session)
        await agent.turn("Look", session)
        output = await run(agent, session, "/rewind 1")
        assert output.ok and "1 background job may still change files" in output.text
        assert any(f"{done}: log" in output.text for done in ("removed", "restored")) or "log: " in output.text
        assert len(await agent.client.query(ListFormer(session))) == 0
