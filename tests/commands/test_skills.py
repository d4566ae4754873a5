"""/skills says what to do where there is none."""

from pathlib import Path

from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import harness


async def test_without_skills_it_says_what_one_is(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        session = await agent.open()
        none: CommandOutput = await agent.client.submit(RunCommand(session, "/skills"))
        wrong: CommandOutput = await agent.client.submit(RunCommand(session, "/skills off"))
    assert "SKILL.md" in none.text and not wrong.ok
