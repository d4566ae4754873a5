"""`codewhale --plain` on a real terminal: lines in, lines out, and not one byte that moves a cursor."""

import re
import sys
from pathlib import Path

import pytest

from support.program import codewhale_program, scripted
from support.terminal import Terminal, environment

CONTROL = re.compile(rb"[\x00-\x06\x0b-\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


@pytest.mark.parametrize("kind", ["dumb", "xterm-256color"])
def test_a_session_line_by_line(tmp_path: Path, kind: str) -> None:
    scripted(
        tmp_path,
        '{"text": "hostile \\u001b]0;title\\u0007 \\u001b[2J words"}',
        '{"calls": [{"name": "exec_shell", "arguments": {"command": "touch made"}}]}',
        '{"text": "it was refused"}',
        '{"text": "slow", "delay": 30}',
    )
    environ = environment(tmp_path / "state", TERM=kind)
    with Terminal([sys.executable, "-m", "codewhale", "--plain"], environ, cwd=tmp_path, size=(200, 50)) as terminal:
        terminal.sees("Session")
        terminal.type("hello\r")
        terminal.sees("hostile \\x1b]0;title\\x07 \\x1b[2J words", "k tokens")
        terminal.type("go\r")
        terminal.sees("$ touch made", "Type y for yes")
        terminal.until_quiet(0.6)
        terminal.type("n rather not\r")
        terminal.sees("it was refused")
        terminal.type("wait\r")
        terminal.until_quiet(0.5)
        terminal.type("\x03")
        terminal.sees("Stopping the turn", "you stopped it")
        terminal.type("\x04")
        assert terminal.wait() == 0
        assert CONTROL.search(bytes(terminal.raw)) is None
    assert not (tmp_path / "made").exists()


def test_a_pipe_is_a_session_too(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text": "first answer"}', '{"text": "second answer"}')
    done = codewhale_program(tmp_path, "--plain", stdin=b"one\ntwo\n!echo $((6*7))\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("first answer") < done.stdout.index("second answer") < done.stdout.rindex("42")
