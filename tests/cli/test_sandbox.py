"""`codewhale sandbox` as people and programs use it."""

import json
from pathlib import Path

import pytest

from codewhale.process.confinement import CHOICE, LANDLOCK, sandbox
from support.machine import MAKES_FILES
from support.program import codewhale_program, configure

held = pytest.mark.skipif(not sandbox().mechanism, reason="nothing on this machine holds a command")


def test_the_check_is_one_object_or_rows(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "sandbox", "check", "--json")
    found = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1 and done.returncode == (0 if found["ok"] else 1)
    assert set(found) == {
        "schema_version", "available", "ok", "mechanism", "profiles", "network", "tried", "attempts", "fix", "limits",
        "home",
    }  # fmt: skip
    tool = tmp_path / "person" / ".cargo" / "bin"
    tool.mkdir(parents=True)
    rows = codewhale_program(tmp_path, "sandbox", "check").stdout.splitlines()
    assert not found["mechanism"] or f"home  commands that run without asking can see: {tool}" in rows
    assert rows[-1] == f"{found['mechanism']} confines commands" or not found["ok"]


@held
@MAKES_FILES
def test_a_command_runs_with_the_streams_and_the_code_of_its_own(tmp_path: Path, workspace: Path) -> None:
    line = "cat; echo err >&2; echo x > made; echo x > ../out; exit 4"
    done = codewhale_program(tmp_path, "sandbox", "run", "-w", str(workspace), "--", "sh", "-c", line, stdin=b"in\n")
    assert (done.returncode, done.stdout) == (4, "in\n") and done.stderr.startswith("err\n")
    assert (workspace / "made").exists() and not (tmp_path / "out").exists()
    assert [path.name for path in workspace.iterdir()] == ["made"]


@held
def test_f1_no_key_of_the_persons_reaches_a_command(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "sandbox", "run", "--", "env", env={"DEEPSEEK_API_KEY": "sk-secret"})
    assert done.returncode == 0 and "sk-secret" not in done.stdout


@held
def test_the_profile_and_the_mechanism_are_the_persons_choice(tmp_path: Path, workspace: Path) -> None:
    options = ("sandbox", "run", "-w", str(workspace))
    touch = ("--", "touch", "made")
    assert codewhale_program(tmp_path, *options, "--profile", "read-only", *touch).returncode != 0
    done = codewhale_program(tmp_path, *options, "--", "mkfifo", "made", env={CHOICE: LANDLOCK})
    assert done.returncode == 1 and not (workspace / "made").exists()
    assert codewhale_program(tmp_path, *options, "--profile", "none", *touch).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((), 2), (("--profile", "x", "--", "true"), 2), (("--allow", "y", "--", "true"), 2), (("--", "/no/such"), 127)],
)
def test_wrong_orders(arguments: tuple[str, ...], code: int, tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "sandbox", "run", *arguments)
    assert (done.returncode, done.stdout) == (code, "") and done.stderr.count("\n") == 1


@held
def test_what_is_configured_holds_and_is_shown(tmp_path: Path, workspace: Path) -> None:
    clients, shared = tmp_path / "clients", tmp_path / "shared"
    for folder in (clients, shared):
        folder.mkdir()
        (folder / "a").write_text("secret")
    text = f'[sandbox]\nnetwork = "off"\nwritable = ["{shared}"]\nhidden = ["{clients}"]\n'
    configure(tmp_path, text)
    line = f"cat {clients}/a; echo more >> {shared}/a"
    run = ("sandbox", "run", "-w", str(workspace), "--allow", "network", "--")
    done = codewhale_program(tmp_path, *run, "sh", "-c", line)
    assert done.returncode == 0 and (shared / "a").read_text() == "secretmore\n"
    assert "secret" not in done.stdout or sandbox().mechanism == LANDLOCK
    dial = codewhale_program(tmp_path, *run, "/bin/bash", "-c", "exec 3<>/dev/udp/192.0.2.1/9")
    assert dial.returncode != 0
    shown = codewhale_program(tmp_path, "sandbox", "check").stdout
    assert "set   network: off" in shown and f"set   hidden: {clients}" in shown
    listed = codewhale_program(tmp_path, "config", "list").stdout
    assert 'sandbox.network = "off"' in listed and f'sandbox.writable = ["{shared}"]' in listed


def test_what_would_open_the_home_is_refused(tmp_path: Path) -> None:
    for text in ('writable = ["/"]', 'writable = ["~/"]', 'writable = ["x"]', 'caches = ["x"]', 'network = "yes"'):
        configure(tmp_path, f"[sandbox]\n{text}\n")
        done = codewhale_program(tmp_path, "sandbox", "run", "--", "true")
        assert done.returncode == 2 and f"sandbox.{text.partition(' ')[0]}" in done.stderr, (text, done.stderr)
