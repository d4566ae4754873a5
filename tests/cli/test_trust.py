"""`codewhale trust` as it is typed, and what a trusted file does to the next start."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import HANG
from support.program import codewhale_program, environment, scripted


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A project that chooses a model and forbids a tool."""
    folder = tmp_path / "work"
    (folder / ".codewhale").mkdir(parents=True)
    (folder / ".codewhale" / "config.toml").write_text('model = "theirs"\n[tools]\ndisabled = ["exec_shell"]\n')
    return folder


def test_a_project_narrows_once_it_is_trusted(tmp_path: Path, work: Path) -> None:
    scripted(tmp_path, '{"calls":[{"name":"exec_shell","arguments":{"command":"true"}}]}', '{"text":"done"}')
    run = ("exec", "--auto", "--output-format", "json", "-w", str(work), "go")
    before = codewhale_program(tmp_path, *run)
    assert (before.returncode, json.loads(before.stdout)["tools"][0]["ok"]) == (0, True)
    assert "is not trusted" in before.stderr
    added = codewhale_program(tmp_path, "trust", "add", "-w", str(work))
    assert added.returncode == 0 and added.stdout.startswith(f"trusted   {work}/.codewhale/config.toml")
    assert '  | disabled = ["exec_shell"]\n' in added.stderr
    after = codewhale_program(tmp_path, *run)
    assert (after.returncode, json.loads(after.stdout)["tools"][0]["ok"]) == (3, False)
    shown = codewhale_program(tmp_path, "config", "get", "--show-origin", "model", "-w", str(work))
    assert shown.stdout == f"theirs  # {work}/.codewhale/config.toml\n"
    assert codewhale_program(tmp_path, "trust", "add", "-w", str(work)).returncode == 1


def test_listing_and_removing(tmp_path: Path, work: Path) -> None:
    def rows(*more: str, cwd: Path) -> list[tuple[str, str]]:
        done = codewhale_program(tmp_path, "trust", "list", "--json", *more, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return [(row["path"], row["state"]) for row in json.loads(done.stdout)]

    path = str(work / ".codewhale" / "config.toml")
    assert rows(cwd=work) == [(path, "new")] and rows("--all", cwd=tmp_path) == []
    assert codewhale_program(tmp_path, "trust", "add", cwd=work).returncode == 0
    assert rows(cwd=work) == rows("--all", cwd=tmp_path) == [(path, "trusted")]
    Path(path).write_text("# other\n")
    assert rows("--all", cwd=tmp_path) == [(path, "changed")]
    Path(path).unlink()
    assert rows(cwd=work) == [] and rows("--all", cwd=tmp_path) == [(path, "gone")]
    removed = codewhale_program(tmp_path, "trust", "remove", cwd=work)
    assert (removed.returncode, removed.stdout) == (0, f"removed   {path}\n")
    assert codewhale_program(tmp_path, "trust", "remove", cwd=work).returncode == 1
    assert (
        codewhale_program(tmp_path, "trust", "list", cwd=work).stderr == "codewhale: no project files in this folder\n"
    )


def test_a_hash_can_be_demanded(tmp_path: Path, work: Path) -> None:
    wrong = codewhale_program(tmp_path, "trust", "add", ".codewhale/config.toml", "--sha256", "00", cwd=work)
    assert (wrong.returncode, wrong.stdout) == (2, "") and "nothing was trusted" in wrong.stderr
    assert codewhale_program(tmp_path, "trust", "add", "--sha256", "00", cwd=work).returncode == 2
    (row,) = json.loads(codewhale_program(tmp_path, "trust", "list", "--json", cwd=work).stdout)
    right = codewhale_program(tmp_path, "trust", "add", ".codewhale/config.toml", "--sha256", row["sha256"], cwd=work)
    assert right.returncode == 0
    other = codewhale_program(tmp_path, "trust", "add", "README.md", cwd=work)
    assert other.returncode == 2 and "not a project file that can be trusted" in other.stderr


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 1), (b"no\n", 1)])
def test_on_a_terminal_it_asks(answer: bytes, code: int, tmp_path: Path, work: Path) -> None:
    (work / ".codewhale" / "hooks.toml").write_text('x = "\\u001b]0;owned\\u0007 \u202e"\n')
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "codewhale", "trust", "add"]
    with subprocess.Popen(
        command, cwd=work, env=environment(tmp_path), stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        os.write(master, answer)
        shown = b""
        try:
            while piece := os.read(master, 1 << 16):
                shown += piece
        except OSError:
            pass
        assert process.wait(HANG) == code
    os.close(master)
    text = shown.decode()
    assert "Trust these 2 files as shown? [y/N]" in text and "\u202e" not in text
    assert ("trusted   " in text) is (code == 0)


def test_a_workspaces_rules_are_trusted_and_forgotten_with_the_rest(tmp_path: Path, work: Path) -> None:
    for name in (".cursor/rules/a.mdc", ".clinerules", "web/.windsurf/rules/b.md"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("Use tabs.\n")
    added = codewhale_program(tmp_path, "trust", "add", "-w", str(work))
    assert added.returncode == 0 and added.stdout.count("trusted ") == 4
    removed = codewhale_program(tmp_path, "trust", "remove", "-w", str(work))
    assert removed.stdout.count("removed ") == 4
    states = [
        row["state"] for row in json.loads(codewhale_program(tmp_path, "trust", "list", "--json", cwd=work).stdout)
    ]
    assert states == ["new"] * 4
