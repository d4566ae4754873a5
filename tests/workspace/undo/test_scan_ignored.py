"""Which files ignore rules hid, by the rules as they were."""

from pathlib import Path

import pytest

from codewhale.lib.beneath import Root
from codewhale.workspace.undo.scan import ignored_before, is_rule_file
from support.repos import make_repo


@pytest.fixture(autouse=True)
def _no_personal_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))


def test_the_rules_of_the_disk_and_those_that_were_there_before(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "d" / ".gitignore").write_text("!keep.log\nprivate/\n")
    root = Root(str(tmp_path))
    paths = ["a.log", "d/keep.log", "d/x.log", "d/private/x", "d/e/x", "a"]
    assert ignored_before(root, paths, {}) == {"a.log", "d/x.log", "d/private/x"}
    assert ignored_before(root, paths, {".gitignore": b""}) == {"d/private/x"}
    assert ignored_before(root, paths, {"d/.gitignore": b"e\n"}) == {"a.log", "d/keep.log", "d/x.log", "d/e/x"}


def test_the_repositorys_own_exclude_file_counts(tmp_path: Path) -> None:
    make_repo(tmp_path, {"a": "1"})
    (tmp_path / ".git" / "info").mkdir(exist_ok=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("secret*\n")
    assert ignored_before(Root(str(tmp_path)), ["secret.txt", "a"], {}) == {"secret.txt"}


def test_rule_files() -> None:
    assert [is_rule_file(path) for path in (".gitignore", "d/.ignore", "gitignore")] == [True, True, False]
