"""What `tools list` and `tools head` say is what a model is sent."""

import json
from pathlib import Path

import pytest

from codewhale.cli.offline.catalog import system_head, tools_head, tools_list
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.modes import Mode
from codewhale.testing import harness


async def test_the_head_is_what_a_request_carries(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "Hello."}]) as stage:
        await stage.turn("Hi")
        body = json.loads(stage.provider.requests[0])
    assert body["tools"] == json.loads(tools_head("openai-chat"))
    assert body["messages"][0]["content"] == system_head(str(home), str(workspace))


def test_the_head_is_sorted_and_the_same_in_every_mode() -> None:
    names = [tool["function"]["name"] for tool in json.loads(tools_head("openai-chat"))]
    assert names == sorted(names)
    for mode in Mode:
        assert [row["name"] for row in tools_list(mode) if row["in_head"]] == names


def test_a_dialect_that_is_not_known_is_named() -> None:
    with pytest.raises(ConfigError, match="smoke-signals"):
        tools_head("smoke-signals")


def test_aliases_stand_under_their_canonical_name() -> None:
    rows = {row["name"]: row for row in tools_list(Mode.AGENT)}
    alias, canonical = rows["todo_write"], rows["checklist_write"]
    assert alias["canonical"] == "checklist_write" and alias["schema"] == canonical["schema"]
    assert (alias["state"], alias["in_head"], alias["bytes"]) == ("deprecated", False, 0)
    assert alias["removal"] and canonical["removal"] is None


@pytest.mark.parametrize(
    ("mode", "name", "approval"),
    [
        (Mode.PLAN, "write_file", "deny"),
        (Mode.PLAN, "read_file", "allow"),
        (Mode.AGENT, "write_file", "allow"),
        (Mode.AGENT, "exec_shell", "ask"),
        (Mode.YOLO, "exec_shell", "allow"),
    ],
)
def test_approval_is_the_verdict_of_policy(mode: Mode, name: str, approval: str) -> None:
    assert {row["name"]: row["approval"] for row in tools_list(mode)}[name] == approval


def test_a_gated_tool_names_its_gate_and_stands_in_no_head() -> None:
    rows = {row["name"]: row for row in tools_list(Mode.AGENT)}
    gated, open_to_all = rows["fim_edit"], rows["edit_file"]
    assert (gated["gate"], gated["in_head"], gated["state"], gated["approval"]) == ("fim", False, "deferred", "ask")
    assert (open_to_all["gate"], open_to_all["in_head"], open_to_all["approval"]) == (None, True, "allow")
    assert "fim_edit" not in tools_head("openai-chat")
