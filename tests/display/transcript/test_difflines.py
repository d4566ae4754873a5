"""Diffs: numbers, signs, what changed, whatever the lines look like."""

from codewhale.display.transcript.calls import counts
from codewhale.display.transcript.code import Highlighter, diff_lines, diff_rows
from support.transcripts import DIFF


def test_rows_and_numbers() -> None:
    assert [(row.sign, row.number) for row in diff_rows(DIFF)] == [
        ("f", 0), ("@", 0), (" ", 10), ("-", 11), ("+", 11), ("+", 12), (" ", 13)
    ]  # fmt: skip
    assert counts(DIFF) == (2, 1)


def test_lines() -> None:
    lines = diff_lines(diff_rows(DIFF), "src/parse.py", 50, Highlighter(), named=False)
    assert [line.text for line in lines] == [
        " ⋯ def parse(text):",
        '10       lines = text.split("\\n")',
        "11 -     return lines[0]",
        "11 +     head = lines[0]",
        "12 +     return head.strip()",
        "13       # the end",
    ]
    assert lines[2].fill == "on:removed_background" and lines[3].fill == "on:added_background"


def test_what_changed_inside_a_line_is_set_off() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-the old word here\n+the new word here\n"
    lines = diff_lines(diff_rows(diff), "x", 60, Highlighter(), named=False)
    assert [[text for text, style in line.spans if "underline" in style] for line in lines] == [["old"], ["new"]]


def test_lines_that_look_like_headers_are_lines() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a\n-@@ -1 +1 @@\n+++ b\n+@@ -2 +2 @@\n"
    assert [(row.sign, row.text) for row in diff_rows(diff)][1:] == [
        ("-", "-- a"), ("-", "@@ -1 +1 @@"), ("+", "++ b"), ("+", "@@ -2 +2 @@")
    ]  # fmt: skip


def test_several_files_are_named() -> None:
    rows = diff_rows(DIFF + DIFF.replace("parse.py", "other.js"))
    assert [row.text for row in rows if row.sign == "f"] == ["src/parse.py", "src/other.js"]


def test_rows_are_bounded_and_safe() -> None:
    diff = "@@ -1,9 +1,9 @@\n" + "+" + "x" * 10_000 + "\x1b[2J\n" + "+y\x1b[31m\n" * 8
    rows = diff_rows(diff, 3)
    assert len(rows) == 3 and 2_000 <= len(rows[0].text) < 2_030 and " … +8,00" in rows[0].text
    assert "\x1b" not in "".join(line.text for line in diff_lines(rows, "x", 60, Highlighter()))
