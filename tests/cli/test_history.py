"""`codewhale history` as a person and a script call it."""

import json
from pathlib import Path

from support.program import codewhale_program
from support.repos import make_repo


def test_commits_are_found_and_told(tmp_path: Path) -> None:
    make_repo(tmp_path / "repo", {"app/keys.py": "x = 1\n"})
    told = json.loads(codewhale_program(tmp_path, "history", "keys", "-w", "repo", "--json").stdout)
    (row,) = told["results"]
    assert row["paths"] == ["app/keys.py"] and row["pull_request"] is None and told["query"] == "keys"
    done = codewhale_program(tmp_path, "history", "keys", "-w", "repo")
    assert row["sha"][:10] in done.stdout and "app/keys.py" in done.stdout
    several = codewhale_program(tmp_path, "history", "zebra", "keys", "-w", "repo", "--json")
    assert json.loads(several.stdout)["query"] == "zebra keys" and json.loads(several.stdout)["results"]
    done = codewhale_program(tmp_path, "history", "zebra", "-w", "repo")
    assert (done.returncode, done.stdout) == (0, "") and "no match. None of the 1 indexed commits" in done.stderr


def test_a_folder_without_commits_and_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.py").write_text("x = 1\n")
    done = codewhale_program(tmp_path, "history", "x", "-w", "plain")
    assert done.returncode == 0 and "no match. There are no commits" in done.stderr
    told = json.loads(codewhale_program(tmp_path, "history", "x", "-w", "plain", "--json").stdout)
    assert told["results"] == [] and told["hint"].startswith("There are no commits")
    for words in ([], [" "], ["x", "--max-results", "0"], ["x", "--max-results", "101"]):
        assert codewhale_program(tmp_path, "history", *words).returncode == 2
