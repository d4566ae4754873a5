"""An answer may hold any number of calls: a bounded number of them run, and each of the others is told why not."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallStarted, Notice
from codewhale.testing import harness
from support.scenes import ending, only, results

COUNT = 300


def reading(number: int) -> dict[str, Any]:
    """A call that reads a file of its own."""
    return {"name": "read_file", "arguments": {"path": f"f{number}.txt"}}


@pytest.fixture
def files(workspace: Path) -> Path:
    """A workspace with a file for each call."""
    for number in range(COUNT):
        (workspace / f"f{number}.txt").write_text(f"file {number}\n")
    return workspace


async def test_at_most_64_calls_of_one_answer_run_and_the_rest_are_answered(home: Path, files: Path) -> None:
    script = [{"calls": [reading(number) for number in range(COUNT)]}, {"text": "Enough."}]
    async with harness(home, files, script) as stage:
        events = await stage.turn("Read everything")
        sent = json.loads(stage.provider.requests[-1])["messages"]
    assert len(only(events, CallStarted)) == 64
    found = results(events)
    assert [item.ok for item in found] == [True] * 64 + [False] * (COUNT - 64)
    assert all("At most 64 calls of one answer run" in item.content for item in found[64:])
    assert "300" in found[-1].content and found[-1].error == "not_available"
    calls = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert len(calls) == COUNT and [m["tool_call_id"] for m in sent if m["role"] == "tool"] == calls
    assert any("300 calls in one answer" in item.text for item in only(events, Notice))
    assert ending(events).status == "done"


async def test_the_model_can_send_the_rest_in_its_next_answer(home: Path, files: Path) -> None:
    script = [{"calls": [reading(n) for n in range(70)]}, {"calls": [reading(n) for n in range(64, 70)]}, {"text": "."}]
    async with harness(home, files, script) as stage:
        events = await stage.turn("Read everything")
    assert [item.ok for item in results(events)] == [True] * 64 + [False] * 6 + [True] * 6


async def test_calls_written_as_text_are_bounded_alike(home: Path, files: Path) -> None:
    text = "\n".join(f"<tool_call>\n{json.dumps(reading(number))}\n</tool_call>" for number in range(100))
    async with harness(home, files, [{"text": text}, {"text": "Enough."}]) as stage:
        events = await stage.turn("Read everything")
        asked = len(stage.provider.requests)
    assert len(only(events, CallStarted)) <= 64
    assert asked == 2  # what did not run is said, one way or the other


async def test_a_container_of_calls_runs_no_more_than_single_calls_would(home: Path, files: Path) -> None:
    uses = [{"recipient_name": "functions.read_file", "parameters": reading(n)["arguments"]} for n in range(COUNT)]
    one = {"name": "multi_tool_use.parallel", "arguments": {"tool_uses": uses}}
    async with harness(home, files, [{"calls": [one] * 2}, {"text": "Enough."}]) as stage:
        events = await stage.turn("Read everything")
    assert len(only(events, CallStarted)) <= 64 and len(results(events)) == 2


async def test_ten_thousand_broken_calls_are_answered_without_being_looked_into(home: Path, files: Path) -> None:
    broken = {"name": "reed_fiel", "arguments": '{"pth": "f1.txt", '}
    script = [{"calls": [reading(n) for n in range(64)] + [broken] * 9_936}, {"text": "Enough."}]
    async with harness(home, files, script) as stage:
        events = await stage.turn("Read everything")
    assert len(results(events)) == 10_000 and len(only(events, CallStarted)) == 64
    assert ending(events).status == "done"
