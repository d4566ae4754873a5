"""Opening the terminal interface from the command line."""

import sys
from pathlib import Path

import pytest

from codewhale.cli.parser import Parser
from codewhale.cli.tui import NO_ARGUMENTS, build
from support.program import codewhale_program
from support.terminal import Terminal, environment

PROGRAM = [sys.executable, "-m", "codewhale"]


@pytest.mark.parametrize("arguments", [[], ["--continue"], ["-w", "."], ["--mode=plan"]])
def test_without_a_terminal_it_says_so(tmp_path: Path, arguments: list[str]) -> None:
    done = codewhale_program(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs a terminal" in done.stderr and 'codewhale exec "fix the failing test"' in done.stderr


def test_no_arguments_are_what_the_parser_makes_of_none() -> None:
    parser = Parser()
    build(parser)
    assert vars(parser.parse_args([])) == dict(NO_ARGUMENTS)


def test_it_opens_and_is_left(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    command = [*PROGRAM, "-w", str(work), "--mode", "plan", "--theme", "contrast"]
    with Terminal(command, environment(home), size=(80, 24)) as term:
        term.sees("Connect a model")
        term.type("\x1b")
        term.until(lambda text: "─ plan ─" in text and "Connect a model" not in text)
        term.type("\x03")
        term.sees("ctrl+c again quits")
        term.type("\x03")
        assert term.wait() == 0
        assert b"\x1b[?1049l" in term.raw and b"\x1b[?1000h" not in term.raw


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--theme", "nowhere"], "there is no theme 'nowhere'; there are dark, light, contrast"),
        (["--resume", ""], "--resume needs the id of a session"),
        (["-w", "/nowhere/at/all"], "-w /nowhere/at/all: No such file or directory"),
        (["--mode", "wild"], "invalid choice: 'wild'"),
        (["--resume", "a", "--continue"], "not allowed with argument"),
    ],
)
def test_what_cannot_be_is_said_before_the_screen(tmp_path: Path, arguments: list[str], said: str) -> None:
    with Terminal([*PROGRAM, *arguments], environment(tmp_path), size=(160, 24)) as term:
        assert term.wait() == 2
        assert said in term.text and "Traceback" not in term.text
        assert b"\x1b[?1049h" not in term.raw


def test_a_session_that_is_not_there_is_said_on_the_screen(tmp_path: Path) -> None:
    with Terminal([*PROGRAM, "--resume", "nothing"], environment(tmp_path), cwd=tmp_path, size=(100, 24)) as term:
        term.sees("Could not open the session.", "nothing")
        term.type("\x04")
        assert term.wait() == 0


def test_plain_lines_where_the_terminal_can_no_more(tmp_path: Path) -> None:
    with Terminal(PROGRAM, environment(tmp_path, TERM="dumb"), cwd=tmp_path, size=(100, 24)) as term:
        term.until(lambda text: text.strip())
        assert b"\x1b[?1049h" not in term.raw
        term.type("\x04")
        term.wait()
