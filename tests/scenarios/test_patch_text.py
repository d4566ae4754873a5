"""Patches as models spoil them: what is not understood is refused whole, and counts that are wrong lose no hunk."""

from pathlib import Path

import pytest

from codewhale.protocol.errors import ToolError
from support.jail import call, played
from support.patchtext import outcome, plan

GOOD = "*** Update File: f\n@@\n-b\n+B\n"
VERBS = (
    "*** Rename File: f", "*** Create File: g", "*** Remove File: f", "*** Modify File: f", "*** Add Folder: g",
    "*** update file: f", "*** Update: f", "*** Update File f", "*** f", "***", "*** Chmod File: f",
)  # fmt: skip
EMPTY = tuple(f"*** {verb} File{end}" for verb in ("Add", "Update", "Delete") for end in ("", ":", ": ", ":  \t"))


@pytest.mark.parametrize("header", [*VERBS, *EMPTY])
@pytest.mark.parametrize("body", ["", "@@\n-b\n+B\n", "+new\n"])
def test_an_unknown_verb_or_an_empty_path_refuses_the_whole_patch(header: str, body: str) -> None:
    for parts in (f"{GOOD}{header}\n{body}", f"*** Add File: first\n+1\n{header}\n{body}{GOOD}"):
        with pytest.raises(ToolError) as caught:
            outcome({"f": b"a\nb\n"}, f"*** Begin Patch\n{parts}*** End Patch\n")
        assert (caught.value.kind, caught.value.field) == ("invalid_input", "patch")


@pytest.mark.parametrize("header", ["*** Rename File: f", "*** Delete File:", "*** Add File: "])
async def test_of_a_refused_patch_no_file_is_changed(header: str, home: Path, workspace: Path) -> None:
    (workspace / "f").write_text("a\nb\n")
    patch = f"*** Begin Patch\n*** Add File: g\n+1\n{GOOD}{header}\n+2\n*** End Patch\n"
    (result,) = await played(home, workspace, call("apply_patch", patch=patch))
    assert (result.ok, result.error) == (False, "invalid_input") and header.strip() in result.content
    assert [path.name for path in workspace.iterdir()] == ["f"] and (workspace / "f").read_text() == "a\nb\n"


FIRST = " one\n-two\n+TWO\n+and\n three\n"
SECOND = "@@ -11,3 +12,3 @@\n eleven\n-twelve\n+TWELVE\n thirteen\n"
NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
).split()  # fmt: skip


def test_whatever_counts_a_first_hunk_declares_both_hunks_apply() -> None:
    """Three old lines and four new ones stand in it, and three of each in the second."""
    text = "".join(f"{word}\n" for word in NUMBERS).encode()
    wanted = text.replace(b"two\n", b"TWO\nand\n", 1).replace(b"twelve\n", b"TWELVE\n")
    wrong = []
    for old in range(12):
        for new in range(12):
            patch = f"--- a/f\n+++ b/f\n@@ -1,{old} +1,{new} @@\n{FIRST}{SECOND}"
            done = plan({"f": text}, patch)
            how = "exact" if (old, new) == (3, 4) else "exact, counts corrected"
            if outcome({"f": text}, patch) != {"f": wanted} or done.summaries[0].matched != (how, "exact"):
                wrong.append((old, new, done.summaries[0].matched))
    assert wrong == []


@pytest.mark.parametrize("counts", ["1,9 +1,9", "1,7 +1,8", "1,3 +1,3", "1,1 +1,1", "1,0 +1,0", "1 +1", "9,2 +40,7"])
async def test_wrong_counts_lose_no_hunk_of_a_file(counts: str, home: Path, workspace: Path) -> None:
    (workspace / "f").write_text("".join(f"{word}\n" for word in NUMBERS))
    patch = f"--- a/f\n+++ b/f\n@@ -{counts} @@\n{FIRST}{SECOND}"
    (result,) = await played(home, workspace, call("apply_patch", patch=patch))
    lines = (workspace / "f").read_text().split()
    assert result.ok and "counts corrected" in result.content
    assert lines[:4] == ["one", "TWO", "and", "three"] and lines[11:14] == ["eleven", "TWELVE", "thirteen"]
    assert len(lines) == len(NUMBERS) + 1
