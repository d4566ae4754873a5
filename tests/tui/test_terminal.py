"""The terminal: writing never blocks, a slow one gets fewer frames, one that is gone is told."""

import contextlib
import io
import os
import threading

import pyte
from rich.cells import cell_len

from codewhale.tui.terminal import BEHIND, Writer, cleared
from support.patience import HANG


class Slow(io.StringIO):
    """A file that takes nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()

    def write(self, text: str) -> int:
        """Wait, then take it."""
        assert self.let.wait(HANG)
        return super().write(text)


def test_text_is_written_in_order_and_nobody_waits() -> None:
    file, drained, lost = Slow(), threading.Event(), threading.Event()
    writer = Writer(file, drained.set, lost.set)
    writer.start()
    for number in range(1000):
        writer.write(f"{number},")
    assert not writer.behind
    writer.write("x" * (BEHIND + 1))
    assert writer.behind
    file.let.set()
    assert drained.wait(HANG)
    assert not writer.behind
    writer.write("end")
    writer.stop()
    assert file.getvalue().startswith("0,1,2,3,") and file.getvalue().endswith("xend")
    assert not lost.is_set() and not writer.is_alive()


def test_a_terminal_that_is_gone_is_told_once() -> None:
    lost = threading.Semaphore(0)
    master, slave = os.openpty()
    file = open(slave, "w")  # noqa: SIM115
    os.close(master)
    writer = Writer(file, lambda: None, lost.release)
    writer.start()
    for _ in range(50):
        writer.write("frame")
    assert lost.acquire(timeout=HANG)
    writer.join(HANG)
    writer.write("after")
    writer.stop()
    assert not lost.acquire(blocking=False)
    with contextlib.suppress(OSError):
        file.close()


def test_the_end_does_not_wait_for_a_terminal_for_ever() -> None:
    file = Slow()
    writer = Writer(file, lambda: None, lambda: None)
    writer.start()
    writer.write("never")
    writer.stop(0.05)
    assert writer.is_alive()
    file.let.set()
    writer.join(HANG)


def test_a_row_that_comes_out_shorter_leaves_nothing_of_the_one_before() -> None:
    screen = pyte.Screen(40, 3)
    stream = pyte.Stream(screen)
    emoji = "🎉 🇪🇺 e\u0301 นี่"
    row = emoji + " " * (30 - cell_len(emoji))
    stream.feed("\x1b[2;1H" + "x" * 30 + "panel beside\x1b[3;1Hbelow")
    stream.feed(cleared(f"\x1b[2;1H\x1b[1m{row}\x1b[0m\x1b[1;1Hplain"))
    cells = [screen.buffer[1][column].data for column in range(40)]
    assert "x" not in cells and "".join(cells[30:]) == "panel besi"
    assert [screen.display[0].strip(), screen.display[2].strip()] == ["plain", "below"]


def test_a_frame_of_sure_widths_is_written_as_it_is() -> None:
    frame = "\x1b[1;1H╭─ 写点什么 ─╮\x1b[2;1H\x1b[38;2;1;2;3mplain\x1b[0m"
    assert cleared(frame) == frame
