"""Completion in the real shells: sub-commands, options, and what only this machine knows."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from codewhale.cli.completion import SHELLS, SubCommands, candidates
from codewhale.cli.dispatch import COMMANDS, build
from support.patience import HANG
from support.program import codewhale_program, configure, environment, scripted
from support.terminal import Terminal

SESSION = "20260101-101010-abcdef12"
CONFIG = 'provider = "ownbox"\nmodel = "qwen3:8b-long"\n[providers.ownbox]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n'
# What is typed before Tab, and what the line becomes.
LINES = [
    ("codewhale sess", "codewhale sessions"),
    ("codewhale exec --output-f", "codewhale exec --output-format"),
    ("codewhale exec --output-format str", "codewhale exec --output-format stream-json"),
    ("codewhale sessions show 2026", f"codewhale sessions show {SESSION}"),
    ("codewhale --resume 2026", f"codewhale --resume {SESSION}"),
    ("codewhale --worktree --resume 2026", f"codewhale --worktree --resume {SESSION}"),
    ("codewhale exec --provider own", "codewhale exec --provider ownbox"),
    ("codewhale exec --model qwen3:8", "codewhale exec --model qwen3:8b-long"),
]


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """A home with a provider, a model and a session."""
    configure(tmp_path, CONFIG)
    folder = tmp_path / "state" / "sessions" / SESSION
    folder.mkdir(parents=True)
    fold = {"title": "Fix the basket\u001b[2J", "workspace": str(tmp_path), "model": "used-once"}
    (folder / "listing.json").write_text(json.dumps({"version": 1, "fold": fold}))
    return tmp_path


def shell(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.mark.parametrize(("typed", "completed"), LINES)
def test_fish(person: Path, typed: str, completed: str) -> None:
    script = f"codewhale completion fish | source; complete -C '{typed}'"
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", script], cwd=person, env=environment(person), capture_output=True,
        text=True, timeout=HANG, check=True,
    )  # fmt: skip
    rows = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert completed.rpartition(" ")[2] in rows, (done.stdout, done.stderr)


@pytest.mark.parametrize(("name", "options", "setup"), [
    ("bash", ["--norc", "--noprofile", "-i"], "bind 'set enable-bracketed-paste off'"),
    ("zsh", ["-f", "-i"], "autoload -Uz compinit; compinit -u -D; unsetopt prompt_sp prompt_cr"),
])  # fmt: skip
def test_at_the_prompt(person: Path, name: str, options: list[str], setup: str) -> None:
    env = environment(person, {"TERM": "xterm", "PS1": "$ "})
    with Terminal([shell(name), *options], env, cwd=person, size=(150, 40)) as term:
        term.type(f'{setup}; eval "$(codewhale completion {name})"; echo rea""dy\n')
        term.sees("\nready")
        for typed, completed in LINES:
            term.type(f"{typed}\t")
            term.until(lambda text, line=completed: any(row.rstrip().endswith(line) for row in text.splitlines()))
            term.type("\x15")
        (person / "only-file.txt").touch()
        term.type("codewhale sessions import only\t")
        term.sees("only-file.txt")


def test_every_sub_command_and_option_is_offered() -> None:
    every = SubCommands(COMMANDS, build)
    assert {name for name, _ in candidates([], "", every)} == {*COMMANDS, "help"}
    assert {name for name, _ in candidates([], "-", every)} >= {"--resume", "--version", "-w"}
    for name in COMMANDS:
        offered = {value for value, _ in candidates([name], "-", every)}
        assert {"--help", "-h"} <= offered, name
        assert all(about for _, about in candidates([name], "--", every)), name


@pytest.mark.parametrize("words", [
    ["nonsense", ""], ["exec", "--nonsense", ""], ["sessions", "nonsense", "x", ""], ["help", "exec", ""], [],
    ["exec", "--model", "m", "--provider"], ["\x01"], ["exec", "hello", "--", ""], ["\u202e"],
    ["sandbox", "run", "--", ""],
])  # fmt: skip
def test_lines_that_make_no_sense_are_answered_with_little(tmp_path: Path, words: list[str]) -> None:
    done = codewhale_program(tmp_path, "completion", "--words", *words)
    assert (done.returncode, done.stderr) == (0, "")


def test_damaged_files_take_nothing_away(person: Path) -> None:
    configure(person, "this is = = no toml")
    for text in ("{", "[]", '{"fold": 3}', "[" * 100_000, "\xff"):
        (person / "state" / "sessions" / SESSION / "listing.json").write_bytes(text.encode("latin-1"))
        done = codewhale_program(person, "completion", "--words", "--resume", "")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[1].startswith(SESSION)
    assert "deepseek\t" in codewhale_program(person, "completion", "--words", "login", "").stdout


def test_titles_cannot_reach_the_terminal_raw(person: Path) -> None:
    shown = codewhale_program(person, "completion", "--words", "sessions", "show", "").stdout
    assert shown == f"{SESSION}\tFix the basket\\x1b[2J\n"


def test_a_session_of_this_folder_comes_first(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"a"}', '{"text":"b"}')
    (tmp_path / "other").mkdir()
    codewhale_program(tmp_path, "exec", "Mine")
    codewhale_program(tmp_path, "exec", "Another", cwd=tmp_path / "other")
    codewhale_program(tmp_path, "sessions", "list", "--all")
    rows = codewhale_program(tmp_path, "completion", "--words", "exec", "--resume", "").stdout.splitlines()
    assert [row.partition("\t")[2] for row in rows] == ["the latest session", "Mine", "Another"]


def test_a_shell_that_is_not_known_is_refused_with_those_that_are(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "completion", "bsh")
    assert done.returncode == 2 and "did you mean bash?" in done.stderr
    assert codewhale_program(tmp_path, "completion").returncode == 2
    for name in SHELLS:
        assert "codewhale completion --words" in codewhale_program(tmp_path, "completion", name).stdout
