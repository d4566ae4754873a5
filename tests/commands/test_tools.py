"""/tools shows the array byte for byte as it is sent."""

import json
from pathlib import Path

from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import Harness, harness

SEARCH = {"name": "tool_search_tool_bm25", "arguments": {"query": "jot down a remark for later", "max_results": 1}}


async def run(agent: Harness, session: str, line: str) -> CommandOutput:
    """What the command says."""
    output: CommandOutput = await agent.client.submit(RunCommand(session, line))
    return output


async def test_it_shows_what_the_last_request_carried(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text('[tools]\nprofile = "arcee"\n')
    async with harness(home, workspace, [{"calls": [SEARCH]}, {"text": "Done."}]) as agent:
        session = await agent.open()
        before = (await run(agent, session, "/tools")).text
        await agent.turn("Look.", session)
        shown = (await run(agent, session, "/tools")).text.splitlines()
        view = json.loads((await run(agent, session, "/tools json")).text)
        sent = json.loads(agent.provider.requests[-1])["tools"]
        wrong = await run(agent, session, "/tools all")
    assert before.startswith("10 tools") and "the first request (profile arcee" in before
    assert [row[0] for row in view["tools"]] == [tool["function"]["name"] for tool in sent]
    assert [line.split()[0] for line in shown[1:]] == [row[0] for row in view["tools"]]
    assert view["bytes"] == len(json.dumps(sent, separators=(",", ":"), ensure_ascii=False).encode())
    assert sum(row[1] for row in view["tools"]) + len(sent) + 1 == view["bytes"]
    assert (view["activated"], view["request"]) == (["note"], 2) and shown[-1].endswith("found in this session")
    assert not wrong.ok
