"""The composer on a real terminal: hostile pastes, wide letters, other sizes, and an end without warning."""

import os
import re
import signal
import time
from pathlib import Path

from support.patience import HANG
from support.program import scripted
from support.terminal import WARM, Terminal, environment

HOSTILE = "see \x1b]0;owned\x07\x1b[2J\x1b[31mred text of more than thirty-two characters\r\x03\x04 and its end"


def test_a_paste_is_text_and_a_kill_loses_nothing_of_it(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text": "an answer"}')
    environ = environment(tmp_path / "state")
    with Terminal(WARM, environ, cwd=tmp_path, size=(80, 24)) as terminal:
        terminal.sees("Ask anything")
        terminal.paste(HOSTILE)
        terminal.type("你好🙂")
        terminal.sees("and its end你好")
        for columns in (30, 120, 41, 78):
            terminal.resize(columns, 24)
        terminal.sees("and its end", "red text")
        raw = bytes(terminal.raw)
        assert b"\x1b]0;owned" not in raw and re.search(rb"\x1b\[31mred", raw) is None
        os.kill(terminal.child.pid, signal.SIGKILL)
        terminal.child.wait(HANG)
    with Terminal(WARM, environ, cwd=tmp_path, size=(80, 24)) as terminal:
        terminal.sees("red text", "and its end你好", "draft restored")
        terminal.type("\r")
        terminal.sees("an answer")
        terminal.until_quiet()
        terminal.type("\x1b[A")
        terminal.sees("and its end你好")


def test_long_pastes_and_images_are_attached(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text": "an answer"}')
    with Terminal(WARM, environment(tmp_path / "state"), cwd=tmp_path, size=(80, 24)) as terminal:
        terminal.sees("Ask anything")
        terminal.paste("line\r" * 150_000)
        terminal.sees("pasted text, 150,000 lines, 750 kB")
        terminal.type("what is this?\r")
        terminal.sees("an answer")


def test_a_key_in_one_burst_with_letters_comes_behind_them(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text": "an answer"}')
    with Terminal(WARM, environment(tmp_path / "state"), cwd=tmp_path, size=(80, 24)) as terminal:
        terminal.sees("Ask anything")
        for number in range(5):
            terminal.type(f"letter by letter {number}\x04")  # ctrl+d leaves where nothing is written
            terminal.sees(f"letter by letter {number}")
            terminal.type("\x15")
            terminal.sees("Ask anything")


def test_a_report_of_the_terminal_that_comes_in_two_parts_types_nothing(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text": "an answer"}')
    with Terminal(WARM, environment(tmp_path / "state"), cwd=tmp_path, size=(80, 24)) as terminal:
        terminal.sees("Ask anything")
        for report in ("\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\", "\x1bP>|a terminal\x1b\\", "\x1b[?62;22c"):
            terminal.type(report)
            at = len(report) - 5
            terminal.type(report[:at])
            time.sleep(0.03 if "[?" in report else 0.3)  # a slow line; a key that begins so is not waited for so long
            terminal.type(report[at:])
        terminal.type("nothing else")
        terminal.sees("│› nothing else ")
