"""`codewhale mcp serve` over stdio: what is offered, how calls are decided, conversations, and a clean end."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcpclient import LEGACY, MODERN, over_stdio, said, wired
from support.program import codewhale_program
from support.taskserver import TaskServer, call, serving

READS = {
    "read_file", "list_dir", "project_map", "file_search", "grep_files", "codebase_search", "code_symbols",
    "code_history", "git_status", "git_diff", "git_log", "git_show", "git_blame", "retrieve_tool_result",
}  # fmt: skip
CONVERSATIONS = {"start_conversation", "continue_conversation"}
ASKED = {"command": "touch made.txt && rm made.txt && touch kept.txt"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "a.txt").write_text("hello\n")
    return workspace


@pytest.fixture(scope="module")
def model() -> Iterator[TaskServer]:
    tasks = {
        "hello": [{"text": "Hello to you."}, {"text": "Still here."}],
        "run": [call("exec_shell", **ASKED), {"text": "I tried."}],
        "wait": [{"hold": "never", "text": "late"}],
    }
    with serving(tasks) as server:
        yield server


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_only_reading_is_offered_and_what_is_not_offered_does_not_run(
    tmp_path: Path, place: Path, mode: str
) -> None:
    async with over_stdio(tmp_path, place, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == READS | CONVERSATIONS
        assert all(tools[name].annotations.read_only_hint for name in tools)
        assert said(await client.call_tool("read_file", {"path": "a.txt"})) == "hello\n"
        outside = await client.call_tool("read_file", {"path": "../../etc/passwd"})
        assert outside.is_error and "path_escape" in said(outside)
        for name in ("write_file", "exec_shell", "nothing", "agent_open"):
            with pytest.raises(Exception, match="there is no tool"):
                await client.call_tool(name, {"path": "b.txt", "content": "x", "command": "touch b.txt"})
    assert os.listdir(place) == ["a.txt"]


async def test_calls_that_are_named_are_decided_without_a_person(tmp_path: Path, place: Path) -> None:
    async with over_stdio(tmp_path, place, "--offer", "write_file", "--offer", "exec_shell") as client:
        assert not (await client.call_tool("write_file", {"path": "b.txt", "content": "x"})).is_error
        outside = await client.call_tool("write_file", {"path": "../c.txt", "content": "x"})
        assert outside.is_error and "path_escape" in said(outside)
        denied = await client.call_tool("exec_shell", ASKED)
        assert denied.is_error and "permission_denied" in said(denied)
    assert sorted(os.listdir(place)) == ["a.txt", "b.txt"] and not (tmp_path / "c.txt").exists()


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_what_must_be_asked_is_put_to_the_clients_person(tmp_path: Path, place: Path, mode: str) -> None:
    asked: list[str] = []
    answers: list[dict[str, Any] | None] = [None, {"decision": "deny"}, {"decision": "allow"}]

    def person(message: str) -> dict[str, Any] | None:
        asked.append(message)
        return answers[len(asked) - 1]

    async with over_stdio(tmp_path, place, "--offer", "exec_shell", mode=mode, person=person) as client:
        for _ in range(2):
            denied = await client.call_tool("exec_shell", ASKED)
            assert denied.is_error and "denied" in said(denied) and not (place / "kept.txt").exists()
        allowed = await client.call_tool("exec_shell", ASKED)
        assert not allowed.is_error, said(allowed)
    assert len(asked) == 3 and all(ASKED["command"] in message for message in asked)
    assert (place / "kept.txt").exists()


async def test_a_conversation_is_opened_and_continued_within_its_rights(
    tmp_path: Path, place: Path, model: TaskServer
) -> None:
    model.configure(tmp_path / "state")
    async with over_stdio(tmp_path, place) as client:
        first = await client.call_tool("start_conversation", {"prompt": "hello"})
        session = first.structured_content["session_id"]
        assert (first.structured_content["answer"], first.structured_content["status"]) == ("Hello to you.", "done")
        stranger = await client.call_tool("continue_conversation", {"session_id": "latest", "prompt": "x"})
        assert stranger.is_error and "no conversation" in said(stranger)
        ran = await client.call_tool("start_conversation", {"prompt": "run"})
        assert ran.structured_content["status"] == "denied" and not (place / "kept.txt").exists()
        assert ran.is_error
        empty = await client.call_tool("start_conversation", {"prompt": " "})
        assert empty.is_error and "prompt" in said(empty)
    async with over_stdio(tmp_path, place, mode=MODERN) as client:
        more = await client.call_tool("continue_conversation", {"session_id": session, "prompt": "again"})
        assert more.structured_content and more.structured_content["session_id"] == session, said(more)
        assert more.structured_content["answer"] == "Still here."
    listed = codewhale_program(tmp_path, "sessions", "list", "-w", str(place), "--json")
    assert session in listed.stdout


async def test_a_cancelled_conversation_ends_and_its_session_is_free(
    tmp_path: Path, place: Path, model: TaskServer
) -> None:
    model.configure(tmp_path / "state")
    async with over_stdio(tmp_path, place) as client:
        waiting = asyncio.create_task(client.call_tool("start_conversation", {"prompt": "wait"}))
        logs = tmp_path / "state" / "sessions"
        for _ in range(600):
            if any("turn_started" in log.read_text() for log in logs.glob("*/log.jsonl")):
                break
            await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert said(await client.call_tool("read_file", {"path": "a.txt"})) == "hello\n"
    assert any("interrupted" in log.read_text() for log in logs.glob("*/log.jsonl"))


def test_bad_frames_and_floods_leave_it_serving(tmp_path: Path, place: Path) -> None:
    with wired(tmp_path, place) as wire:
        wire.raw(b"this is no frame\n\xff\xfe\n[]\n" + b"x" * (5 << 20) + b"\n")
        wire.raw(b'{"jsonrpc": "2.0", "id": 7777, "method": "tools/call", "params": {"name": 5}}\n')
        assert wire.answer(7777)["error"]
        numbers = [wire.send("tools/call", {"name": "read_file", "arguments": {"path": "a.txt"}}) for _ in range(100)]
        answers = {}
        assert wire.child.stdout is not None
        while len(answers) < len(numbers):
            frame = json.loads(wire.child.stdout.readline())
            answers[frame.get("id")] = frame
        assert all(answers[number]["result"]["content"][0]["text"] for number in numbers)
        unknown = wire.call("read_file", path="a.txt", nonsense="x" * 100_000)
        assert unknown["result"]["content"] and len(json.dumps(unknown)) < 10_000


@pytest.mark.parametrize("how", ["eof", "term", "int"])
def test_it_ends_clean_and_leaves_no_process(tmp_path: Path, place: Path, how: str) -> None:
    with wired(tmp_path, place, "--offer", "exec_shell", "--mode", "yolo") as wire:
        sleeping = {"name": "exec_shell", "arguments": {"command": "echo $$ > pid; sleep 600", "timeout_ms": 500_000}}
        wire.send("tools/call", sleeping)
        _until(lambda: (place / "pid").exists() and (place / "pid").read_text().strip() != "")
        if how == "eof":
            assert wire.child.stdin is not None
            wire.child.stdin.close()
        else:
            wire.child.send_signal(signal.SIGTERM if how == "term" else signal.SIGINT)
        assert wire.child.wait(60) == 0
        assert wire.child.stdout is not None and wire.child.stderr is not None
        for line in wire.child.stdout:
            json.loads(line)
        assert b"Traceback" not in wire.child.stderr.read()
    _until(lambda: "sleep 600" not in _processes(place))


def _until(true: Any) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to be")


def _processes(place: Path) -> str:
    lines = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and os.path.realpath(entry / "cwd") == str(place):
                lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--offer", "nope"), "there is no tool 'nope'"),
        (("--offer", "agent_open"), "works inside a conversation"),
        (("--http", "127.0.0.1:99999"), "is not [HOST:]PORT"),
        (("--allow-host", "box"), "need --http"),
        (("--mode", "auto"), "invalid choice"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    done = codewhale_program(tmp_path, "mcp", "serve", *arguments)
    assert done.returncode == 2 and why in done.stderr, done.stderr
