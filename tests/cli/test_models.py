"""`codewhale model` as people and scripts use it."""

import json
from pathlib import Path

from support.program import codewhale_program, configure


def test_list_names_models_by_provider(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "model", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert any(line.split()[:2] == ["*", "deepseek"] for line in done.stdout.splitlines())
    rows = json.loads(codewhale_program(tmp_path, "model", "list", "--provider", "deepseek", "--json").stdout)
    assert {row["provider"] for row in rows} == {"deepseek"}
    assert set(rows[0]) == {"provider", "match", "default", "window", "max_output", "facts", "source", "date"}


def test_resolve_tells_all_that_holds(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "model", "resolve", "deepseek-v4-pro")
    assert (done.returncode, done.stderr) == (0, "")
    assert "window      1,000,000 tokens (catalog)" in done.stdout
    assert "per million (https://" in done.stdout
    unknown = codewhale_program(tmp_path, "model", "resolve", "nobody/knows-it", "--provider", "novita")
    assert unknown.returncode == 0
    assert "(fallback, a guess)" in unknown.stdout and "price       unknown" in unknown.stdout
    assert "this id is not in the model table" in unknown.stdout


def test_mistakes(tmp_path: Path) -> None:
    for arguments in (["resolve", ""], ["resolve", "m", "--provider", "nobody"], ["list", "--live"]):
        done = codewhale_program(tmp_path, "model", *arguments)
        assert (done.returncode, done.stdout) == (2, "")


def test_live_models_of_a_server_that_is_not_there(tmp_path: Path) -> None:
    configure(tmp_path, '[providers.x]\nbase_url = "http://127.0.0.1:1/v1"\n')
    done = codewhale_program(tmp_path, "model", "list", "--live", "--provider", "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert "could not be reached" in done.stderr
