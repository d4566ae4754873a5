"""The tools for resources and prompts where no server is named: each says so, and how one is added."""

from pathlib import Path

from codewhale.testing import harness
from support.scenes import results


async def test_without_servers_each_says_so(tmp_path: Path, workspace: Path) -> None:
    calls = [
        {"name": "list_mcp_resources", "arguments": {}},
        {"name": "list_mcp_resource_templates", "arguments": {"server": "notes"}},
        {"name": "mcp_read_resource", "arguments": {"server": "notes", "uri": "notes://all"}},
        {"name": "mcp_get_prompt", "arguments": {"server": "notes", "name": "summary"}},
    ]
    async with harness(tmp_path / "state", workspace, [{"calls": calls}, {"text": "Done."}]) as stage:
        found = results(await stage.turn("Go"))
    assert [one.error for one in found] == ["not_available"] * 4
    assert all("/mcp add" in one.content for one in found)
