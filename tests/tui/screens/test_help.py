"""Help and the keys."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.views import ListCommands
from codewhale.tui.keys import ACTIONS
from codewhale.tui.screens.context import RunLine
from support.tuiscreens import HOSTILE, command, opened

ROWS = (command(), command("/undo", "[N]", "Undo."))


async def test_help_tells_of_typing_keys_and_commands() -> None:
    async with opened("help", {ListCommands: ROWS}, size=(100, 48)) as stage:
        text = await stage.shown("Prefixes", "a file in the workspace", "Keys", "ctrl+k")
        flat = " ".join(text.split())
        assert "/mode Show the mode." in flat and "/undo Undo." in flat and text.index("Changes") < text.index("/undo")
        await stage.type("mode")
        await stage.shown("/mode [plan|agent|yolo]")
        await stage.press("enter")
        assert await stage.done() == RunLine("/mode")


async def test_help_of_one_command() -> None:
    async with opened("help", {ListCommands: ROWS}, "undo") as stage:
        text = await stage.shown("/undo [N]", "Undo.")
        assert "/mode" not in text
    async with opened("help", {ListCommands: ROWS}, "nothing") as stage:
        await stage.shown("Prefixes")


async def test_help_without_the_commands_is_help() -> None:
    async with opened("help", {ListCommands: CodeWhaleError("not yet open")}) as stage:
        await stage.shown("Keys", "not yet open")
    async with opened("help", {ListCommands: (command(HOSTILE, HOSTILE, HOSTILE),)}, size=(100, 48)) as stage:
        await stage.shown("[bold]x[/]")
        stage.clean()


async def test_keys_of_ones_own_are_told() -> None:
    async with opened("help", {ListCommands: ()}, keys={"app.palette": "ctrl+y"}) as stage:
        await stage.shown("ctrl+y")


async def test_every_key_stands_on_the_keys_screen() -> None:
    async with opened("keys", keys={"composer.send": "ctrl+m"}, size=(100, 30)) as stage:
        await stage.shown("Everywhere", "ctrl+k")
        assert [item.key for item in stage.screen.list.items] == [row.id for row in ACTIONS]
        await stage.type("composer.send")
        await stage.shown("In the composer", "* send", "ctrl+m")
        await stage.press("enter")
        await stage.shown('"composer.send" = "ctrl+y"')
        await stage.press("escape")
        assert await stage.done() is None


async def test_the_keys_screen_speaks_chinese() -> None:
    async with opened("keys", language="zh-Hans") as stage:
        await stage.shown("全局", "按键")
