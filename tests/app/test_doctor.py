"""The doctor's checks on healthy and on broken homes."""

import os
from pathlib import Path

import pytest

from codewhale.app.doctor import Check, Diagnosis, diagnose
from support.program import configure, scripted

PATH = {"PATH": os.environ.get("PATH", os.defpath)}


def look(home: Path, **environ: str) -> Diagnosis:
    return diagnose(str(home / "state"), str(home), {**PATH, **environ})


def row(found: Diagnosis, name: str) -> Check:
    return next(check for check in found.checks if check.name == name)


def test_a_fresh_home_is_usable_and_stays_unmade(tmp_path: Path) -> None:
    found = look(tmp_path)
    assert found.ok
    assert (found.provider, found.model) == ("deepseek", "deepseek-v4-pro")
    assert found.api_key.source == "missing"
    assert (found.capability.context_window, found.capability.window_source) == (1_000_000, "catalog")
    assert row(found, "api_key").fix == "codewhale login deepseek, or export DEEPSEEK_API_KEY=..."
    assert row(found, "sandbox").detail.startswith(("bubblewrap: ", "landlock: ", "seatbelt: ", "none, so "))
    assert not (tmp_path / "state").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="no folder is closed to root")
def test_a_home_that_cannot_be_made_fails(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    found = row(look(tmp_path / "closed" / "deeper"), "home")
    assert (found.status, found.fix) == ("fail", "set CODEWHALE_HOME to a folder of your own")
    assert found.detail == f"{tmp_path}/closed/deeper/state cannot be created: {tmp_path}/closed cannot be written"


def test_each_check_stands_once_and_bad_rows_say_what_to_do(tmp_path: Path) -> None:
    found = look(tmp_path, PATH="/nowhere")
    names = [check.name for check in found.checks]
    assert names == sorted(set(names), key=names.index)
    assert {"config", "home", "provider", "api_key", "python", "git", "rg", "pdftotext"} < set(names)
    assert {"sandbox", "disk", "sessions"} < set(names)
    assert all(check.fix for check in found.checks if check.status != "ok")
    assert row(found, "git").status == "warn"


def test_a_provider_without_a_key_needs_none(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"x"}')
    found = look(tmp_path)
    assert found.api_key.source == "not needed"
    assert row(found, "provider").status == "ok"


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("provider = ", "config", "is not valid TOML"),
        ("provider = 1", "config", "must be text, not a whole number"),
        ('provider = "nobody"', "provider", "no [providers.nobody] table"),
        ('[providers.deepseek]\nbase_url = "http://example.com"', "provider", "is not encrypted"),
        ('[providers.deepseek]\ndialect = "morse"', "provider", "morse"),
    ],
)
def test_what_cannot_work_fails(tmp_path: Path, text: str, name: str, said: str) -> None:
    configure(tmp_path, text)
    found = look(tmp_path)
    assert not found.ok
    assert row(found, name).status == "fail"
    assert said in row(found, name).detail


def test_an_unknown_key_is_a_warning(tmp_path: Path) -> None:
    path = configure(tmp_path, "modle = 1")
    found = look(tmp_path)
    assert found.ok
    assert row(found, "config") == Check(
        "config", "warn", f"{path}: modle is not a known key and does nothing; did you mean model?", f"edit {path}"
    )


def test_a_home_that_is_open_to_others_or_no_folder(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    found = look(tmp_path)
    assert row(found, "home").status == "warn"
    assert row(found, "home").fix == f"chmod 700 {tmp_path}/state"
    (tmp_path / "file").write_text("")
    broken = diagnose(str(tmp_path / "file"), str(tmp_path), PATH)
    assert not broken.ok
    assert row(broken, "home").status == "fail"


def test_a_damaged_session_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "sessions" / "20260101-000000-00000000"
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_bytes(b"garbage\n")
    (tmp_path / "state").chmod(0o700)
    found = look(tmp_path)
    assert found.ok
    assert row(found, "sessions").status == "warn"
    assert "20260101-000000-00000000" in row(found, "sessions").detail


def test_a_key_that_may_not_be_sent_is_told(tmp_path: Path) -> None:
    configure(tmp_path, '[providers.deepseek]\nbase_url = "https://gateway.example/v1"\n')
    found = look(tmp_path, DEEPSEEK_API_KEY="sk-ambient")
    assert found.api_key.source == "missing"
    assert "belongs to api.deepseek.com and is not sent to gateway.example" in row(found, "api_key").detail
    configure(tmp_path, '[providers.deepseek]\nbase_url = "http://127.0.0.1:9/v1"\n')
    found = look(tmp_path, DEEPSEEK_API_KEY="sk-ambient")
    assert (row(found, "api_key").status, found.api_key.source) == ("ok", "not needed")
    assert len(found.api_key.refused) == 1


@pytest.mark.parametrize(
    ("files", "program"),
    [
        ({"Cargo.toml": ""}, "cargo"),
        ({"go.mod": "module x"}, "go"),
        ({"package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""}, "pnpm"),
        ({"Makefile": "test:\n\ttrue\n"}, "make"),
        ({}, ""),
    ],
)
def test_what_runs_the_tests_of_the_folder(tmp_path: Path, files: dict[str, str], program: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    check = row(look(tmp_path, PATH="/nowhere"), "tests")
    assert (check.status, program in check.detail) == ("warn" if program else "ok", True)
    assert program in check.fix


def test_missing_programs_say_how_to_install_them(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("apt-get", "git"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    (tmp_path / "work").mkdir()
    assert "ignored: others or a project may write there" in row(look(tmp_path, PATH=str(tools)), "git").detail
    found = look(tmp_path / "work", PATH=str(tools))
    assert row(found, "git") == Check("git", "ok", str(tools / "git"))
    assert row(found, "rg").fix.removeprefix("sudo ") == "apt-get install ripgrep"
    assert row(found, "pdftotext").fix.endswith("poppler-utils")
    assert row(found, "gh").status == "ok"
    assert "apt-get install gh" in row(found, "gh").detail


def test_servers_are_a_row_where_any_is_named(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    work.mkdir()

    def row() -> Check | None:
        found = diagnose(str(home), str(work), {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
        return next((check for check in found.checks if check.name == "mcp"), None)

    assert row() is None
    (work / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "true"}}}')
    waiting = row()
    assert waiting is not None and waiting.status == "warn" and "waiting for approval: theirs" in waiting.detail
    (home / "mcp.json").write_text('{"servers": {"mine": {"comand": "true"}}}')
    wrong = row()
    assert wrong is not None and "servers.mine.comand: is unknown" in wrong.detail
