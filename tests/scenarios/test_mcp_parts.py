"""Results of every kind and size, and questions to the model, through the front door: what is shown, kept, left out and
paid."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codewhale.mcp.asking import MOST_SAMPLES
from codewhale.protocol.events import RequestSent, TurnFinished
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import Limits, RunCommand
from codewhale.testing import harness
from support.mcpworld import SERVERS, McpWorld
from support.scenes import results

DONE = {"text": "Done."}


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": f"mcp_parts_{name}", "arguments": arguments}]}


@pytest.fixture
def world(tmp_path: Path) -> McpWorld:
    return McpWorld(tmp_path)


async def found(world: McpWorld, script: list[dict[str, Any]], limits: Limits | None = None, **entry: Any) -> Any:
    """The events of a turn in which a tool is shown and then called as the script says."""
    world.name(parts={"command": sys.executable, "args": [str(SERVERS / "parts.py")], "connect_timeout": 120, **entry})
    world.approve("parts")
    first = {"calls": [{"name": "tool_search_tool_regex", "arguments": {"query": "^mcp_parts_"}}]}
    async with harness(world.home, world.work, [first, *script, DONE]) as stage:
        session = await stage.open(mode=Mode.YOLO, limits=limits or Limits())
        shown = await stage.client.submit(RunCommand(session, "/mcp reload parts"))
        assert "ready" in shown.text, shown.text
        return await stage.turn("Go", session)


async def test_parts_of_every_kind_are_shown_kept_or_left_out(world: McpWorld) -> None:
    parts = [
        {"kind": "image", "bytes": "png", "mime": "image/png"},
        {"kind": "image", "bytes": "script", "mime": "image/png"},
        {"kind": "image", "bytes": "png", "mime": "image/png", "size": 6 << 20},
        {"kind": "image", "raw": "%%%", "mime": "image/png"},
        {"kind": "audio", "bytes": "wav", "mime": "audio/wav", "size": 3 << 20},
        {"kind": "resource", "bytes": "bin", "mime": "x/<|im_start|>", "size": 1 << 20},
        {"kind": "document", "size": 200_000}, {"kind": "text", "size": 300_000}, {"kind": "text", "size": 10},
        {"kind": "hologram", "raw": "AAAA"}, {"as it is": 7}, {"as it is": {"type": "image", "data": 1}},
        {"as it is": {"type": "resource", "resource": None}}, {"as it is": {"type": ["text"]}},
    ]  # fmt: skip
    events = await found(world, [calling("give", parts=parts)])
    got = results(events)[1]
    lines = got.content.splitlines()
    assert got.ok and [image.bytes for image in got.images] == [20] and len(got.content) < 30_000
    assert lines[2] == "picture, image/png, 20 bytes: it is attached"
    kept = (
        "image, image/png, 20 bytes, kept as art_", "image, image/png, 6,291,456 bytes, kept as art_",
        "audio, audio/wav, 3,145,728 bytes, kept as art_",
        "made:///one: resource, x/<\\|im_start|>, 1,048,576 bytes, kept as art_", "made:///two: yyyy",
        "[... this is the beginning of 200,000 bytes; retrieve_tool_result", "zzzz",
        "[... this is the beginning of 300,000 bytes; retrieve_tool_result", "z" * 10, "</mcp_result>",
        "left out: 5 parts that are none of the protocol's are left out", "left out: image image/png: it is no base64",
    )  # fmt: skip
    assert [line[: len(begin)] for line, begin in zip(lines[3:], kept, strict=True)] == list(kept)


async def test_pictures_are_as_many_as_a_model_is_sent(world: McpWorld) -> None:
    picture = {"kind": "image", "bytes": "png", "mime": "image/png"}
    got = results(await found(world, [calling("give", parts=[picture] * 12)]))[1]
    assert len(got.images) == got.content.count("it is attached") == 8 and got.content.count("kept as art_") == 4


def asked(events: Sequence[Any]) -> list[RequestSent]:
    """The questions that went to the model beside the conversation."""
    return [event for event in events if isinstance(event, RequestSent) and event.purpose == "question"]


async def test_sampling_is_refused_unless_it_is_allowed(world: McpWorld) -> None:
    events = await found(world, [calling("ask")])
    assert "Sampling not supported" in results(events)[1].content and asked(events) == []


async def test_sampling_is_bounded_in_number_and_size(world: McpWorld) -> None:
    answers = [{"text": f"yes {n}"} for n in range(MOST_SAMPLES)]
    often = calling("ask", times=MOST_SAMPLES + 2, tokens=1_000_000)
    events = await found(world, [often, *answers, calling("ask", size=300_000)], sampling=True)
    _, many, large = results(events)
    rows = [json.loads(line) for line in many.content.splitlines()[2:-1]]
    assert [row["content"]["text"] for row in rows[:MOST_SAMPLES]] == [f"yes {n}" for n in range(MOST_SAMPLES)]
    assert [row["message"] for row in rows[MOST_SAMPLES:]] == [
        "one call may ask the model 8 times; make another call"
    ] * 2
    assert "at most 200,000 are sent" in large.content
    assert [one.max_tokens for one in asked(events)] == [4096] * MOST_SAMPLES


async def test_sampling_is_paid_from_the_budget_of_the_turn(world: McpWorld) -> None:
    reply = {"text": "yes", "usage": {"input": 90_000, "output": 10}}
    events = await found(world, [calling("ask", times=4), *[reply] * 4], Limits(tokens=150_000), sampling=True)
    rows = [json.loads(line) for line in results(events)[1].content.splitlines()[2:-1]]
    assert len(asked(events)) == 2 and ["role" in row for row in rows] == [True, True, False, False]
    assert all("the budget has no room for this model call" in row["message"] for row in rows[2:])
    end = events[-1]
    assert isinstance(end, TurnFinished) and end.status == "budget"
    assert end.result is not None and end.result["usage"]["input"] > 180_000
