"""A page of lines, and the few lines that take no more room than they need."""

from codewhale.tui.widgets import MOST_COLUMNS, MOST_LINES, Page, TagLine
from support.tuirecord import hosted, screen_text, until


async def test_lines_are_wrapped_and_wrapped_again() -> None:
    async with hosted(Page, (40, 10)) as (host, pilot):
        page = host.panel
        page.show([(("word " * 20, "text"),), (("last", "bold accent"),)])
        await until(pilot, lambda: "last" in screen_text(host))
        assert len(screen_text(host).split("last")[0].splitlines()) == 3
        await pilot.resize_terminal(20, 5)
        await until(pilot, lambda: page.below > 0 and "last" not in screen_text(host))
        page.show([(("x", "text"),)] * 50, end=True)
        await until(pilot, page.at_end)
        page.repaint(host.palette)


async def test_what_is_sought_is_marked_round_the_ends() -> None:
    async with hosted(Page, (40, 10)) as (host, pilot):
        page = host.panel
        page.show([((f"line {number}", "text"),) for number in range(100)])
        await pilot.pause()
        assert page.seek("LINE 5", 1) and page.seek("line 5", 1) and page.seek("line 5", -1)
        await until(pilot, lambda: "line 5\n" in screen_text(host) + "\n")
        assert page.seek("line 5", -1)
        await until(pilot, lambda: "line 59" in screen_text(host))
        assert not page.seek("none", 1)
        page.show(())
        assert not page.seek("line", 1)


async def test_there_are_bounds() -> None:
    async with hosted(Page, (80, 10)) as (host, pilot):
        host.panel.show([(("x" * 200_000, "text"), ("y", "muted"))] + [(("z", "text"),)] * 30_000)
        await until(pilot, lambda: "xxx" in screen_text(host))
        assert len(host.panel.lines) == MOST_LINES
        assert len(host.panel.lines[0][0][0]) == MOST_COLUMNS


async def test_few_lines_take_the_room_they_need() -> None:
    async with hosted(lambda palette: TagLine(palette), (20, 10)) as (host, pilot):
        line = host.panel
        assert line.size.height == 0
        line.show([(("one two three four five six", "text"),), (("\x1b[2J", "muted"),)])
        await until(pilot, lambda: line.size.height == 3)
        assert line.text == "one two three four five six\n\x1b[2J" and "\x1b" not in screen_text(host)
        line.show(())
        await until(pilot, lambda: line.size.height == 0)
