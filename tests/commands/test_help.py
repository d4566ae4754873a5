"""/help lists what there is, from the registry itself."""

from pathlib import Path

import pytest

from codewhale.app.families import COMMANDS
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import harness


async def shown(home: Path, workspace: Path, line: str) -> CommandOutput:
    """What /help says in a fresh session."""
    async with harness(home, workspace, []) as stage:
        output: CommandOutput = await stage.client.submit(RunCommand(await stage.open(), line))
    return output


async def test_every_command_has_one_line(home: Path, workspace: Path) -> None:
    lines = (await shown(home, workspace, "/help")).text.splitlines()
    assert [line.split()[0] for line in lines] == sorted(COMMANDS)
    assert any(line.startswith("/mode [plan|agent|yolo]") and "Show the mode" in line for line in lines)
    assert len({len(line) - len(line.split("  ")[-1].lstrip()) for line in lines}) == 1


@pytest.mark.parametrize("line", ["/help /mode", "/help mode"])
async def test_one_command_is_shown_alone(home: Path, workspace: Path, line: str) -> None:
    output = await shown(home, workspace, line)
    assert output.text == "/mode [plan|agent|yolo]  Show the mode, or change it."


async def test_help_about_nothing_says_so(home: Path, workspace: Path) -> None:
    output = await shown(home, workspace, "/help frobnicate")
    assert output.misused and output.text.startswith("Unknown command '/frobnicate'. The commands are: /")
