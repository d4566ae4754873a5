"""Bars for long work."""

import pytest

from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.protocol.events import Notice, ProgressShown
from codewhale.tui.screens.reports import MOST_BARS, ProgressPanel
from support.tuirecord import envelopes, hosted, screen_text, until
from support.tuiscreens import HOSTILE


async def test_bars_come_grow_and_go() -> None:
    async with hosted(lambda palette: ProgressPanel(Words("en"), palette)) as (host, pilot):

        def take(*events: object) -> None:
            for envelope in envelopes(events):  # type: ignore[arg-type]
                host.panel.take(envelope)

        take(Notice("info", "nothing"), ProgressShown("index", 25, 100, "src/a.py"))
        await until(pilot, lambda: "indexing" in screen_text(host))
        assert "█" * 5 + "░" * 15 + "  25 % src/a.py" in screen_text(host)
        take(ProgressShown("index", 50, 100), ProgressShown("other", 7, 0, HOSTILE), ProgressShown(HOSTILE, 1, 2))
        await until(pilot, lambda: "other" in screen_text(host))
        text = screen_text(host)
        assert "50 %" in text and " 7 " in text and "\x1b" not in text and "[bold]" in text
        take(*(ProgressShown(f"job {number}", 1, 3) for number in range(20)))
        await until(pilot, lambda: "job 19" in screen_text(host))
        assert screen_text(host).count("%") == MOST_BARS
        host.panel.repaint(host.palette)
        take(*(ProgressShown(f"job {number}", 3, 3) for number in range(20)))
        await until(pilot, lambda: screen_text(host).strip() == "")
        take(ProgressShown("tool", 1, 3))
        await until(pilot, lambda: "running" in screen_text(host))
        host.panel.begin()
        await until(pilot, lambda: host.panel.size.height == 0)


@pytest.mark.parametrize("columns", [8, 20, 34, 60])
async def test_each_bar_stays_on_its_line(columns: int) -> None:
    def panel(palette: Palette) -> ProgressPanel:
        return ProgressPanel(Words("en"), palette)

    async with hosted(panel, (columns, 9)) as (host, pilot):
        for envelope in envelopes(
            [ProgressShown("index", 25, 100, "src/" + "deep/" * 20), ProgressShown("漢" * 40, 1, 2)]
        ):
            host.panel.take(envelope)
        await until(pilot, lambda: host.panel.size.height == 2)
        rows = screen_text(host).rstrip().split("\n")
        assert len(rows) == 2 and all(columns < 20 or "%" in row for row in rows)
        assert all(columns < 34 or ("█" * 4 in row and "░" * 4 in row) for row in rows)
