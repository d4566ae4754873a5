"""Whole patches on real folders: the outside cases, and everything git can do with a thousand generated ones."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching import PatchOptions, apply_patch, replace_files
from support.patchcases import against_git
from support.patchland import SUITES, read_tree, workspace, write_tree

CASES = sorted((SUITES / "apply_patch").glob("[0-9]*")) if (SUITES / "apply_patch").is_dir() else []
ALL_OR_NOTHING = "015_failure_after_partial_success_leaves_changes"


@pytest.mark.skipif(not CASES, reason="the apply_patch suite is not beside the project; CODEWHALE_SUITES names it")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_outside_case(case: Path, tmp_path: Path) -> None:
    before = read_tree(case / "input") if (case / "input").is_dir() else {}
    wanted = read_tree(case / "expected") if (case / "expected").is_dir() else {}
    if case.name == ALL_OR_NOTHING:
        wanted = before
    root = tmp_path / "w"
    write_tree(root, before)
    space = workspace(root, tmp_path / "store")
    try:
        apply_patch(space, "s", (case / "patch.txt").read_text())
    except ToolError:
        assert wanted == before
    assert read_tree(root) == wanted


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of syncs are not what is tested."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("seed", range(4))
def test_generated_patches_do_what_git_does(seed: int, quick: Path) -> None:
    tally = against_git(range(seed * 100, seed * 100 + 100), quick)
    assert not tally.disagreements, tally.disagreements[0]
    assert tally.counts["agreed"] >= 60 and tally.counts["ambiguous"] <= 5, tally.counts


def test_all_or_nothing_over_files(tmp_path: Path) -> None:
    tree = {"a.txt": b"one\n", "b.txt": b"two\n"}
    write_tree(tmp_path / "w", tree)
    space = workspace(tmp_path / "w", tmp_path / "store")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-nope\n+TWO\n"
    with pytest.raises(ToolError, match=r"b\.txt: hunk 1/1 does not match"):
        apply_patch(space, "s", patch)
    assert read_tree(tmp_path / "w") == tree


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    write_tree(tmp_path / "w", {"a.txt": b"one\n"})
    space = workspace(tmp_path / "w", tmp_path / "store")
    result = apply_patch(space, "", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n", PatchOptions(dry_run=True))
    assert result.report["dry_run"] and result.report["hunks_applied"] == 1
    assert read_tree(tmp_path / "w") == {"a.txt": b"one\n"}


def test_options_and_contents(tmp_path: Path) -> None:
    write_tree(tmp_path / "w", {"real.txt": b"one\n"})
    space = workspace(tmp_path / "w", tmp_path / "store")
    result = apply_patch(space, "s", "@@ -1 +1 @@\n-one\n+ONE\n", PatchOptions(path="real.txt"))
    assert result.preflight["path_override"] == "real.txt" and not result.preflight["header_path_mismatch"]
    result = apply_patch(space, "s", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-ONE\n+two\n", PatchOptions(path="real.txt"))
    assert result.preflight["header_path_mismatch"]
    insert = "--- a/new.txt\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n"
    with pytest.raises(ToolError, match="no such file"):
        apply_patch(space, "s", insert, PatchOptions())
    assert apply_patch(space, "s", insert, PatchOptions(create_if_missing=True)).report["file_summaries"][0]["created"]
    replace_files(space, "s", [("real.txt", "three"), ("d/e.txt", "four\n")])
    assert read_tree(tmp_path / "w") == {"real.txt": b"three", "new.txt": b"hello\n", "d/e.txt": b"four\n"}
