"""What programs and listings say of sub-agents: the real program, its model on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import MessageAdded, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import harness
from support.program import codewhale_program
from support.taskserver import TaskServer, call, serving

NAMES = [f"scout{number}" for number in range(5)]
OPENING = [("agent_open", {"prompt": f"Look{name} at a.txt", "role": "explore", "name": name}) for name in NAMES]
TASKS = {
    "Start": [{"calls": OPENING}, {"text": "Opened."}],
    **{
        f"Look{name}": [call("read_file", path="a.txt"), {"text": f"SUMMARY: {name} found one\n\nCHANGES: none"}]
        for name in NAMES
    },
}


@pytest.fixture
def model(tmp_path: Path) -> Iterator[TaskServer]:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "a.txt").write_text("one\n")
    with serving(TASKS) as server:
        server.configure(tmp_path / "state", '[prices."m"]\nmiss = 1.0\nhit = 1.0\noutput = 1.0\n')
        yield server


def program(folder: Path, *words: str) -> Any:
    return codewhale_program(folder, *words, cwd=folder / "shop")


def test_five_results_are_printed_though_the_turn_ended_at_once(tmp_path: Path, model: TaskServer) -> None:
    done = program(tmp_path, "exec", "Start")
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    lines = done.stderr.splitlines()
    for name in NAMES:
        begins = lines.index(f"> agent {name} (explore): Look{name} at a.txt")
        ends = next(at for at, line in enumerate(lines) if line.startswith(f"< agent {name} completed (2 steps, "))
        assert begins < ends and lines[ends].endswith(f" tokens): {name} found one")


def test_the_result_object_holds_the_children_and_counts_their_tokens(tmp_path: Path, model: TaskServer) -> None:
    done = program(tmp_path, "exec", "--output-format", "json", "Start")
    result = json.loads(done.stdout)
    assert [one["name"] for one in result["children"]] == NAMES
    for one in result["children"]:
        assert (one["role"], one["status"], one["steps"], one["tokens"]) == ("explore", "completed", 2, 220)
        assert one["answer"] == f"SUMMARY: {one['name']} found one\n\nCHANGES: none"
    # 110 tokens a call: two of each child, and those of the parent.
    usage = result["usage"]
    assert usage["output"] % 10 == 0 and usage["input"] == usage["output"] * 10 >= 1_200


def test_lines_of_the_stream_tell_of_the_children(tmp_path: Path, model: TaskServer) -> None:
    done = program(tmp_path, "exec", "--output-format", "stream-json", "Start")
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    names = {event["child"]: event["name"] for event in events if event["type"] == "child_opened"}
    ends = {names[event["child"]]: event["summary"] for event in events if event["type"] == "child_closed"}
    assert ends == {name: f"{name} found one" for name in NAMES}
    assert events[-1]["type"] == "turn_finished"


def test_listings_leave_children_out_until_they_are_asked_for(tmp_path: Path, model: TaskServer) -> None:
    result = json.loads(program(tmp_path, "exec", "--output-format", "json", "Start").stdout)
    owner, child = result["session_id"], result["children"][0]["session_id"]
    (row,) = program(tmp_path, "sessions", "list").stdout.splitlines()
    assert row.startswith(owner) and row.endswith("Start")
    first, *below = program(tmp_path, "sessions", "list", "--children").stdout.splitlines()
    assert first == row and len(below) == 5
    (scout,) = [line for line in below if line.startswith(f"  {child}")]  # those of one second stand in any order
    assert f"[agent scout0 (explore) of {owner}]" in scout
    shown = program(tmp_path, "sessions", "show", child).stdout
    assert "[user] Lookscout0 at a.txt" in shown and "[assistant] SUMMARY: scout0 found one" in shown
    whole = program(tmp_path, "sessions", "show", owner).stdout
    assert whole.count("[for the model] <subagent_done>") == 5 and "[user] <subagent_done>" not in whole
    assert program(tmp_path, "exec", "--continue", "Again").returncode == 0
    (row,) = program(tmp_path, "sessions", "list").stdout.splitlines()
    assert row.startswith(owner) and " 2 turns" in row
    for form in ("md", "html", "json"):
        text = program(tmp_path, "sessions", "export", owner, "--format", form).stdout
        assert "scout0 found one" in text and "## You\n\n```\n<subagent" not in text
    entries = json.loads(text)["entries"]
    assert [one["text"] for one in entries if one["role"] == "user"] == ["Start", "Again"]
    assert program(tmp_path, "sessions", "rm", owner).returncode == 0
    assert program(tmp_path, "sessions", "list", "--children").stdout.startswith("no sessions of this folder")


async def test_a_retry_and_commands_after_a_report_are_about_what_the_person_said(home: Path, workspace: Path) -> None:
    def model(request: dict[str, Any]) -> dict[str, Any]:
        if any("Look" in str(one["content"])[:20] for one in request["messages"] if one["role"] == "user"):
            return {"text": "SUMMARY: seen"}
        calls = [{"name": "agent_open", "arguments": {"prompt": "Look", "role": "explore", "name": "scout"}}]
        return {"text": "Read."} if any(one["role"] == "tool" for one in request["messages"]) else {"calls": calls}

    async with harness(home, workspace, [model] * 12) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)

        async def person(line: str) -> CommandOutput:
            output: CommandOutput = await here.client.submit(RunCommand(session, line))
            return output

        await here.turn("Start here", session)
        turns = 0
        async for envelope in here.client.events(session):
            turns += isinstance(envelope.event, TurnFinished)
            if turns == 2:  # the report has begun a turn of its own
                break
        assert "scout (explore)  completed" in (await person("/agents")).text
        assert "SUMMARY: seen" in (await person("/agents show scout")).text
        assert (await person("/agents stop scout")).text == "scout has already ended: completed."
        assert (await person("/agents stop nobody")).misused and (await person("/agents tell scout")).misused
        assert "Start here" in (await person("/retry")).text
        log = here.app.engine.session(session).log
        messages = [one.event for one in log.read() if isinstance(one.event, MessageAdded) and not one.event.child]
        said = [event.message.text for event in messages if event.message.role == "user"]
        assert said == ["Start here", "Start here"]
