"""What a patch makes of several files, worked out in memory."""

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching.plan import PatchOptions
from support.patchtext import outcome, plan


def test_created_deleted_renamed_copied_and_mode() -> None:
    patch = (
        "diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n"
        "diff --git a/e2 b/e2\ndeleted file mode 100644\nindex e69de29..0000000\n"
        "diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name\n"
        "diff --git a/src b/dst\nsimilarity index 90%\ncopy from src\ncopy to dst\n--- a/src\n+++ b/dst\n"
        "@@ -1 +1 @@\n-s\n+d\n"
        "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
    )
    before = {"e2": b"", "old name": b"x\n", "src": b"s\n", "run": b"r\n"}
    after = {"empty": b"", "new name": b"x\n", "src": b"s\n", "dst": b"d\n", "run": b"r\n"}
    assert outcome(before, patch) == after
    modes = {edit.path: edit.executable for edit in plan(before, patch).edits}
    assert modes["run"] is True and modes["empty"] is False and modes["new name"] is None


def test_the_same_file_twice_goes_on_from_the_first_result() -> None:
    one = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n"
    assert outcome({"f": b"1\n"}, one + one.replace("2", "3").replace("-1", "-2")) == {"f": b"3\n"}


def test_renames_that_swap() -> None:
    patch = (
        "diff --git a/a b/t\nrename from a\nrename to t\ndiff --git a/b b/a\nrename from b\nrename to a\n"
        "diff --git a/t b/b\nrename from t\nrename to b\n"
    )
    assert outcome({"a": b"A", "b": b"B"}, patch) == {"a": b"B", "b": b"A"}


def test_latin_1_files() -> None:
    patch = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n café\n-x\n+naïve\n"
    assert outcome({"f": b"caf\xe9\nx\n"}, patch) == {"f": b"caf\xe9\nna\xefve\n"}
    raw = b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n caf\xe9\n-x\n+na\xefve\n".decode("utf-8", "surrogateescape")
    assert outcome({"f": b"caf\xe9\nx\n"}, raw) == {"f": b"caf\xe9\nna\xefve\n"}


def test_a_path_for_hunks_without_header() -> None:
    assert outcome({"f": b"1\n"}, "@@ -1 +1 @@\n-1\n+2\n", PatchOptions(path="f")) == {"f": b"2\n"}


def test_a_deletion_must_name_every_line() -> None:
    patch = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
    assert outcome({"f": b"1\n"}, patch) == {}
    with pytest.raises(ToolError, match="leaves 2 bytes"):
        outcome({"f": b"1\n2\n"}, patch)


def test_nothing_is_created_or_moved_over_a_file() -> None:
    tree = {"f": b"1\n", "g": b"2\n"}
    for patch in (
        "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/f b/g\nrename from f\nrename to g\n",
        "diff --git a/f b/g\ncopy from f\ncopy to g\n",
    ):
        with pytest.raises(ToolError, match="exists already"):
            outcome(tree, patch)


@pytest.mark.parametrize("fuzz", [-1, 4, 50])
def test_fuzz_has_bounds(fuzz: int) -> None:
    with pytest.raises(ToolError, match="fuzz is"):
        outcome({"f": b"1\n"}, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n", PatchOptions(fuzz=fuzz))
