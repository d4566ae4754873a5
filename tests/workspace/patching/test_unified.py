"""Unified diffs as git, diff and models write them."""

import random

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching.parse import parse
from codewhale.workspace.patching.unified import file_names, unquote
from support.patchtext import outcome, plan


def test_two_files_without_a_git_header() -> None:
    patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-2\n+two\n"
    assert outcome({"f": b"1\n", "g": b"2\n"}, patch) == {"f": b"one\n", "g": b"two\n"}


def test_lines_that_look_like_headers_are_content() -> None:
    patch = "--- a/f\n+++ b/f\n@@ -1,4 +1,3 @@\n a\n--- -- dashes\n-- b/x\n+++ pluses\n c\n"
    assert outcome({"f": b"a\n-- -- dashes\n- b/x\nc\n"}, patch) == {"f": b"a\n++ pluses\nc\n"}
    patch = "--- a/f\n+++ b/f\n@@ -1,2 +1,1 @@\n--- a/g\n c\n"
    assert outcome({"f": b"-- a/g\nc\n"}, patch) == {"f": b"c\n"}


def test_plain_diff_headers() -> None:
    patch = "Index: f\n=====\n--- f\t2024-01-01 00:00:00.000 +0000\n+++ f\t2024-01-02 00:00:00\n@@ -1 +1 @@\n-1\n+one\n"
    assert outcome({"f": b"1\n"}, patch) == {"f": b"one\n"}
    patch = "--- f.orig\n+++ f\n@@ -1 +1 @@\n-1\n+one\n"
    assert outcome({"f": b"1\n"}, patch) == {"f": b"one\n"}
    patch = "--- old/f\n+++ new/f\n@@ -1 +1 @@\n-1\n+one\n"
    assert outcome({"f": b"1\n"}, patch) == {"f": b"one\n"}
    assert outcome({"a/f": b"1\n"}, "--- a/f\n+++ a/f\n@@ -1 +1 @@\n-1\n+one\n") == {"a/f": b"one\n"}


def test_quoted_names() -> None:
    assert unquote('"a/f\\303\\266o\\t\\"x\\".txt"') == 'a/föo\t"x".txt'
    assert unquote('"raw\\377"') == "raw\udcff"
    assert unquote("plain") == "plain"
    patch = '--- "a/f\\303\\266.txt"\n+++ "b/f\\303\\266.txt"\n@@ -1 +1 @@\n-1\n+2\n'
    assert outcome({"fö.txt": b"1\n"}, patch) == {"fö.txt": b"2\n"}
    assert file_names("/dev/null", "b/x y") == ("x y", "b/x y")


@pytest.mark.parametrize("header", ["@@ -1,9 +1,2 @@", "@@ -1,3 +1,9 @@", "@@ -1,1 +1,1 @@"])
def test_wrong_counts_are_put_right_and_told(header: str) -> None:
    patch = f"--- a/f\n+++ b/f\n{header}\n a\n-b\n+B\n c\n\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-1\n+2\n"
    tree = {"f": b"a\nb\nc\n", "g": b"1\n"}
    assert outcome(tree, patch) == {"f": b"a\nB\nc\n", "g": b"2\n"}
    assert plan(tree, patch).summaries[0].matched == ("exact, counts corrected",)


def test_slips_of_models() -> None:
    tree = {"f": b"a\n\nb\nc\n"}
    patch = "```diff\n--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n a\n\n-b\n+B\n c\n```\n"
    assert outcome(tree, patch) == {"f": b"a\n\nB\nc\n"}
    patch = "Here is the patch:\n\n--- a/f\n+++ b/f\n@@ def x():\n-b\n+B\n"
    assert outcome(tree, patch) == {"f": b"a\n\nB\nc\n"}
    patch = "From 1234\nSubject: x\n---\n f | 2 +-\n\n--- a/f\n+++ b/f\n@@ -3 +3 @@\n-b\n+B\n-- \n2.39.5\n"
    assert outcome(tree, patch) == {"f": b"a\n\nB\nc\n"}


def test_damaged_patches_raise_nothing_but_refusals() -> None:
    unified = (
        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@ x\n a\n-b\n+B\n+BB\n c\n@@ -9,2 +10,1 @@\n-i\n j\n"
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n"
        "\\ No newline at end of file\n"
    )
    envelope = "*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+c\n*** End of File\n*** End Patch\n"
    tree = {"f": b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"}
    rng = random.Random(7)
    done = 0
    for _ in range(3000):
        lines = rng.choice([unified, envelope]).split("\n")
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(lines))
            kind = rng.randrange(5)
            if kind == 0:
                del lines[at]
            elif kind == 1:
                lines.insert(at, rng.choice(lines or [""]))
            elif kind == 2:
                lines[at] = lines[at][: rng.randint(0, len(lines[at]))]
            elif kind == 3:
                lines[at] = lines[at] + rng.choice(["\r", "\0", " ", "\t", "é", "@@", "\udc80"])
            else:
                lines[at] = rng.choice(["+", "-", " ", "@", "\\", "*** "]) + lines[at]
            lines = lines or [""]
        try:
            outcome(tree, "\n".join(lines))
            done += 1
        except ToolError:
            continue
    assert done > 100


def test_first_lines_tell_the_format() -> None:
    for text in ("", "\n\n", "prose only", "*** x\n--- y\n"):
        with pytest.raises(ToolError) as caught:
            parse(text)
        assert caught.value.kind == "invalid_input"


@pytest.mark.parametrize(
    ("stamp", "missing"),
    [
        ("\t1970-01-01 00:00:00.000000000 +0000", True),
        ("\t1970-01-01 01:00:00 +0100", True),
        ("\t1969-12-31 19:00:00.000000000 -0500", True),
        ("  1970-01-01 00:00:00 +0000", True),
        ("\t1970-01-01 00:00:01 +0000", False),
        ("\t2026-11-01 10:00:00.5 +0100", False),
    ],
)
def test_the_epoch_stands_for_a_missing_file(stamp: str, missing: bool) -> None:
    now = "\t2026-11-01 10:00:00.5 +0100"
    create = f"--- old/d/n{stamp}\n+++ new/d/n{now}\n@@ -0,0 +1 @@\n+x\n"
    delete = f"--- old/f{now}\n+++ new/f{stamp}\n@@ -1 +0,0 @@\n-1\n"
    assert [parse(patch).files[0].kind for patch in (create, delete)] == (
        ["create", "delete"] if missing else ["update", "update"]
    )
    if missing:
        assert outcome({"f": b"1\n"}, create + delete) == {"d/n": b"x\n"}


def test_a_name_ends_before_its_time_stamp() -> None:
    stamp = "2026-11-01 10:00:00.123456789 +0100"
    for gap, name in (("\t", "a b"), ("  ", "a b"), ("\t", "tab\tname"), ("\t", "x ")):
        patch = f"--- a/{name}{gap}{stamp}\n+++ b/{name}{gap}{stamp}\n@@ -1 +1 @@\n-1\n+2\n"
        assert outcome({name: b"1\n"}, patch) == {name: b"2\n"}


def test_what_git_would_not_take_is_named() -> None:
    tree = {"d/f": b"1\n"}
    patch = "--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-1\n+2\n"
    assert plan(tree, patch).summaries[0].note == "" and plan(tree, patch).notes == ()
    assert "-p0" in plan(tree, patch.replace("a/", "").replace("b/", "")).summaries[0].note
    assert plan(tree, patch[:-1]).notes == ("the patch's last line lacks a newline",)
    assert plan(tree, patch.replace("\n", "\r\n")).notes == ("carriage returns removed from the patch",)
    assert plan({"d/f": b"1\n", "f": b"1\n"}, patch.replace("a/d", "old").replace("b/d", "new")).edits[0].path == "f"
