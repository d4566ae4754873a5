"""A path argument means one place beneath the workspace, or is refused with a call that works."""

import os
from pathlib import Path

import pytest

from codewhale.protocol.errors import Look, NextCall, ToolError
from codewhale.workspace.files.errors import locate
from support.repos import write

AGAIN = NextCall("grep_files", {"pattern": "x"})


def test_links_inside_are_resolved(workspace: Path) -> None:
    write(workspace, {"real/a.txt": ""})
    (workspace / "link").symlink_to("real")
    for path, place in (
        (None, "."), (".", "."), ("./real/", "real"), ("link/a.txt", "real/a.txt"), (str(workspace / "link"), "real"),
    ):  # fmt: skip
        assert locate(str(workspace), path, AGAIN) == place


@pytest.mark.parametrize("path", ["..", "/", "../workspace-evil/x", "out/x", "a\\..\\..\\x", "//host/share"])
def test_ways_out_are_refused(workspace: Path, path: str) -> None:
    (workspace / "out").symlink_to("/")
    with pytest.raises(ToolError) as raised:
        locate(str(workspace), path, AGAIN)
    assert raised.value.kind == "path_escape" and raised.value.fix == AGAIN
    assert str(workspace) in raised.value.message


def test_what_is_not_there_is_looked_for_by_name(workspace: Path) -> None:
    with pytest.raises(ToolError) as raised:
        locate(str(workspace), "deep/absent.py", AGAIN)
    assert raised.value.look == Look("file_search", {"query": "absent.py"})
    assert locate(str(workspace), "deep/../absent.py", AGAIN, must_exist=False) == "absent.py"


def test_special_files_are_refused(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(ToolError) as raised:
        locate(str(workspace), "pipe", AGAIN)
    assert raised.value.kind == "invalid_input" and raised.value.fix == AGAIN
