"""The differences in the workspace."""

from codewhale.display.palette import load_palette
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.views import GetDiff
from codewhale.tui.paint import Styles
from codewhale.tui.screens.reports import MOST_FILES, changed_lines
from support.tuiscreens import HOSTILE, SESSION, opened

DIFF = DiffBlock("src/a.py", "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n-old = 1\n+new = 2\n same = 3\n")


async def test_files_with_what_changed_in_them() -> None:
    async with opened("diff", {GetDiff: (DIFF, DiffBlock("b.md", "@@ -0,0 +1 @@\n+new\n"))}) as stage:
        text = await stage.shown("2 files, +2 -1", "src/a.py  +1 -1", "1 - old = 1", "1 + new = 2", "b.md  +1 -0")
        assert "--- a/src" not in text
        assert stage.client.asked == [GetDiff(SESSION, "")]


async def test_one_path_alone_nothing_and_a_failure() -> None:
    async with opened("diff", {GetDiff: ()}, "src/a.py") as stage:
        await stage.shown("Changes · src/a.py", "No changes since the last commit.")
        assert stage.client.asked == [GetDiff(SESSION, "src/a.py")]
    async with opened("diff", {GetDiff: CodeWhaleError("git is not there")}) as stage:
        await stage.shown("git is not there")


async def test_hostile_diffs_are_only_text() -> None:
    block = DiffBlock(HOSTILE, f"@@ -1 +1 @@\n-{HOSTILE}\n+字{HOSTILE}\n")
    async with opened("diff", {GetDiff: (block,)}) as stage:
        await stage.shown("[bold]x[/]")
        stage.clean()


def test_there_is_a_bound() -> None:
    blocks = [DiffBlock(f"f{number}", "@@ -1 +1 @@\n-a\n+b\n") for number in range(MOST_FILES + 50)]
    assert len(changed_lines(blocks)) <= MOST_FILES * 4
    long = DiffBlock("long", "@@ -0,0 +1,90000 @@\n" + "+x\n" * 90_000)
    assert len(changed_lines([long, DIFF])) < 20_010


def test_every_style_of_a_diff_can_be_drawn() -> None:
    styles = Styles(load_palette("dark", ""))
    drawn = {style for line in changed_lines([DIFF]) for _, style in line}
    assert any("on:added_background" in style for style in drawn)
    assert all(styles.style(style).bgcolor is not None for style in drawn)
