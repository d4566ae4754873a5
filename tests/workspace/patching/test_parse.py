"""Patches that were cut off are refused whole."""

import random
from pathlib import Path

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching.parse import parse
from support.patchcases import cut_applied, diff_of, envelope_of, scenario
from support.patchland import write_tree
from support.patchtext import outcome

TREE = {"f": b"a\nb\nc\nd\n", "g": b"1\n2\n"}
UNIFIED = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n--- a/g\n+++ b/g\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n"


@pytest.mark.parametrize("seed", range(40))
def test_no_cut_of_a_generated_patch_is_applied(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    before, after, _ = scenario(rng)
    for name, tree in (("a", before), ("b", after)):
        (tmp_path / name).mkdir()
        write_tree(tmp_path / name, tree)
    diff = diff_of(tmp_path, 3).decode()
    assert [*cut_applied(before, diff, True)] == []
    assert [*cut_applied(before, envelope_of(before, after), False)] == []


@pytest.mark.parametrize("lines", range(1, UNIFIED.count("\n")))
def test_each_cut_of_a_diff_says_what_is_missing(lines: int) -> None:
    cut = "".join(UNIFIED.splitlines(keepends=True)[:lines])
    if lines == 7:
        assert outcome(TREE, cut)["f"] == b"a\nB\nc\nd\n"
        return
    with pytest.raises(ToolError, match=r"cut off|no hunks|changes nothing") as caught:
        outcome(TREE, cut)
    assert caught.value.fix is None


def test_a_second_file_without_hunks_is_not_dropped() -> None:
    first = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"
    for more in ("--- a/g\n", "--- a/g\n+++ b/g\n", "diff --git a/g b/g\n", "diff --git a/g b/g\nindex 12..34 100644\n",
                 "diff --git a/n b/n\nnew file mode 100644\n", "diff --git a/g b/h\nsimilarity index 90%\n"
                 "rename from g\nrename to h\n", "diff --git a/g b/h\nrename from g\n",
                 "diff --git a/g b/g\nold mode 100644\n"):  # fmt: skip
        with pytest.raises(ToolError, match="cut off"):
            parse(first + more)
    for whole in ("diff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\n", "diff --git a/g b/h\n"
                  "similarity index 100%\nrename from g\nrename to h\n"):  # fmt: skip
        assert len(parse(first + whole).files) == 2
    with pytest.raises(ToolError, match="has a header and no hunks"):
        parse("--- a/g\n+++ b/g\n" + first)


def test_a_closing_fence_shows_that_nothing_was_cut() -> None:
    body = "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n-b\n+B\n"
    with pytest.raises(ToolError, match=r"declares 9 old and 9 new lines, and 2 and 2 were sent"):
        parse(body)
    with pytest.raises(ToolError, match="cut off"):
        parse("```diff\n" + body)
    assert outcome(TREE, f"```diff\n{body}```\n")["f"] == b"a\nB\nc\nd\n"


def test_an_envelope_needs_its_end() -> None:
    body = "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** Add File: n\n+new\n"
    with pytest.raises(ToolError, match=r"no line '\*\*\* End Patch' ends it; it ends in n"):
        parse(body)
    for end in ("*** End Patch", " *** End Patch", "  *** End Patch  \n", "*** End Patch\nEOF\n"):
        assert outcome(TREE, body + end) == {**TREE, "f": b"a\nB\nc\nd\n", "n": b"new\n"}
    with pytest.raises(ToolError, match="not a file header"):
        parse(body + "*** End Pat")


def test_markers_may_be_indented() -> None:
    for begin in ("*** Begin Patch", " *** Begin Patch", "Here it is:\n\n*** Begin Patch"):
        patch = begin + "\n  *** Update File: f\n@@\n-b\n+B\n*** End Patch\n  *** Delete File: g\n*** End Patch\n"
        assert outcome(TREE, patch) == {"f": b"a\nB\nc\nd\n"}
    whole = "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+B\n*** Add File: n\n+x\n*** End Patch\n"
    indented = "".join(f"    {line}\n" for line in whole.splitlines())
    assert outcome(TREE, indented) == outcome(TREE, whole)


def test_a_second_envelope_is_not_dropped() -> None:
    one = "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** End Patch\n"
    two = "*** Begin Patch\n*** Delete File: g\n*** End Patch\n"
    assert outcome(TREE, one + "\nand then\n" + two) == {"f": b"a\nB\nc\nd\n"}
    with pytest.raises(ToolError, match="cut off"):
        parse(one + two.replace("*** End Patch\n", ""))
    with pytest.raises(ToolError, match="another patch format"):
        parse("--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n" + one)
