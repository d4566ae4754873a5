"""Servers of others through the front door: a real program, approved, found, called, changed; and what it may not do."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import ApprovalAsked, QuestionAsked, TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Answer, RunCommand, SendMessage
from codewhale.protocol.views import ListServers
from codewhale.testing import Harness, harness
from support.mcpworld import McpWorld
from support.scenes import answered, only, results

DONE = {"text": "Done."}


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


SEARCH = calling("tool_search_tool_bm25", query="add a note to the notebook")


@pytest.fixture
def world(tmp_path: Path) -> McpWorld:
    found = McpWorld(tmp_path)
    found.name(notes=found.entry())
    return found


async def test_found_called_and_kept(world: McpWorld) -> None:
    world.approve("notes")
    script = [SEARCH, calling("mcp_notes_add_note", text="milk"), calling("mcp_notes_count_words", text="a b c"), DONE]
    async with harness(world.home, world.work, script) as stage:
        found, noted, counted = results(await stage.turn("Go"))
    assert "mcp_notes_add_note" in found.metadata["tool_references"]
    assert noted.ok and "noted: milk" in noted.content and noted.origin == "mcp"
    assert '<mcp_result server="notes" of="add_note">' in noted.content
    assert counted.ok and counted.metadata["structured"] == {"words": 3}
    assert world.calls == ["started", "milk"]
    # The rows of last time are found without a start, and marked as such.
    async with harness(world.home, world.work, [SEARCH, DONE]) as stage:
        (again,) = results(await stage.turn("Go"))
    row = json.loads(again.content)["tool_references"][0]
    assert row["tool_name"] == "mcp_notes_add_note" and "last time" in row["note"]
    assert world.calls == ["started", "milk"]


async def test_nothing_starts_that_is_not_approved(world: McpWorld) -> None:
    async with harness(world.home, world.work, [SEARCH, calling("list_mcp_resources", server="notes"), DONE]) as stage:
        session = await stage.open()
        found, listed = results(await stage.turn("Go", session))
        shown = await stage.client.submit(RunCommand(session, "/mcp"))
    assert found.metadata["tool_references"] and not any("notes" in name for name in found.metadata["tool_references"])
    assert not listed.ok and "has not been approved" in listed.content and "/mcp approve notes" in listed.content
    assert "unapproved" in shown.text and world.calls == []
