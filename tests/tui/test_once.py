"""What is to be done once is done, whatever the machine does meanwhile."""

import time

import pytest
from textual import _time

from codewhale.display.text import StyledLine
from codewhale.tui.input import once
from codewhale.tui.transcript.pane import Pane
from support.tuirecord import hosted, screen_text, until


class Growing:
    """Blocks of one line."""

    count = 1

    def __len__(self) -> int:
        return self.count

    def lines(self, index: int, width: int) -> list[StyledLine]:
        return [StyledLine(((f"block {index}", "text"),))]

    def estimate(self, index: int, width: int) -> int:
        return 1


async def test_a_frame_comes_though_the_process_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    source, now = Growing(), _time.get_time

    def late() -> float:
        """The clock of a process that loses its processor at every look."""
        time.sleep(0.003)
        return now()

    async with hosted(lambda palette: Pane(palette, source), size=(30, 5)) as (host, pilot):
        await until(pilot, lambda: "block 0" in screen_text(host))
        monkeypatch.setattr(_time, "get_time", late)
        for count in range(2, 6):
            source.count = count
            host.panel.wake()
            await until(pilot, lambda count=count: f"block {count - 1}" in screen_text(host))


async def test_what_is_called_off_or_has_lost_its_panel_is_not_done() -> None:
    done: list[str] = []
    async with hosted(lambda palette: Pane(palette, Growing())) as (host, pilot):
        once(host.panel, 0.01, lambda: done.append("called off")).cancel()
        once(host.panel, 0.02, lambda: done.append("done"))
        await until(pilot, lambda: done)
        once(host.panel, 0.01, lambda: done.append("without a panel"))
        await host.panel.remove()
        ended: list[bool] = []
        once(host, 0.05, lambda: ended.append(True))
        await until(pilot, lambda: ended)
    assert done == ["done"]
