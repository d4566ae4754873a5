"""The /effort command through the client."""

from pathlib import Path

from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import Harness, harness


async def run(agent: Harness, session: str, line: str) -> CommandOutput:
    output: CommandOutput = await agent.client.submit(RunCommand(session, line))
    return output


async def test_it_shows_and_changes(tmp_path: Path) -> None:
    async with harness(tmp_path / "home", tmp_path, []) as agent:
        session = await agent.open()
        assert (await run(agent, session, "/effort")).text == "effort: default"
        assert (await run(agent, session, "/effort HIGH")).text == "effort: high"
        assert (await run(agent, session, "/effort")).text == "effort: high"
        assert (await run(agent, session, "/effort default")).text == "effort: default"
        refused = await run(agent, session, "/effort enormous")
        assert not refused.ok and "off, low, medium, high, max, auto" in refused.text
