"""/skills lists, shows one, is completed by their names, and says what to do where there is none."""

import json
from pathlib import Path

from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.protocol.views import CompleteCommand
from codewhale.testing import harness


async def test_without_skills_it_says_what_one_is(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        session = await agent.open()
        none: CommandOutput = await agent.client.submit(RunCommand(session, "/skills"))
        wrong: CommandOutput = await agent.client.submit(RunCommand(session, "/skills off"))
    assert "SKILL.md" in none.text and not wrong.ok


async def test_one_is_offered_by_name_and_shown(home: Path, workspace: Path) -> None:
    folder = home / "skills" / "deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: deploy\ndescription: Put it online.\n---\nFirst ask.\n")
    (folder / "steps.txt").write_text("1\n")
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        session = await agent.open()
        offered = await agent.client.query(CompleteCommand(session, "/skills dep"))
        shown: CommandOutput = await agent.client.submit(RunCommand(session, "/skills $deploy"))
    assert [(one.value, one.detail) for one in offered] == [("deploy", "Put it online.")]
    assert "First ask." in shown.text and "steps.txt" in shown.text and "description:" not in shown.text


async def test_a_folder_of_the_settings_is_the_last_place(home: Path, workspace: Path) -> None:
    for folder in (home / "skills/deploy", home / "more/deploy", home / "more/only"):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"# In {folder.parent.name}\n")
    (home / "config.toml").write_text('[skills]\nfolder = "~/more"\n')
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        shown: CommandOutput = await agent.client.submit(RunCommand(await agent.open(), "/skills json"))
    found = json.loads(shown.text)
    assert [(one["name"], one["description"]) for one in found["skills"]] == [
        ("deploy", "In skills"), ("only", "In more"),
    ]  # fmt: skip
    assert [one["space"] for one in found["shadowed"]] == ["configured"]
