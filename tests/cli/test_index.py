"""`codewhale index` as a script calls it."""

import json
import os
from pathlib import Path

import pytest

from support.program import codewhale_program

KEYS = "root db state files chunks symbols bytes languages branch head built_at age_s coverage skipped".split()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.py").write_text("def f(): pass\n")
    return tmp_path / "tree"


def test_build_and_status(tree: Path, tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "index", "-w", "tree", "--json")
    told = json.loads(done.stdout)
    assert set(KEYS) <= set(told) and told["state"] == "ready" and told["root"] == os.path.realpath(tree)
    done = codewhale_program(tmp_path, "index", "-w", "tree", "--status", "--json")
    assert json.loads(done.stdout)["files"] == 1 and done.returncode == 0


def test_text_and_warnings(tree: Path, tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "index", "-w", "tree", "--status")
    assert "state      absent" in done.stdout and "no index yet" in done.stderr and done.returncode == 0
    done = codewhale_program(tmp_path, "index", "-w", "tree", "--rebuild")
    assert "files      1" in done.stdout and "languages  python 1" in done.stdout and done.stderr == ""


def test_wrong_usage(tree: Path, tmp_path: Path) -> None:
    assert codewhale_program(tmp_path, "index", "-w", "none").returncode == 2
    done = codewhale_program(tmp_path, "index", "--status", "--rebuild")
    assert (done.returncode, done.stdout) == (2, "")
