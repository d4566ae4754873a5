"""revert_turn as a model meets it: what it shows first, what it reports, and that each suggested call works."""

import json
import os
from pathlib import Path

import pytest

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.blocks import DiffBlock, MarkdownBlock
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import Effect, PathSubject, Preview, ToolResult
from codewhale.tools.base import BoundTool, bound, declared, specs
from codewhale.tools.files import FileTools
from codewhale.tools.undo import RevertTurn, UndoTools
from codewhale.workspace.files import Workspaces
from support.fixcheck import arguments, context
from support.undoing import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def tools(scene: Scene) -> dict[str, BoundTool]:
    spaces = Workspaces(ArtifactStore(str(scene.home / "artifacts")))
    return {**bound(FileTools(spaces)), **bound(UndoTools(scene.undo))}


async def preview(scene: Scene, **values: object) -> Preview:
    tool = tools(scene)["revert_turn"]
    shown = await tool.run(arguments(tool, values), context(str(scene.root)))
    assert isinstance(shown, Preview)
    return shown


async def refused(scene: Scene, **values: object) -> ToolError:
    """The error of a call; its fix runs where it has one."""
    with pytest.raises(ToolError) as caught:
        await preview(scene, **values)
    error = caught.value
    assert error.field == "turn_offset" and error.expected
    if error.fix is not None:
        again = tools(scene)[error.fix.name]
        await again.run(arguments(again, error.fix.arguments), context(str(scene.root)))
    return error


def test_declaration() -> None:
    (row,) = specs(UndoTools, "undo")
    assert row.name == "revert_turn" and row.effects == (Effect.WRITES,) and row.previews and not row.parallel
    field = row.parameters["properties"]["turn_offset"]
    assert (field["minimum"], field["maximum"], field["default"]) == (1, 50, 1)
    (decl, _, _) = declared(UndoTools)["revert_turn"]
    assert decl.subjects(RevertTurn()) == (PathSubject(".", write=True),)


async def test_nothing_happens_before_the_preview_is_run_and_then_exactly_that(scene: Scene) -> None:
    scene.write("a.txt", "one\ntwo\n")
    await scene.edit("a.txt", "one\nTWO\n")
    await scene.shell("echo x > made; chmod 700 a.txt")
    shown = await preview(scene)
    assert (scene.read("a.txt"), (scene.root / "made").exists()) == (b"one\nTWO\n", True)
    assert [block.path for block in shown.display if isinstance(block, DiffBlock)] == ["a.txt", "made"]
    first = shown.display[0]
    assert isinstance(first, DiffBlock) and "-TWO\n+two\n" in first.diff
    result: ToolResult = await shown.run()
    assert (scene.read("a.txt"), (scene.root / "made").exists()) == (b"one\ntwo\n", False)
    assert json.loads(result.content) == {"turns": [1], "restored": ["a.txt"], "removed": ["made"], "conflicts": []}
    assert result.ok and {change.path: change.after is None for change in result.changes} == {
        "a.txt": False,
        "made": True,
    }


async def test_conflicts_are_shown_and_told(scene: Scene) -> None:
    scene.write("a.txt", "1\n2\n3\n4\n5\n")
    await scene.edit("a.txt", "one\n2\n3\n4\nfive\n")
    scene.write("a.txt", "one\n2\n3\n4\nmine\n")
    shown = await preview(scene)
    told = shown.display[-1]
    assert isinstance(told, MarkdownBlock) and "a.txt, line 5: these lines were changed since" in told.text
    result = await shown.run()
    assert scene.read("a.txt") == b"1\n2\n3\n4\nmine\n" and result.ok
    (conflict,) = json.loads(result.content)["conflicts"]
    assert conflict["path"] == "a.txt" and "were changed since" in conflict["reason"]


async def test_several_turns_and_too_many(scene: Scene) -> None:
    scene.write("a", "0\n")
    error = await refused(scene)
    assert error.kind == "execution_failed" and error.message.startswith("Nothing to undo")
    for scene.turn in (1, 2):
        await scene.edit("a", f"{scene.turn}\n")
    error = await refused(scene, turn_offset=3)
    assert error.kind == "invalid_input" and error.expected == "1 to 2"
    result = await (await preview(scene, turn_offset=2)).run()
    assert scene.read("a") == b"0\n" and json.loads(result.content)["turns"] == [2, 1]


async def test_where_all_was_touched_since_it_is_refused_with_the_reasons(scene: Scene) -> None:
    scene.write("a", "0\n")
    await scene.edit("a", "1\n")
    scene.write("a", "mine\n")
    error = await refused(scene)
    assert "Nothing can be undone: not undone: a, line 1: these lines were changed" in error.message


async def test_what_changed_since_the_preview_is_a_soft_failure(scene: Scene) -> None:
    scene.write("a", "0\n")
    await scene.edit("a", "1\n")
    shown = await preview(scene)
    scene.write("a", "mine\n")
    result = await shown.run()
    assert not result.ok and scene.read("a") == b"mine\n" and "changed just now" in result.content


async def test_many_files_are_counted_not_listed(scene: Scene) -> None:
    await scene.shell("for n in $(seq 70); do echo > f$n; done")
    shown = await preview(scene)
    assert len(shown.display) == 41 and "30 more files" in shown.display[-1].text  # type: ignore[union-attr]
    result = await shown.run()
    said = json.loads(result.content)
    assert len(said["removed"]) == 50 and said["not_listed"] == 20 and len(result.metadata["removed"]) == 70
    assert os.listdir(scene.root) == []


async def test_without_git_it_says_so(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError) as caught:
        await preview(scene)
    assert caught.value.kind == "not_available" and "git is not installed" in caught.value.message
