"""The list that all pickers use, on the session picker."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import ListSessions
from codewhale.protocol.views import PreviewSession
from codewhale.tui.screens.context import Resume
from support.tuirecord import until
from support.tuiscreens import opened, preview, session

MANY = {
    ListSessions: tuple(session(number) for number in range(1, 41)),
    PreviewSession: lambda query: preview(session(int(query.id[2:]))),
}


async def test_arrows_and_pages_move_and_enter_takes() -> None:
    async with opened("sessions", MANY) as stage:
        rows = stage.screen.list
        assert rows.current.key == "s-0001"
        await stage.press("down", "down", "up")
        assert rows.current.key == "s-0002"
        await stage.press("pagedown")
        far = int(rows.current.key[2:])
        assert far > 5 and rows.current.label in stage.text
        await stage.press("pageup")
        assert rows.current.key == "s-0002"
        await stage.press("up", "up")
        assert rows.current.key == "s-0040" and "crane 40" in stage.text
        await stage.press("down", "enter")
        assert await stage.done() == Resume("s-0001")


async def test_letters_filter_and_the_best_is_taken() -> None:
    async with opened("sessions", MANY) as stage:
        await stage.press(*"crane 31")
        assert stage.screen.list.items[0].key == "s-0031"
        await stage.press("enter")
        assert await stage.done() == Resume("s-0031")


async def test_nothing_fits_is_said_and_taken_back() -> None:
    async with opened("sessions", MANY) as stage:
        await stage.type("zzzz")
        await stage.shown("No matching sessions.")
        await stage.press("enter", "up", "down", "pagedown", "shift+down")
        await stage.type("")
        await until(stage.pilot, lambda: len(stage.screen.list.items) == 40)
        assert "No matching sessions." not in stage.text


async def test_a_preview_follows_the_cursor() -> None:
    async with opened("sessions", MANY) as stage:
        await stage.shown("Please look at s-0001", "It is **done**.")
        await stage.press("down")
        await stage.shown("Please look at s-0002")


async def test_the_preview_scrolls_and_stands_beside_where_there_is_room() -> None:
    def long(query: PreviewSession) -> object:
        return preview(session(1)).__class__(session(1), tuple(("user", f"line {n}") for n in range(60)))

    async with opened("sessions", MANY | {PreviewSession: long}, size=(140, 30)) as stage:
        await stage.shown("line 0")
        assert stage.screen.has_class("wide")
        await stage.press("shift+down")
        await until(stage.pilot, lambda: "line 0 " not in stage.text + " " and stage.screen.page.scroll_offset.y > 0)
        await stage.press("shift+up")
        await until(stage.pilot, lambda: stage.screen.page.scroll_offset.y == 0)
        await stage.pilot.resize_terminal(80, 24)
        await until(stage.pilot, lambda: not stage.screen.has_class("wide"))


async def test_rows_that_come_while_it_closes_are_too_late() -> None:
    async with opened("sessions", MANY) as stage:
        before = list(stage.screen.list.items)
        await stage.screen.query_one("#sought").remove()
        await stage.screen.load()
        assert list(stage.screen.list.items) == before


async def test_a_failure_is_said_and_can_be_tried_again() -> None:
    broken: list[Exception] = [CodeWhaleError("the disk is\x1b[2J gone")]

    def rows(query: ListSessions) -> object:
        if broken:
            raise broken[0]
        return (session(7),)

    async with opened("sessions", MANY | {ListSessions: rows}) as stage:
        await stage.shown("the disk is\\x1b[2J gone")
        await stage.press("a", "enter", "backspace")
        broken.clear()
        await stage.press("f5")
        await stage.shown("crane 7")
        assert "the disk is" not in stage.text
        await stage.press("escape")
        assert await stage.done() is None


async def test_an_empty_list_is_said() -> None:
    async with opened("sessions", {ListSessions: ()}) as stage:
        await stage.shown("No sessions yet.")
        await stage.press("enter", "down", "pageup", "alt+f", "ctrl+c")
        assert await stage.done() is None


async def test_keys_of_ones_own_are_shown() -> None:
    async with opened("sessions", MANY, keys={"chooser.other": "ctrl+y"}) as stage:
        await stage.shown("ctrl+y fork")


async def test_it_can_be_painted_anew() -> None:
    async with opened("sessions", MANY) as stage:
        stage.screen.repaint(stage.host.palette)
        await stage.shown("crane 1", "Sessions")
