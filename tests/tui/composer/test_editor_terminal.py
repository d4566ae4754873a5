"""The person's editor on a real terminal: it gets the whole of it, keys and all, and the screen comes back."""

import sys
from pathlib import Path

from support.program import scripted
from support.terminal import WARM, Terminal, environment

EDITOR = """
import os, sys, termios, time, tty
while os.getpgrp() != os.tcgetpgrp(0):
    time.sleep(0.01)
open("/dev/tty").close()
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"EDITING " + open(sys.argv[-1], "rb").read())
typed = b""
while not typed.endswith(b"\\r"):
    typed += os.read(0, 1)
termios.tcsetattr(0, termios.TCSADRAIN, before)
open(sys.argv[-1], "ab").write(b" and " + typed[:-1].replace(b"\\x03", b"[ctrl+c]"))
"""


def test_the_editor_has_the_terminal_and_the_text_comes_back(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text": "an answer"}')
    editor = tmp_path / "editor.py"
    editor.write_text(EDITOR)
    environ = environment(tmp_path / "state", EDITOR=f"{sys.executable} {editor}")
    with Terminal(WARM, environ, cwd=tmp_path, size=(80, 24)) as terminal:
        terminal.sees("Ask anything")
        terminal.type("begun")
        terminal.sees("begun")
        terminal.type("\x07")
        terminal.sees("EDITING begun")
        terminal.type("more\x03\r")
        terminal.sees("begun and more[ctrl+c]", "played/m")
        terminal.type("!\r")
        terminal.sees("an answer")
