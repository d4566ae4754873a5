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


RICH = """---
name: deploy
description: Put it online.
license: MIT
compatibility: Needs ssh
allowed-tools: Bash(git status:*) Bash Bash(*) Read Nonsense
metadata:
  codewhale-tools: read_file Bash(git:*) Nonsense
  codewhale-workflow: fix.star
---
First ask.
"""


def put(home: Path, text: str, where: str = "skills/deploy") -> None:
    """A skill of the person's."""
    (home / where).mkdir(parents=True)
    (home / where / "SKILL.md").write_text(text)


async def test_one_table_says_what_a_skill_reads_restricts_approves_and_may_start(home: Path, workspace: Path) -> None:
    put(home, RICH)
    (home / "skills/deploy/fix.star").write_text("")
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        shown: CommandOutput = await agent.client.submit(RunCommand(await agent.open(), "/skills user:deploy"))
    table, _, text = shown.text.partition("\n\n")
    rows = [line.split(maxsplit=1) for line in table.splitlines()]
    assert text == "First ask." and ["skill", "user:deploy: Put it online."] in rows
    assert "reads         1 file of its folder\n              fix.star\n" in table
    assert "read_file: read_file" in table and "Bash(git:*): exec_shell, exec_shell_wait, exec_shell_cancel" in table
    assert "Nonsense: names no tool\n" in table and "may start     fix.star: registered when workflows exist" in table
    assert "pre-approves  Bash(git status:*): honoured when you name the skill" in table
    assert "Bash: not honoured: names no command" in table and "Bash(*): not honoured: names no command" in table
    assert "Nonsense: not honoured: names no tool" in table
    assert ["needs", "Needs ssh"] in rows and ["license", "MIT"] in rows


async def test_a_skill_and_a_place_are_switched_off_and_on_for_good(home: Path, workspace: Path) -> None:
    put(home, "# Mine\n")
    put(home, "# Theirs\n", ".claude/skills/deploy")
    put(home, "# Other\n", ".claude/skills/other")

    async def say(*lines: str) -> list[CommandOutput]:
        async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
            session = await agent.open()
            return [await agent.client.submit(RunCommand(session, line)) for line in lines]

    off, shown, body = await say("/skills off user-claude:deploy", "/skills", "/skills deploy")
    assert off.ok and "/skills on user-claude:deploy" in off.text
    assert "off: user-claude:deploy  (~/.claude/skills/deploy/SKILL.md)" in shown.text and "user:deploy" in body.text
    shown, place, both, wrong = await say(
        "/skills", "/skills off ~/.claude/skills", "/skills json", "/skills on deploy"
    )
    assert "off: user-claude:deploy" in shown.text and place.ok  # in another process, too
    assert [one["name"] for one in json.loads(both.text)["skills"]] == ["deploy"]
    assert sorted(one["name"] for one in json.loads(both.text)["off"]) == ["deploy", "other"]
    assert not wrong.ok and "user-claude:deploy" in wrong.text
    on, again, shown = await say("/skills on ~/.claude/skills", "/skills on user-claude:deploy", "/skills")
    assert on.ok and again.ok and "off:" not in shown.text
    (unknown,) = await say("/skills off nothing-such")
    assert not unknown.ok and "Unknown skill or place" in unknown.text
    (nearest,) = await say("/skills off deploy")
    assert nearest.ok
    (none,) = await say("/skills deploy")
    assert not none.ok
    on, body = await say("/skills on user:deploy", "/skills deploy")  # as a message that names it says
    assert on.ok and body.ok


async def test_a_file_of_an_unknown_skill_says_why_it_is_left_out(home: Path, workspace: Path) -> None:
    put(home, "no heading", "skills/broken")
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        shown: CommandOutput = await agent.client.submit(RunCommand(await agent.open(), "/skills broken"))
    assert not shown.ok and "it has no description" in shown.text


async def test_a_rule_is_shown_like_a_skill(home: Path, workspace: Path) -> None:
    (home / "rules").mkdir()
    (home / "rules/python.md").write_text("---\nactivation: glob\nglobs: '*.py'\n---\nType every function.\n")
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        shown: CommandOutput = await agent.client.submit(RunCommand(await agent.open(), "/skills python"))
    assert "applies       when a file that matches" in shown.text and shown.text.endswith("Type every function.")


async def test_what_can_be_named_switched_off_and_on_is_offered(home: Path, workspace: Path) -> None:
    put(home, RICH)
    put(home, "# Other\n", "skills/other")
    async with harness(home, workspace, [{"text": "-"}], {"HOME": str(home)}) as agent:
        session = await agent.open()

        async def offered(line: str) -> list[str]:
            return [one.value for one in await agent.client.query(CompleteCommand(session, line))]

        assert await offered("/skill ") == ["deploy", "other", "off"]
        assert await offered("/skill off ") == [] and await offered("/skills on ") == []
        for line in ("/skill deploy", "/skills off other"):
            await agent.client.submit(RunCommand(session, line))
        assert await offered("/skill off ") == ["deploy"]
        assert await offered("/skills on ") == ["user:other"] and await offered("/skills off ") == ["deploy"]
        assert (await offered("/skills on"))[0] == "on"
