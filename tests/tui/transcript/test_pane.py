"""A pane over many blocks: what is seen never jumps, the end is followed, and only changed rows are painted again."""

from collections.abc import Sequence

import pytest

from codewhale.display.text import StyledLine
from codewhale.tui.transcript.pane import Pane
from support.tuirecord import hosted, screen_text, until


class Numbers:
    """Blocks of one to five lines that say which they are; estimates are wrong on purpose."""

    def __init__(self, count: int) -> None:
        self.heights = [1 + number * 7 % 5 for number in range(count)]
        self.drawn = 0
        self.widths: set[int] = set()

    def __len__(self) -> int:
        return len(self.heights)

    def lines(self, index: int, width: int) -> Sequence[StyledLine]:
        self.drawn += 1
        self.widths.add(width)
        return [StyledLine(((f"{index}.{line}", "text"),)) for line in range(self.heights[index])]

    def estimate(self, index: int, width: int) -> int:
        return 2


def seen(text: str) -> list[str]:
    return [row.split()[0] for row in text.splitlines() if row.strip(" │┃")]


async def test_scrolling_shows_every_line_once_whatever_was_estimated() -> None:
    source = Numbers(200)
    expected = [f"{index}.{line}" for index, height in enumerate(source.heights) for line in range(height)]
    async with hosted(lambda palette: Pane(palette, source), size=(30, 10)) as (host, pilot):
        pane = host.panel
        assert isinstance(pane, Pane)
        await pilot.pause()
        pane.draw()
        at = len(expected) - 10
        while at > 0:
            assert [f"{index}.{line}" for index, line in pane.seen] == expected[at : at + 10]
            at = max(0, at - 7)
            pane.move(-7)
        assert pane.top == 0
        for step in range(0, len(expected) - 10, 9):
            assert [f"{index}.{line}" for index, line in pane.seen] == expected[step : step + 10]
            pane.move(9)
        pane.move(100)
        await pilot.pause()
        assert seen(screen_text(host)) == expected[-10:]


async def test_nothing_is_drawn_in_a_width_that_it_never_has() -> None:
    source = Numbers(200)
    async with hosted(lambda palette: Pane(palette, source), size=(30, 10)) as (host, pilot):
        await until(pilot, lambda: "199." in screen_text(host))
        await pilot.resize_terminal(50, 10)
        await until(pilot, lambda: host.panel.size.width == 50 and 48 in source.widths)
        assert source.widths == {28, 48}


async def test_the_end_is_followed_until_the_reader_goes_away() -> None:
    source = Numbers(50)
    async with hosted(lambda palette: Pane(palette, source), size=(30, 10)) as (host, pilot):
        pane = host.panel
        assert isinstance(pane, Pane)
        pane.draw()
        source.heights += [2, 2]
        pane.draw()
        assert pane.seen[-1] == (51, 1)
        pane.move(-5)
        rows = list(pane.seen)
        source.heights += [3] * 20
        pane.draw()
        assert pane.seen == rows and not pane.follow
        pane.move(1_000)
        assert pane.seen[-1] == (71, 2) and pane.follow
        await pilot.pause()


async def test_what_changes_above_moves_nothing() -> None:
    source = Numbers(50)
    async with hosted(lambda palette: Pane(palette, source), size=(30, 10)) as (host, _):
        pane = host.panel
        assert isinstance(pane, Pane)
        pane.go_to(25, 0)
        rows = list(pane.seen)
        source.heights[3] = 40
        pane.changed(3)
        pane.draw()
        assert pane.seen == rows


async def test_only_what_is_seen_is_drawn() -> None:
    source = Numbers(100_000)
    async with hosted(lambda palette: Pane(palette, source), size=(30, 10)) as (host, _):
        pane = host.panel
        assert isinstance(pane, Pane)
        pane.draw()
        pane.go_to_top()
        pane.go_to(50_000)
        assert source.drawn < 100
        assert 90_000 < pane.top < 110_000


async def test_a_new_width_keeps_the_first_line() -> None:
    source = Numbers(500)
    async with hosted(lambda palette: Pane(palette, source), size=(30, 10)) as (host, pilot):
        pane = host.panel
        assert isinstance(pane, Pane)
        pane.go_to(250, 0)
        for size in ((20, 10), (60, 12), (30, 5), (31, 10)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda rows=size[1]: len(pane.seen) == rows)  # type: ignore[misc]
            assert pane.seen[0] == (250, 0)


async def test_nothing_to_show_is_nothing() -> None:
    async with hosted(lambda palette: Pane(palette, Numbers(0)), size=(30, 10)) as (host, pilot):
        pane = host.panel
        assert isinstance(pane, Pane)
        pane.move(3)
        pane.move(-3)
        await pilot.pause()
        assert seen(screen_text(host)) == []


async def test_no_colour_is_used_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with hosted(lambda palette: Pane(palette, Numbers(20)), size=(30, 10)) as (host, _):
        pane = host.panel
        assert isinstance(pane, Pane)
        pane.draw()
        colours = [
            segment.style.color for row in pane.render_lines(pane.size.region) for segment in row if segment.style
        ]
        assert colours
        assert all(colour is None or len(set(colour.get_truecolor())) == 1 for colour in colours)
