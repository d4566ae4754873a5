"""Long texts: what a command said, read, searched and copied."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import RunCommand
from support.tuirecord import until
from support.tuiscreens import HOSTILE, SESSION, opened, said

LONG = "\n".join(f"line {number} of the report" for number in range(200))


async def test_a_command_is_run_and_read() -> None:
    async with opened("report", {RunCommand: said(LONG)}, "/tokens") as stage:
        await stage.shown("line 0 of", "Report · /tokens")
        assert stage.client.ops == [RunCommand(SESSION, "/tokens")]
        page = stage.screen.page
        await stage.press("down", "j", "up", "k", "pagedown", "space", "pageup")
        assert page.scroll_offset.y > 5
        await stage.press("G")
        await stage.shown("line 199")
        await stage.press("g")
        await stage.shown("line 0 of")
        await stage.press("q")
        assert await stage.done() is None


async def test_it_is_searched() -> None:
    async with opened("report", {RunCommand: said(LONG)}, "/tokens") as stage:
        await stage.press("slash", *"LINE 15")
        await stage.shown("│ LINE 15 ")
        await stage.press("enter")
        await stage.shown("line 15 of")
        await stage.press("n")
        await stage.shown("line 150 of")
        await stage.press("N")
        await stage.shown("line 15 of")
        await stage.press("slash")
        await stage.type("nowhere[red]")
        await stage.press("enter")
        await stage.shown("nowhere[red].")
        await stage.press("slash", "escape")
        await until(stage.pilot, lambda: not stage.screen.has_class("finding"))
        await stage.press("escape")
        assert await stage.done() is None


async def test_n_opens_the_search_where_nothing_is_sought() -> None:
    async with opened("report", {RunCommand: said(LONG)}, "/tokens") as stage:
        await stage.press("n")
        await until(stage.pilot, lambda: stage.screen.has_class("finding"))


async def test_it_is_copied() -> None:
    async with opened("report", {RunCommand: said("one\ntwo")}, "/tokens") as stage:
        await stage.shown("two")
        await stage.press("y")
        await stage.shown("2 lines copied.")
        assert stage.host.clipboard == "one\ntwo"


async def test_failures_and_hostile_texts_are_shown() -> None:
    async with opened("report", {RunCommand: CodeWhaleError("no session")}, "/tokens") as stage:
        await stage.shown("no session")
        await stage.press("n", "escape", "escape")
        assert await stage.done() is None
    async with opened("report", {RunCommand: said(HOSTILE, ok=False)}, HOSTILE) as stage:
        await stage.shown("[bold]x[/]")
        stage.clean()
