"""Patches applied to texts in memory."""

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching.parse import parse
from codewhale.workspace.patching.plan import PatchFiles, PatchOptions, PatchPlan, make_plan

HEAD = "--- a/f\n+++ b/f\n"


def hunk(body: str, start: int = 1, heading: str = "") -> str:
    """A hunk with its counts."""
    lines = body.splitlines()
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    return f"@@ -{start},{old} +{start},{new} @@{heading}\n{body}"


class Memory:
    """A workspace in memory, where every name is taken as it is."""

    def __init__(self, tree: dict[str, bytes]) -> None:
        self.load = tree.get

    def relative(self, path: str) -> str:
        """The path itself."""
        return path

    def missing(self, path: str) -> ToolError:
        """The error for a missing file."""
        return ToolError("execution_failed", f"no such file: {path}")

    def check_name(self, path: str) -> None:
        """Any name will do."""


def plan(tree: dict[str, bytes], patch: str, options: PatchOptions | None = None) -> PatchPlan:
    """Work a patch out against files by name."""
    files = PatchFiles(Memory(tree))
    return make_plan(parse(patch), files, options or PatchOptions(), patch)


def outcome(tree: dict[str, bytes], patch: str, options: PatchOptions | None = None) -> dict[str, bytes]:
    """The files a patch makes of `tree`."""
    after = dict(tree)
    edits = plan(tree, patch, options).edits
    for edit in edits:
        if edit.data is None:
            del after[edit.path]
        else:
            after[edit.path] = edit.data
    return after


def apply(text: str, patch: str, fuzz: int = 3) -> tuple[str, list[str]]:
    """The text that a patch of file `f` makes, and how each hunk was found."""
    done = plan({"f": text.encode()}, patch, PatchOptions(fuzz=fuzz))
    (edit,) = done.edits
    assert edit.data is not None
    return edit.data.decode(), list(done.summaries[0].matched)


def refuse(text: str, patch: str, fuzz: int = 3) -> ToolError:
    """The error a patch of file `f` raises."""
    with pytest.raises(ToolError) as caught:
        apply(text, patch, fuzz)
    assert caught.value.fix is None
    return caught.value
