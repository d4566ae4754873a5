"""The program's edges: what starting costs, what a stranger is told, what mistakes end with."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import codewhale
from codewhale.cli.dispatch import run
from support.program import codewhale_program, environment


@pytest.mark.parametrize("entry", ["main", "tui"])
@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version_imports_almost_nothing(tmp_path: Path, entry: str, flag: str) -> None:
    code = (
        f"import sys; before = set(sys.modules); sys.argv = ['codewhale', {flag!r}]; from codewhale.cli import {entry};"
        f"code = {entry}(); print(sorted(set(sys.modules) - before), code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(tmp_path))
    first, second = done.stdout.splitlines()
    assert first == f"codewhale{'-tui' if entry == 'tui' else ''} {codewhale.__version__}"
    assert second == "['codewhale', 'codewhale.cli'] 0"


def test_no_arguments_say_what_to_type(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert 'codewhale exec "fix the failing test"' in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_help_names_every_command(tmp_path: Path, arguments: list[str]) -> None:
    done = codewhale_program(tmp_path, *arguments)
    assert done.returncode == 0
    assert done.stderr == ""
    for command in ("exec", "sessions", "config", "doctor", "apply", "tools"):
        assert f"  {command} " in done.stdout


@pytest.mark.parametrize("command", ["exec", "sessions", "config", "doctor", "apply", "tools"])
def test_each_command_has_help(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    one = capfd.readouterr()
    assert one.out.startswith(f"usage: codewhale {command}")
    assert one.err == ""
    assert run(["help", command]) == 0
    assert capfd.readouterr().out == one.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["exce", "x"], "codewhale: no command 'exce'; did you mean: codewhale exec"),
        (["why does it fail"], "codewhale: no command 'why does it fail'; to run a prompt: codewhale exec"),
        (["--yolo"], "codewhale: no option --yolo here; options follow a command; try: codewhale --help"),
        (["help", "nothing"], "codewhale: no command 'nothing'"),
        (["exec"], "codewhale exec: the following arguments are required: PROMPT|-; try: codewhale exec --help"),
        (["exec", "a", "b"], "codewhale exec: unrecognized arguments: b"),
        (["exec", "--outputformat", "json", "x"], "codewhale exec: unrecognized arguments"),
        (["exec", "--output-format", "xml", "x"], "codewhale exec: argument --output-format: invalid choice"),
        (["exec", "--output", "json", "x"], "codewhale exec: "),
        (["exec", ""], "codewhale exec: the prompt is empty"),
        (["exec", "-"], "codewhale exec: the prompt on stdin is empty"),
        (["exec", "--auto", "--yolo", "x"], "not allowed with argument --auto"),
        (["exec", "--mode", "plan", "--yolo", "x"], "--yolo and --mode plan contradict each other"),
        (["exec", "--mode", "yolo", "--auto", "x"], "--auto and --mode yolo contradict each other"),
        (["exec", "--resume", "a", "--continue", "x"], "not allowed with argument --resume"),
        (["exec", "--fork", "a", "--resume", "b", "x"], "not allowed with argument --fork"),
        (["exec", "--resume", "", "x"], "--resume needs the id of a session"),
        (["exec", "--deltas", "x"], "--deltas needs --output-format stream-json"),
        (["exec", "--max-turns", "0", "x"], "argument --max-turns: '0' is not a whole number above 0"),
        (["exec", "--max-turns", "1.5", "x"], "is not a whole number above 0"),
        (["exec", "--max-tokens", "-3", "x"], "--max-tokens"),
        (["exec", "--max-seconds", "nan", "x"], "argument --max-seconds: 'nan' is not a number above 0"),
        (["exec", "--max-cost", "inf", "x"], "argument --max-cost: 'inf' is not a number above 0"),
        (["exec", "-w", "/nowhere/at/all", "x"], "codewhale exec: -w /nowhere/at/all: No such file or directory"),
        (["exec", "-w", "/dev/null", "x"], "codewhale exec: -w /dev/null: not a folder"),
        (["sessions"], "codewhale sessions: the following arguments are required"),
        (["sessions", "show"], "codewhale sessions show: the following arguments are required: ID"),
        (["sessions", "show", "x", "--request", "0"], "--request '0': not a whole number above 0"),
        (["sessions", "show", "x", "--events", "--messages"], "not allowed with argument --events"),
        (["sessions", "show", "nope"], "codewhale: there is no session 'nope'"),
        (["sessions", "rm", "nope"], "codewhale: there is no session 'nope'"),
        (["sessions", "replay", "x"], "codewhale: there is no session 'x'"),
        (["sessions", "import", "x"], "codewhale: x: No such file or directory"),
        (["config", "get"], "codewhale config get: the following arguments are required: KEY"),
        (["config", "get", "a..b"], "codewhale: 'a..b' is not a key"),
        (["config", "get", "modle"], "codewhale: modle is not a known key; did you mean model?"),
        (["doctor", "extra"], "codewhale doctor: unrecognized arguments: extra"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_2(
    tmp_path: Path,
    arguments: list[str],
    said: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CODEWHALE_HOME", str(tmp_path / "state"))
    assert run(arguments) == 2
    done = capfd.readouterr()
    assert done.out == ""
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "state").exists()


def test_arguments_cannot_steer_the_terminal(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "\x1b]0;owned\x07\u202e")
    assert done.returncode == 2
    assert "\\x1b]0;owned" in done.stderr
    assert "\x1b" not in done.stderr
    odd = subprocess.run(
        [sys.executable, "-m", "codewhale", b"\xff\xfe"], capture_output=True, env=environment(tmp_path), cwd=tmp_path
    )
    assert odd.returncode == 2
    assert b"no command" in odd.stderr


@pytest.mark.parametrize(("flag", "code"), [("--help", 0), ("-h", 0), ("", 2), ("anything", 2)])
def test_the_screen_program_points_to_exec(tmp_path: Path, flag: str, code: int) -> None:
    script = "import sys; from codewhale.cli import tui; sys.exit(tui())"
    arguments = [flag] if flag else []
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=environment(tmp_path)
    )
    assert done.returncode == code
    assert ("exec" if flag != "anything" else "unrecognized arguments") in (done.stdout if code == 0 else done.stderr)


def test_a_reader_that_went_away_is_no_disaster(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "codewhale", "config", "list"],
        stdout=write,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
    )
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 141


def test_a_full_disk_behind_stdout_is_told(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "codewhale", "help"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(tmp_path),
            cwd=tmp_path,
        )
    assert done.returncode == 1
    assert done.stderr == b"codewhale: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors_are_no_disaster(tmp_path: Path, closed: str) -> None:
    line = f'"{sys.executable}" -m codewhale sessions list {closed}'
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, env=environment(tmp_path), cwd=tmp_path, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
