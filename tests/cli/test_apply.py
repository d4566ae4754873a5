"""`codewhale apply` as a script calls it."""

import json
import re
from pathlib import Path

import pytest

from support.program import codewhale_program

ENVELOPE = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: new/b.txt\n+fresh\n*** End Patch\n"
UNIFIED = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


@pytest.mark.parametrize("patch", [ENVELOPE, UNIFIED])
def test_both_formats_apply_without_git(tmp_path: Path, work: Path, patch: str) -> None:
    done = codewhale_program(tmp_path, "apply", "-w", "work", stdin=patch.encode())
    assert (done.returncode, done.stderr) == (0, "")
    assert (work / "a.txt").read_text() == "two\n"
    assert re.match(r"Applied \d files?, \d hunks?: a\.txt changed", done.stdout)


def test_json_is_the_tools_report(tmp_path: Path, work: Path) -> None:
    done = codewhale_program(tmp_path, "apply", "--json", cwd=work, stdin=ENVELOPE.encode())
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert report["success"] is True
    assert report["touched_files"] == ["a.txt", "new/b.txt"]
    assert (report["files_applied"], report["files_total"]) == (2, 2)
    assert (work / "new" / "b.txt").read_text() == "fresh\n"


def test_a_dry_run_changes_nothing(tmp_path: Path, work: Path) -> None:
    done = codewhale_program(tmp_path, "apply", "--dry-run", cwd=work, stdin=ENVELOPE.encode())
    assert done.returncode == 0
    assert [path.name for path in work.iterdir()] == ["a.txt"]
    assert (work / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    "patch",
    [
        b"",
        b"not a patch",
        b"\xff\xfe",
        UNIFIED.replace("-one", "-other").encode(),
        ENVELOPE.replace("new/b.txt", "../b.txt").encode(),
        ENVELOPE.replace("new/b.txt", "/tmp/b.txt").encode(),
        ENVELOPE.replace("new/b.txt", ".git/config").encode(),
    ],
)
def test_a_refusal_changes_nothing(tmp_path: Path, work: Path, patch: bytes) -> None:
    done = codewhale_program(tmp_path, "apply", cwd=work, stdin=patch)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("codewhale apply: refused, nothing was changed: ")
    assert (work / "a.txt").read_text() == "one\n"
    assert [path.name for path in work.iterdir()] == ["a.txt"]
    assert not (tmp_path / "b.txt").exists()


def test_a_refusal_is_told_to_programs(tmp_path: Path, work: Path) -> None:
    done = codewhale_program(tmp_path, "apply", "--json", cwd=work, stdin=UNIFIED.replace("-one", "-x").encode())
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["success"] is False
    assert set(report["error"]) == {"kind", "message", "field", "expected", "received"}


@pytest.mark.parametrize("arguments", [[], ["--fuzz", "3"], ["file.patch"], ["-w", "nowhere"]])
def test_wrong_usage_is_exit_2(tmp_path: Path, arguments: list[str]) -> None:
    done = codewhale_program(tmp_path, "apply", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("codewhale apply: ")
