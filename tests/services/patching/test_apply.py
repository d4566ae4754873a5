"""Whole patches on real folders: the outside cases, and everything git can do with a thousand generated ones."""

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.services.patching import Options, apply_patch, apply_patch_text, replace_files
from support.patchland import SUITES, Tree, git, read_tree, workspace, write_tree

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
        apply_patch_text(space, "s", (case / "patch.txt").read_text())
    except ToolError:
        assert wanted == before
    assert read_tree(root) == wanted


WORDS = ["alpha", "beta", "gamma", "delta", "return x", "    if y:", "\tpass", "", "}", "-- dashes", "++ pluses", "é"]


def some_lines(rng: random.Random, count: int) -> list[str]:
    return [f"{rng.choice(WORDS)} {rng.randrange(60)}".rstrip() if rng.random() < 0.8 else "" for _ in range(count)]


def join(rng: random.Random, lines: list[str], end: str) -> bytes:
    text = end.join(lines) + (end if lines and rng.random() < 0.8 else "")
    return text.encode()


def edited(rng: random.Random, lines: list[str]) -> list[str]:
    out = list(lines)
    for _ in range(rng.randint(1, 5)):
        at = rng.randint(0, len(out))
        kind = rng.random()
        if kind < 0.4:
            out[at:at] = some_lines(rng, rng.randint(1, 3))
        elif kind < 0.7:
            del out[at : at + rng.randint(1, 3)]
        elif at < len(out):
            out[at] = out[at] + " changed"
    return out


def scenario(rng: random.Random) -> tuple[Tree, Tree, Tree]:
    """(before, after, where the patch is tried: before, with lines put in here and there)"""
    before: Tree = {}
    after: Tree = {}
    tried: Tree = {}
    for number in range(rng.randint(1, 4)):
        name = (
            rng.choice(["", "src/", "a b/", "b/"]) + rng.choice(["f", "naïve", 'q"uote', "tab\tname"]) + f"{number}.txt"
        )
        end = "\r\n" if rng.random() < 0.2 else "\n"
        lines = some_lines(rng, rng.randint(0, 60))
        data = join(rng, lines, end)
        fate = rng.random()
        if fate < 0.1:
            after[name] = data
            continue
        before[name] = tried[name] = data
        if fate < 0.2:
            continue
        target = "moved/" + name if fate < 0.3 else name
        after[target] = join(rng, edited(rng, lines), end)
        if rng.random() < 0.3 and data:
            shift = [f"put in {i}" for i in range(rng.randint(1, 8))]
            tried[name] = end.join([*shift, ""]).encode() + data
    return before, after, tried


def diff_of(base: Path, context: int) -> bytes:
    """The diff from folder a to folder b as git would tell it of one repository."""
    diff = git(base, "diff", "--no-index", "--src-prefix=", "--dst-prefix=", f"-U{context}", "-M30%", "a", "b").stdout
    for word in (b"from", b"to"):
        for side in (b"a/", b"b/", b'"a/', b'"b/'):
            diff = diff.replace(b"\nrename %s %s" % (word, side), b"\nrename %s %s" % (word, side.strip(b"ab/")))
    return diff


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of syncs are not what is tested."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("seed", range(10))
def test_generated_patches_do_what_git_does(seed: int, quick: Path) -> None:
    applied = agreed = renamed = ambiguous = refused = named = 0
    for round_ in range(100):
        rng = random.Random(seed * 1000 + round_)
        before, after, tried = scenario(rng)
        base = quick / str(round_)
        for name, tree in (("a", before), ("b", after), ("git", tried), ("ours", tried)):
            (base / name).mkdir(parents=True)
            write_tree(base / name, tree)
        diff = diff_of(base, rng.choice([1, 3, 3, 3]))
        if not diff:
            continue
        theirs = git(base / "git", "apply", "--whitespace=nowarn", "-", stdin=diff)
        space = workspace(base / "ours", quick / "store")
        try:
            report = apply_patch_text(space, "s", diff.decode()).report
        except ToolError as error:
            if theirs.returncode:
                refused += 1
            else:
                assert "fits" in error.message, (seed, round_, error.message, diff.decode())
                ambiguous += 1
            assert read_tree(base / "ours") == tried
            continue
        if theirs.returncode:
            odd = [how for file in report["file_summaries"] for how in file["matched"] if how != "exact"]
            assert odd, (seed, round_, theirs.stderr.decode(), diff.decode())
            named += 1
            continue
        applied += 1
        renamed += b"\nrename from" in diff
        if report["hunks_total"]:
            agreed += 1
        assert read_tree(base / "ours") == read_tree(base / "git"), (seed, round_, diff.decode())
    assert applied >= 60 and ambiguous <= 5


def test_all_or_nothing_over_files(tmp_path: Path) -> None:
    tree = {"a.txt": b"one\n", "b.txt": b"two\n"}
    write_tree(tmp_path / "w", tree)
    space = workspace(tmp_path / "w", tmp_path / "store")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-nope\n+TWO\n"
    with pytest.raises(ToolError, match=r"b\.txt: hunk 1/1 does not match"):
        apply_patch_text(space, "s", patch)
    assert read_tree(tmp_path / "w") == tree


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    write_tree(tmp_path / "w", {"a.txt": b"one\n"})
    space = workspace(tmp_path / "w", tmp_path / "store")
    result = apply_patch_text(space, "", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n", dry_run=True)
    assert result.report["dry_run"] and result.report["hunks_applied"] == 1
    assert read_tree(tmp_path / "w") == {"a.txt": b"one\n"}


def test_options_and_contents(tmp_path: Path) -> None:
    write_tree(tmp_path / "w", {"real.txt": b"one\n"})
    space = workspace(tmp_path / "w", tmp_path / "store")
    result = apply_patch(space, "s", "@@ -1 +1 @@\n-one\n+ONE\n", Options(path="real.txt"))
    assert result.preflight["path_override"] == "real.txt" and not result.preflight["header_path_mismatch"]
    result = apply_patch(space, "s", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-ONE\n+two\n", Options(path="real.txt"))
    assert result.preflight["header_path_mismatch"]
    insert = "--- a/new.txt\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n"
    with pytest.raises(ToolError, match="no such file"):
        apply_patch(space, "s", insert, Options())
    assert apply_patch(space, "s", insert, Options(create_if_missing=True)).report["file_summaries"][0]["created"]
    replace_files(space, "s", [("real.txt", "three"), ("d/e.txt", "four\n")])
    assert read_tree(tmp_path / "w") == {"real.txt": b"three", "new.txt": b"hello\n", "d/e.txt": b"four\n"}
