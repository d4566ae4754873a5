"""Taking back: what would happen is seen before it does."""

from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import RunCommand
from codewhale.protocol.views import PreviewUndo, UndoView
from codewhale.tui.screens.context import OpenScreen, ShowLine
from support.machine import MAKES_FILES
from support.tuirecord import until
from support.tuiscreens import HOSTILE, SESSION, opened, said

TURNS = ((1, "turn 7 (edit_file): a.py"), (2, "turn 5 (write_file): b.py"), (3, "turn 2 (exec_shell): c.py"))
DIFF = DiffBlock("a.py", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-new\n+old\n")


def view(query: PreviewUndo) -> UndoView:
    files = ("reverted: a.py", "removed: b.py", "restored: c.py")[: query.turns]
    return UndoView(TURNS, files, ("not undone: d.py, line 3: it was changed since",), (DIFF,))


DONE = said("Taken back in 1 file.\nrestored: a.py\n/restore back redoes it.")


async def test_it_shows_what_would_be_taken_back_and_does_it_on_yes() -> None:
    async with opened("undo", {PreviewUndo: view, RunCommand: DONE}) as stage:
        text = await stage.shown("the last turn", "turn 7 (edit_file): a.py", "1 file would change", "reverted: a.py")
        assert "not undone: d.py, line 3" in text and "- new" in text and "+ old" in text and "y undo" in text
        assert stage.client.ops == []
        await stage.press("ctrl+y")
        outcome = await stage.done()
        assert outcome == ShowLine("Taken back in 1 file. restored: a.py /restore back redoes it.")
        assert stage.client.ops == [RunCommand(SESSION, "/undo 1 yes")]


@MAKES_FILES
async def test_more_and_fewer_turns() -> None:
    async with opened("undo", {PreviewUndo: view, RunCommand: DONE}) as stage:
        await stage.press("right")
        await stage.shown("the last 2 turns", "removed: b.py", "turn 5")
        await stage.press("plus")
        await stage.shown("the last 3 turns")
        await stage.press("right")
        await stage.shown("the last 3 turns")
        await stage.press("left")
        await stage.shown("the last 2 turns")
        await stage.press("down", "up", "pagedown", "pageup", "ctrl+y")
        await stage.done()
        assert stage.client.ops == [RunCommand(SESSION, "/undo 2 yes")]


async def test_no_leaves_everything() -> None:
    for key in ("ctrl+c", "escape"):
        async with opened("undo", {PreviewUndo: view}, "2") as stage:
            await stage.shown("the last 2 turns")
            await stage.press(key)
            assert await stage.done() is None and stage.client.ops == []


async def test_nothing_to_take_back_takes_no_yes() -> None:
    async with opened("undo", {PreviewUndo: UndoView(())}) as stage:
        text = await stage.shown("No turn of this session changed a file.")
        assert "y undo" not in text
        await stage.press("ctrl+y", "right", "left", "escape")
        assert await stage.done() is None and stage.client.ops == []


async def test_why_it_cannot_be_is_said() -> None:
    async with opened("undo", {PreviewUndo: UndoView((), why="There is no room for snapshots.")}) as stage:
        await stage.shown("There is no room for snapshots.")
        await stage.press("ctrl+y")
        assert stage.client.ops == []


async def test_a_refusal_is_said_and_the_screen_stays() -> None:
    async with opened("undo", {PreviewUndo: view, RunCommand: said("A turn is running.", ok=False)}) as stage:
        await stage.press("ctrl+y")
        await stage.shown("A turn is running.", "reverted: a.py")
    async with opened("undo", {PreviewUndo: view, RunCommand: CodeWhaleError("the disk is full")}) as stage:
        await stage.press("ctrl+y")
        await stage.shown("the disk is full")
        await stage.press("escape")
        assert await stage.done() is None


async def test_a_query_that_fails_is_said() -> None:
    async with opened("undo", {PreviewUndo: CodeWhaleError("no git here")}) as stage:
        await stage.shown("no git here")
        await stage.press("ctrl+y", "escape")
        assert await stage.done() is None and stage.client.ops == []


async def test_what_was_undone_is_brought_back() -> None:
    answers = {"preview": said("restored: a.py\nNothing is done yet."), "yes": said("Taken back in 1 file.")}

    async with opened("undo", {RunCommand: lambda op: answers[op.line.split()[-1]]}, "back") as stage:
        await stage.shown("redo the last undone change", "restored: a.py", "y redo")
        await stage.press("right", "ctrl+y")
        assert await stage.done() == ShowLine("Taken back in 1 file.")
        assert [op.line for op in stage.client.ops] == ["/restore back preview", "/restore back yes"]


async def test_nothing_to_bring_back() -> None:
    async with opened("undo", {RunCommand: said("The last thing done here was no undo.", ok=False)}, "back") as stage:
        await stage.shown("The last thing done here was no undo.")
        await stage.press("ctrl+y")
        assert len(stage.client.ops) == 1


async def test_restore_lists_the_turns() -> None:
    async with opened("restore", {PreviewUndo: view}) as stage:
        await stage.shown("1 · turn 7 (edit_file): a.py", "2 · turn 5", "redo  redo the last undone change")
        await stage.press("down", "enter")
        assert await stage.done() == OpenScreen("undo", "2")
    async with opened("restore", {PreviewUndo: UndoView(())}) as stage:
        await until(stage.pilot, lambda: stage.screen.list.current is not None)
        await stage.press("enter")
        assert await stage.done() == OpenScreen("undo", "back")


async def test_hostile_names_are_only_text() -> None:
    hostile = UndoView(((1, HOSTILE),), (HOSTILE,), (HOSTILE,), (DiffBlock(HOSTILE, f"@@ -1 +1 @@\n-{HOSTILE}\n+b\n"),))
    async with opened("undo", {PreviewUndo: hostile}, size=(100, 40)) as stage:
        await stage.shown("[bold]x[/]")
        stage.clean()
