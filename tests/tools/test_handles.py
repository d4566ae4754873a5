"""Kept values, read back in a turn."""

import json
from pathlib import Path
from typing import Any

from codewhale.protocol.events import CallFinished, Event
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession
from codewhale.testing import harness
from support.recursive import Call, evaluated, rounds

OPEN: Call = ("rlm_open", {"name": "s", "content": "one\ntwo\nthree\n"})


def read(handle: str, **projection: Any) -> Call:
    return "handle_read", {"handle": handle, **projection}


def answers(*calls: Call) -> list[dict[str, Any]]:
    return [*({"calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls), {"text": "ok"}]


def results(events: list[Event]) -> list[dict[str, Any]]:
    return [json.loads(event.content) for event in events if isinstance(event, CallFinished)]


async def test_values_are_read_by_id_and_by_name_also_after_their_session(home: Path, workspace: Path) -> None:
    calls = [
        OPEN,
        evaluated("finalize({'items': [{'n': n, 'text': 'x' * 100} for n in range(500)]})"),
        evaluated("finalize('second')\nprint('y' * 5000)"),
        ("rlm_close", {"name": "s"}),
        read("s/final_0", jsonpath="$.items[499].n"),
        read("s/final_1", slice={"start": 0, "end": 3}),
        read("s/final_0", count=True),
        read("s/stdout_0", range={"start": 1, "end": 1}, max_chars=10),
    ]
    found, _, _ = await rounds(home, workspace, calls)
    final = found[1]["final"]
    assert "final_value" not in found[1] and final["type"] == "dict"
    assert found[4]["matches"] == [499] and found[4]["handle"] == f"{final['session_id']}/{final['name']}"
    assert found[5]["content"] == "sec" and found[6]["json_type"] == "dict"
    assert found[7]["content"] == "y" * 10 and found[7]["truncated"]


async def test_without_a_projection_a_value_says_how_it_is_read_and_each_way_works(home: Path, workspace: Path) -> None:
    calls = [OPEN, evaluated("finalize([{'a': 1}])"), read("s/final_0")]
    said = (await rounds(home, workspace, calls))[0][-1]
    examples = [read("s/final_0", **way["example"]) for way in said["projections"]]
    found, _, _ = await rounds(home, workspace, [*calls[:2], *examples])
    assert [one["projection"] for one in found[2:]] == ["slice", "range", "count", "jsonpath"]
    assert found[-1]["matches"] == [{"a": 1}]


async def test_values_stand_in_a_resumed_conversation_and_in_no_other(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, answers(OPEN, evaluated("finalize([1, 2, 3])"))) as stage:
        session = await stage.open(authority=Authority.PERSON)
        (_, made) = results(await stage.turn("Go", session))
    handle = f"{made['final']['session_id']}/final_0"
    model = [*answers(read(handle, jsonpath="$[1]")), *answers(read(handle, count=True))]
    async with harness(home, workspace, model) as stage:
        again = await stage.client.submit(
            OpenSession(str(workspace), resume=session, mode=Mode.YOLO, authority=Authority.PERSON)
        )
        (found,) = results(await stage.turn("Go on", again))
        other = [event for event in await stage.turn("Go") if isinstance(event, CallFinished)]
    assert found["matches"] == [2]
    assert not other[0].ok and "has kept no value" in other[0].content


async def test_what_a_sub_agent_did_is_read_by_the_handle_of_its_transcript(home: Path, git_workspace: Path) -> None:
    (git_workspace / "a.txt").write_text("the needle\n")

    def play(request: dict[str, Any]) -> dict[str, Any]:
        """The sub-agent reads a file; its parent opens it, waits for it and reads its transcript, all in one turn."""
        seen = [one["content"] for one in request["messages"] if one["role"] == "tool"]
        steps: list[Call] = [("read_file", {"path": "a.txt"})]
        if any("Go on" in str(one["content"]) for one in request["messages"] if one["role"] == "user"):
            handle = json.loads(seen[0])["transcript_handle"] if seen else {}
            asked = read(f"{handle.get('session_id')}/{handle.get('name')}", slice={"start": 0})
            steps = [("agent_open", {"prompt": "Look", "name": "scout"}), ("agent_eval", {"name": "scout"}), asked]
        return answers(*steps)[len(seen)]

    async with harness(home, git_workspace, play) as stage:
        session = await stage.open(mode=Mode.YOLO, authority=Authority.PERSON)
        opened, ended, said = results(await stage.turn("Go on", session))
    handle = opened["transcript_handle"]
    assert handle["kind"] == "var_handle" and "transcript_handle" in json.dumps(ended)
    entries = [json.loads(line) for line in said["content"].splitlines()]
    assert any("the needle" in entry.get("text", "") for entry in entries if entry["role"] == "tool")
