"""/remember: what is appended where, what is refused, and what comes back."""

import os
from pathlib import Path

import pytest

from codewhale.commands.base import CommandContext, CommandRegistry
from codewhale.commands.remember import LIMIT, LONGEST, RememberCommand


class World:
    """A workspace, a home, and the command over them."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        family = RememberCommand(str(self.home))
        self.commands = CommandRegistry({"/remember": "remember"}, lambda: {"remember": lambda: family})

    async def say(self, args: str) -> tuple[bool, str]:
        """Whether it was done, and the words."""
        output = await self.commands.run(f"/remember {args}", CommandContext("s1", str(self.work)))
        return output.ok, output.text


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_line_is_appended_and_taken_back_byte_for_byte(world: World) -> None:
    file = world.work / "AGENTS.md"
    for before in ("# Rules\n\n- one", "# Rules\n", ""):
        file.write_text(before)
        ok, text = await world.say("workspace run the tests with make check")
        assert ok and "Added to AGENTS.md" in text
        gap = "" if before.endswith("\n") or not before else "\n"
        assert file.read_text() == f"{before}{gap}- run the tests with make check\n"
        assert (await world.say("undo"))[0]
        assert (file.read_text() if before else file.exists()) == (before or False)
    assert await world.say("undo") == (False, "Nothing was added in this session.")


async def test_a_persons_own_file_may_be_a_link_and_the_workspaces_may_not(world: World, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.md").write_text("- mine\n")
    os.symlink(tmp_path / "dotfiles.md", world.home / "AGENTS.md")
    os.symlink(tmp_path / "dotfiles.md", world.work / "AGENTS.md")
    assert (await world.say("own speak plainly"))[0]
    assert (tmp_path / "dotfiles.md").read_text() == "- mine\n- speak plainly\n"
    ok, text = await world.say("workspace x")
    assert not ok and text.startswith("Nothing was changed: AGENTS.md")
    assert (tmp_path / "dotfiles.md").read_text() == "- mine\n- speak plainly\n"


async def test_what_was_edited_since_stays(world: World) -> None:
    await world.say("workspace first")
    (world.work / "AGENTS.md").write_text("- first\n- mine\n")
    ok, text = await world.say("undo")
    assert not ok and "has changed since" in text
    assert (world.work / "AGENTS.md").read_text() == "- first\n- mine\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("", "Use /remember"),
        ("workspace", "Use /remember"),
        ("workspace   ", "Use /remember"),
        ("everywhere x", "Use /remember"),
        ("own " + "x" * (LONGEST + 1), "Shorten it"),
    ],
)
async def test_what_is_no_line_is_refused(world: World, args: str, said: str) -> None:
    ok, text = await world.say(args)
    assert not ok and said in text and os.listdir(world.work) == os.listdir(world.home) == []


async def test_a_file_that_is_full_a_folder_or_a_pipe_is_left_alone(world: World) -> None:
    file = world.work / "AGENTS.md"
    file.write_text("x" * LIMIT)
    ok, text = await world.say("workspace one more")
    assert not ok and "32 KiB" in text and file.stat().st_size == LIMIT
    file.unlink()
    os.mkfifo(file)
    assert not (await world.say("workspace x"))[0]
    file.unlink()
    file.mkdir()
    assert not (await world.say("workspace x"))[0]


async def test_characters_nobody_sees_do_not_get_in(world: World) -> None:
    assert (await world.say("workspace a\x1b[2Jb\u202ec\u200b"))[0]
    text = (world.work / "AGENTS.md").read_text()
    assert text.isprintable() is False and "\x1b" not in text and "\u202e" not in text and text.count("\n") == 1
