"""The composer on a real terminal: hostile pastes, wide letters, other sizes, and an end without warning."""

import os
import re
import signal
import sys
from pathlib import Path

from support.program import scripted
from support.terminal import Terminal, environment

COMMAND = [sys.executable, "-m", "codewhale"]
HOSTILE = "see \x1b]0;owned\x07\x1b[2J\x1b[31mred text of more than thirty-two characters\r\x03\x04 and its end"


def test_a_paste_is_text_and_a_kill_loses_nothing_of_it(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text": "an answer"}')
    environ = environment(tmp_path / "state")
    with Terminal(COMMAND, environ, cwd=tmp_path, size=(80, 24)) as terminal:
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
        terminal.child.wait(10)
    with Terminal(COMMAND, environ, cwd=tmp_path, size=(80, 24)) as terminal:
        terminal.sees("red text", "and its end你好", "draft restored")
        terminal.type("\r")
        terminal.sees("an answer")
        terminal.until_quiet()
        terminal.type("\x1b[A")
        terminal.sees("and its end你好")


def test_long_pastes_and_images_are_attached(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text": "an answer"}')
    with Terminal(COMMAND, environment(tmp_path / "state"), cwd=tmp_path, size=(80, 24)) as terminal:
        terminal.sees("Ask anything")
        terminal.paste("line\r" * 150_000)
        terminal.sees("pasted text, 150,000 lines, 750 kB")
        terminal.type("what is this?\r")
        terminal.sees("an answer")
