"""apply_patch as a model meets it: its report, its refusals, and that each suggested call works."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import PathSubject, ToolResult
from codewhale.tools.base import BoundTool, bound, specs
from codewhale.tools.files import FileTools
from codewhale.tools.patch import ApplyPatch, PatchTools
from codewhale.workspace.files import Workspaces
from support.fixcheck import invoke, refused
from support.patchland import read_tree, write_tree

Call = Callable[..., Awaitable[ToolResult]]
Refusal = Callable[..., Awaitable[ToolError]]
GOOD = "--- a/ok.txt\n+++ b/ok.txt\n@@ -1 +1 @@\n-ok\n+OK\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_bytes(b"secret\n")
    return tmp_path / "w"


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, BoundTool]:
    spaces = Workspaces(ArtifactStore(str(tmp_path / "store")))
    return {**bound(FileTools(spaces)), **bound(PatchTools(spaces))}


@pytest.fixture
def call(tools: dict[str, BoundTool], root: Path) -> Call:
    return lambda **values: invoke(tools, str(root), "apply_patch", **values)


@pytest.fixture
def deny(tools: dict[str, BoundTool], root: Path) -> Refusal:
    return lambda **values: refused(tools, str(root), "apply_patch", **values)


def test_declaration() -> None:
    (row,) = specs(PatchTools, "patch")
    assert sorted(row.parameters["properties"]) == ["changes", "create_if_missing", "fuzz", "patch", "path"]
    assert row.parameters["required"] == [] and "oneOf" not in row.parameters and "anyOf" not in row.parameters
    assert row.parameters["properties"]["fuzz"]["maximum"] == 3


async def test_the_report_and_the_preflight(call: Call, root: Path) -> None:
    write_tree(root, {"a.py": b"one\ntwo\nthree\n", "gone.py": b"x\n", "old.py": b"1\n2\n3\n"})
    patch = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
        "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/n.sh b/n.sh\nnew file mode 100755\n--- /dev/null\n+++ b/n.sh\n@@ -0,0 +1 @@\n+echo\n"
        "diff --git a/old.py b/new.py\nsimilarity index 50%\nrename from old.py\nrename to new.py\n"
        "--- a/old.py\n+++ b/new.py\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n"
    )
    result = await call(patch=patch)
    report = json.loads(result.content)
    assert {key: report[key] for key in list(report)[:7]} == {
        "success": True,
        "files_applied": 4,
        "files_total": 4,
        "hunks_applied": 4,
        "hunks_total": 4,
        "fuzz_used": 0,
        "hunks_with_fuzz": 0,
    }
    assert report["touched_files"] == ["a.py", "gone.py", "n.sh", "new.py"]
    summaries = {row["path"]: row for row in report["file_summaries"]}
    assert summaries["a.py"] == {
        "path": "a.py", "hunks": 1, "hunks_applied": 1, "fuzz_used": 0, "hunks_with_fuzz": 0, "created": False,
        "deleted": False, "moved_from": "", "matched": ["exact"],
    }  # fmt: skip
    assert summaries["gone.py"]["deleted"] and summaries["n.sh"]["created"]
    assert summaries["new.py"]["moved_from"] == "old.py" and not summaries["new.py"]["created"]
    assert result.metadata == {
        "event": "apply_patch.preflight",
        "touched_files": ["a.py", "gone.py", "n.sh", "old.py", "new.py"],
        "files_total": 4,
        "hunks_total": 4,
        "creates": 1,
        "deletes": 1,
        "path_override": None,
        "header_path_mismatch": False,
    }
    assert sorted((c.path, c.before is None, c.after is None) for c in result.changes) == [
        ("a.py", False, False),
        ("gone.py", False, True),
        ("n.sh", True, False),
        ("new.py", True, False),
        ("old.py", False, True),
    ]
    assert len(result.display) == 5 and os.access(root / "n.sh", os.X_OK)
    assert read_tree(root) == {"a.py": b"one\nTWO\nthree\n", "n.sh": b"echo\n", "new.py": b"1\nzwei\n3\n"}


async def test_whole_files(call: Call, deny: Refusal, root: Path) -> None:
    result = await call(changes=[{"path": "new/b", "content": "x"}, {"path": "c", "content": "y\n"}])
    report = json.loads(result.content)
    assert report["touched_files"] == ["new/b", "c"] and report["hunks_total"] == 0
    assert [row["created"] for row in report["file_summaries"]] == [True, True]
    assert read_tree(root) == {"new/b": b"x", "c": b"y\n"}
    await deny(changes=[{"path": "c", "content": "changed"}, {"path": "../out/f", "content": "PWNED"}])
    await deny(changes=[{"path": "c", "content": "changed"}, {"path": "new", "content": "a folder"}])
    await deny(changes=[{"path": "c", "content": "\ud83d"}])
    assert read_tree(root) == {"new/b": b"x", "c": b"y\n"}


async def test_modes_are_not_mixed(deny: Refusal, root: Path) -> None:
    (root / "ok.txt").write_bytes(b"ok\n")
    assert (await deny()).received == "neither"
    assert (await deny(patch=GOOD, changes=[])).received == "both"
    error = await deny(patch=GOOD + GOOD.replace("ok.txt", "b.txt"), path="ok.txt")
    assert "2 files" in error.message
    assert read_tree(root) == {"ok.txt": b"ok\n"}


HOSTILE = ["../x", "/etc/x", "a/../../x", "C:\\x", "\\\\srv\\x", "//srv/x", "x.", "dir./x", "..\\x", "~/x", "leaf",
           "dir/f", "dir/new", "dangling", ".git/config", ".codewhale/config.toml"]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE)
async def test_b1_b2_a_patch_with_one_hostile_path_changes_nothing(deny: Refusal, root: Path, path: str) -> None:
    (root / "ok.txt").write_bytes(b"ok\n")
    (root / "leaf").symlink_to("../out/f")
    (root / "dir").symlink_to("../out")
    (root / "dangling").symlink_to("../out/made")
    shape = sorted(os.listdir(root))
    patches = [
        f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-secret\n+PWNED\n",
        f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-secret\n+PWNED\n",
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+PWNED\n",
        f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-secret\n",
        f"diff --git a/ok.txt b/y\nrename from ok.txt\nrename to {path}\n",
        f"diff --git a/ok.txt b/y\ncopy from ok.txt\ncopy to {path}\n",
        f"diff --git a/x b/y\nrename from {path}\nrename to y\n",
    ]
    steps = [
        f"*** Add File: {path}\n+PWNED\n",
        f"*** Delete File: {path}\n",
        f"*** Update File: {path}\n@@\n-secret\n+PWNED\n",
        f"*** Update File: ok.txt\n*** Move to: {path}\n@@\n-ok\n+PWNED\n",
        f"*** Update File: {path}\n*** Move to: y\n@@\n-secret\n+PWNED\n",
    ]
    patches = [GOOD + patch for patch in patches]
    patches += [f"*** Begin Patch\n*** Add File: new\n+x\n{step}*** End Patch\n" for step in steps]
    for patch in patches:
        error = await deny(patch=patch)
        assert error.kind in ("path_escape", "permission_denied", "execution_failed"), error.message
        if error.kind == "execution_failed":
            assert "no such file" in error.message or "exists already" in error.message
    await deny(patch=GOOD, path=path)
    await deny(changes=[{"path": "new", "content": "x"}, {"path": path, "content": "PWNED"}])
    assert sorted(os.listdir(root)) == shape and (root / "ok.txt").read_bytes() == b"ok\n"
    assert read_tree(root.parent / "out") == {"f": b"secret\n"}


async def test_b1_a_nul_in_a_path(deny: Refusal, root: Path) -> None:
    assert (await deny(patch="--- a/x\0y\n+++ b/x\0y\n@@ -0,0 +1 @@\n+PWNED\n")).kind == "path_escape"
    assert (await deny(patch="*** Begin Patch\n*** Add File: a\0b\n+x\n*** End Patch")).kind == "path_escape"


async def test_b6_special_files(deny: Refusal, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "d").mkdir()
    with open(root / "sparse", "wb") as stream:
        stream.truncate(100 * 1024**3)
    for name in ("pipe", "d", "sparse"):
        await deny(patch=GOOD.replace("ok.txt", name))
        await deny(patch=f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n")
        await deny(changes=[{"path": name, "content": "x"}])


async def test_b9_a_file_that_changed_since_it_was_read(
    call: Call, deny: Refusal, tools: dict[str, BoundTool], root: Path
) -> None:
    (root / "ok.txt").write_bytes(b"ok\n")
    await invoke(tools, str(root), "read_file", path="ok.txt")
    (root / "ok.txt").write_bytes(b"ok\nmore\n")
    error = await deny(patch=GOOD)
    assert "changed on disk" in error.message and "preflight" in error.metadata["event"]
    await call(patch=GOOD)
    assert (root / "ok.txt").read_bytes() == b"OK\nmore\n"


@pytest.mark.parametrize(
    "patch",
    ["", "   \n", "hello", "*** Begin Patch\n*** End Patch", "--- a/f\n+++ b/f\n",
     "--- a/f\n+++ b/f\n@@ -x +1 @@\n-a\n+b\n",
     "@@ -1 +1 @@\n-a\n+b\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\nb\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n a\n",
     "diff --git a/f b/f\nGIT binary patch\nliteral 1\n", "Binary files a/f and b/f differ\n",
     "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n",
     "*** a/f\n--- b/f\n***************\n", "*** Begin Patch\n*** Frobnicate: x\n*** End Patch",
     "*** Begin Patch\n*** Update File: f\nwrong\n*** End Patch",
     "*** Begin Patch\n*** Add File: n\nno plus\n*** End Patch",
     "*** Begin Patch\n*** Update File: f\n@@\n a\n*** End Patch",
     "--- a/nothing\n+++ b/nothing\n@@ -1 +1 @@\n-a\n+b\n",
     "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+again\n", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
     "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-nope\n+b\n", "--- a/twice\n+++ b/twice\n@@ -9 +9 @@\n-x\n+y\n",
     "--- a/latin\n+++ b/latin\n@@ -1 +1 @@\n-caf\u00e9\n+\u20ac\n",
     "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -1,2 +1,2 @@\n-a\n+AA\n b\n"],
)  # fmt: skip
async def test_bad_patches_are_refused_with_a_way_on(deny: Refusal, root: Path, patch: str) -> None:
    tree = {"f": b"a\nb\n", "twice": b"x\n1\nx\n", "latin": b"caf\xe9\n"}
    write_tree(root, tree)
    assert (await deny(patch=patch)).field == "patch"
    assert read_tree(root) == tree


def test_subjects_name_every_path() -> None:
    def paths(**values: object) -> list[str]:
        args = ApplyPatch(**values)  # type: ignore[arg-type]
        subjects = bound(PatchTools(Workspaces(ArtifactStore("/nonexistent"))))["apply_patch"].decl.subjects(args)
        assert all(isinstance(subject, PathSubject) and subject.write for subject in subjects)
        return [subject.path for subject in subjects if isinstance(subject, PathSubject)]

    assert paths(patch=GOOD) == ["ok.txt"]
    assert paths(patch="diff --git a/x b/y\nrename from x\nrename to y\n") == ["x", "y"]
    assert paths(
        patch="*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Delete File: c\n*** End Patch\n"
    ) == [
        "a",
        "b",
        "c",
    ]
    assert paths(patch="nonsense") == ["."]
    assert paths(patch=GOOD, path="other") == ["other"]
