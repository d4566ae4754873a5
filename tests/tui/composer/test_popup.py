"""The list: which rows are shown, and how they are cut."""

from rich.cells import cell_len

from codewhale.tui.composer.parts import SHOWN_ROWS, Popup, PopupRow
from support.tuirecord import hosted, screen_text


async def test_rows_scroll_and_are_cut_to_the_width() -> None:
    async with hosted(Popup, size=(40, 12)) as (host, pilot):
        popup = host.query_one(Popup)
        assert not popup.open and popup.chosen is None
        rows = [PopupRow(f"row {number} 你好\x1b[31m", "detail " * 20, number) for number in range(20)]
        popup.set_rows(rows, "usage [bold]of it[/bold]")
        await pilot.pause()
        text = screen_text(host)
        assert "usage [bold]of it[/bold]" in text and "› row 0" in text and "↓" in text
        assert "\x1b" not in text and all(cell_len(line) <= 40 for line in text.split("\n"))
        popup.move(-1)
        await pilot.pause()
        assert "› row 19" in screen_text(host) and "↑" in screen_text(host) and popup.moved
        assert popup.chosen is not None and popup.chosen.stands_for == 19
        assert popup.size.height == SHOWN_ROWS + 1
        popup.move(1)
        popup.repaint(host.palette)
        assert popup.chosen.stands_for == 0
        popup.set_rows([], "only a header")
        popup.move(1)
        assert popup.open and popup.chosen is None
        popup.close()
        assert not popup.open
