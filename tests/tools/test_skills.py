"""load_skill and /skills through a session, and what the model is told of skills that come, change and go."""

import itertools
from pathlib import Path

from codewhale.protocol.events import CallFinished, ContextAppended
from codewhale.protocol.ops import CommandOutput, RunCommand
from codewhale.testing import harness
from support.scenes import only, results

SKILL = "---\nname: house\ndescription: How release notes are written here.\n---\nBegin with the verb.\n"


def person(home: Path) -> dict[str, str]:
    """The environment of a person who has one skill."""
    folder = home / "person/.agents/skills/house"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "example.md").write_text("Add a thing.\n")
    return {"HOME": str(home / "person")}


def load(name: str) -> dict[str, object]:
    return {"name": "load_skill", "arguments": {"name": name}}


async def test_a_listed_skill_is_loaded(home: Path, workspace: Path) -> None:
    script = [{"calls": [load("house"), load("$house")]}, {"calls": [load("hose"), load("")]}, {"text": "Done."}]
    async with harness(home, workspace, script, person(home)) as agent:
        events = await agent.turn("Write the notes.")
        first = agent.provider.requests[0].decode()
    one, two, wrong, empty = results(events)
    assert one.ok and two.content == one.content
    assert one.content.startswith("# Skill: house\n\nHow release notes are written here.\n\nSource: ")
    assert one.content.endswith("Begin with the verb.\n\nFiles beside it:\n- example.md")
    assert one.metadata["skill_name"] == "house" and one.metadata["companion_files"] == ["example.md"]
    assert wrong.error == "invalid_input" and 'load_skill {"name":"house"}' in wrong.content
    assert not empty.ok
    assert "- house: How release notes are written here. (~/.agents/skills/house/SKILL.md)" in first


async def test_a_file_of_a_skill_is_read_wherever_the_skill_stands(home: Path, workspace: Path) -> None:
    environ = person(home)
    folder = home / "person/.agents/skills/house"
    (home / "key.md").write_text("secret")
    (folder / "link.md").symlink_to(home / "key.md")
    (folder / "image.bin").write_bytes(b"\0\1")
    files = ["example.md", "./example.md", "link.md", "image.bin", "../../../../key.md", "exmple.md"]
    calls = [{"name": "load_skill", "arguments": {"name": "house", "file": file}} for file in files]
    async with harness(home, workspace, [{"calls": calls}, {"text": "Done."}], environ) as agent:
        read, again, *refused = results(await agent.turn("Write the notes."))
    assert read.content == again.content == "Add a thing.\n"
    assert [one.error for one in refused] == ["invalid_input"] * 4 and "secret" not in "".join(map(str, refused))
    assert 'load_skill {"name":"house","file":"example.md"}' in refused[-1].content


async def test_a_change_of_skills_is_one_appended_update(home: Path, workspace: Path) -> None:
    environ = person(home)
    folder = home / "person/.agents/skills"
    async with harness(home, workspace, [{"text": "Yes."}] * 4, environ) as agent:
        session = await agent.open()
        events = list(await agent.turn("One", session))
        (folder / "slides").mkdir()
        (folder / "slides/SKILL.md").write_text("# Making slides\n")
        events += await agent.turn("Two", session)
        events += await agent.turn("Three", session)
        for name in ("house/example.md", "house/SKILL.md", "slides/SKILL.md"):
            (folder / name).unlink()
        events += await agent.turn("Four", session)
        sent = [request.decode() for request in agent.provider.requests]
    updates = [event.text for event in only(events, ContextAppended) if event.kind == "skills"]
    assert len(updates) == 2 and "- slides: Making slides" in updates[0] and "were removed" in updates[1]
    assert all(later.startswith(earlier[:-200]) for earlier, later in itertools.pairwise(sent))


async def test_without_skills_nothing_is_said_of_them(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, [{"calls": [load("house")]}, {"text": "No."}], {"HOME": str(home)}) as agent:
        (result,) = only(await agent.turn("Hi"), CallFinished)
        assert "<skills>" not in agent.provider.requests[0].decode()
    assert result.error == "invalid_input" and "There are no skills" in result.content


async def test_the_command_lists_them_and_what_is_left_out(home: Path, workspace: Path) -> None:
    environ = person(home)
    (workspace / "skills/theirs").mkdir(parents=True)
    (workspace / "skills/theirs/SKILL.md").write_text(SKILL.replace("house", "theirs"))
    async with harness(home, workspace, [{"text": "-"}], environ) as agent:
        shown: CommandOutput = await agent.client.submit(RunCommand(await agent.open(), "/skills"))
    mine, theirs = shown.text.splitlines()
    assert mine.startswith("house ") and mine.endswith("(~/.agents/skills/house/SKILL.md)")
    assert theirs.startswith("left out: skills/theirs/SKILL.md: not trusted")
