"""Diffs that people and models read are diffs that git applies."""

import random
from pathlib import Path

from codewhale.workspace.patching import unified_diff
from support.patchland import git, read_tree, write_tree


def test_diffs_apply_with_git(tmp_path: Path) -> None:
    rng = random.Random(11)
    before, after, text = {}, {}, ""
    for number in range(150):
        lines = [str(rng.randrange(20)) for _ in range(rng.randint(0, 30))]
        new = list(lines)
        for _ in range(rng.randint(1, 4)):
            at = rng.randint(0, len(new))
            new[at : at + rng.randint(0, 2)] = [str(rng.randrange(20)) for _ in range(rng.randint(0, 2))]
        old = "\n".join(lines) + ("\n" if lines and rng.random() < 0.7 else "")
        now = "\n".join(new) + ("\n" if new and rng.random() < 0.7 else "")
        if old and now and old != now:
            name = f"f{number}"
            before[name], after[name] = old.encode(), now.encode()
            text += unified_diff(name, before[name], after[name])
    write_tree(tmp_path, before)
    done = git(tmp_path, "apply", "--whitespace=nowarn", "-", stdin=text.encode())
    assert done.returncode == 0, done.stderr
    assert read_tree(tmp_path) == after


def test_forms() -> None:
    assert unified_diff("f", b"x", b"x") == ""
    assert unified_diff("f", None, b"a\n") == "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
    assert unified_diff("f", b"a\n", None) == "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert "Binary content: 3 bytes before, 1 bytes now" in unified_diff("f", b"a\0b", b"x")
    assert unified_diff("f", b"caf\xe9\n", b"x\n").splitlines()[3] == "-café"
    cut = unified_diff("f", b"", b"long line\n" * 10_000, 2000)
    assert len(cut) < 2100 and cut.endswith("... (diff cut at 2,000 characters)\n")


def test_what_is_too_long_to_compare_is_shown_whole_and_soon() -> None:
    old = b"same\n" * 10 + b"".join(b"old %d\n" % n for n in range(6000)) + b"tail\n" * 10
    new = b"same\n" * 10 + b"".join(b"new %d\n" % n for n in range(6000)) + b"tail\n" * 10
    diff = unified_diff("f", old, new, 10_000_000)
    assert diff.splitlines()[2] == "@@ -8,6006 +8,6006 @@" and diff.count("\n-") == 6000
