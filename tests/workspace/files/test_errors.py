"""Errors about workspace paths: they name the likely path, and the next call works."""

import os
from pathlib import Path

import pytest

from codewhale.protocol.errors import Corrected, Look, ToolError
from codewhale.workspace.files import Workspace
from support.patchland import workspace, write_tree


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    write_tree(tmp_path / "w", {"src/config.py": b"x", "src/Readme.md": b"y", "top.txt": b"z"})
    return workspace(tmp_path / "w", tmp_path / "store")


def refusal(space: Workspace, path: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        space.read(path)
    return caught.value


@pytest.mark.parametrize(
    ("path", "fix"),
    [
        ("src/confg.py", Corrected({"path": "src/config.py"})),
        ("src/README.md", Corrected({"path": "src/Readme.md"})),
        ("top.tx", Corrected({"path": "top.txt"})),
        ("scr/config.py", Corrected({"path": "src/config.py"})),
        ("`src/config.py`", Corrected({"path": "src/config.py"})),
        ("/workspace/src/config.py", Corrected({"path": "src/config.py"})),
        ("src/deep/none.py", None),
        ("src", Look("list_dir", {"path": "src"})),
        ("src/config.py/x", None),
        ("src/" + "n" * 300, None),
        ("../x", None),
    ],
)
def test_the_fix_leads_on(space: Workspace, path: str, fix: Corrected | Look | None) -> None:
    error = refusal(space, path)
    assert (error.correction or error.look) == fix and error.fix is None
    assert error.field == "path" and error.received.endswith(path[-9:])


def test_similar_names_are_told(space: Workspace) -> None:
    assert "Did you mean src/config.py?" in refusal(space, "src/confg.py").message
    assert "Did you mean src/config.py?" in refusal(space, "scr/config.py").message


def test_kinds(space: Workspace) -> None:
    os.mkfifo(os.path.join(space.root, "pipe"))
    os.symlink("pipe", os.path.join(space.root, "to_pipe"))
    os.symlink("circle", os.path.join(space.root, "circle"))
    assert "pipe is a named pipe" in refusal(space, "pipe").message
    assert "is a named pipe" in refusal(space, "to_pipe").message
    assert "leads in a circle" in refusal(space, "circle").message
