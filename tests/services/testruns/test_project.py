"""What a workspace says of itself."""

import os
from pathlib import Path

from codewhale.services.testruns.runners import has, interpreter, read_text, scripts, which
from support.running import program


def test_the_virtual_environment_comes_before_the_path(workspace: Path) -> None:
    assert interpreter(str(workspace)) == which("python3")
    venv = program(workspace, "venv/bin/python", "#!/bin/sh\n")
    assert interpreter(str(workspace)) == str(venv)
    hidden = program(workspace, ".venv/bin/python", "#!/bin/sh\n")
    assert interpreter(str(workspace)) == str(hidden)


def test_only_regular_files_are_read(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "folder").mkdir()
    (workspace / "file").write_text("text")
    assert not has(str(workspace), "pipe", "folder", "gone") and has(str(workspace), "gone", "file")
    assert [read_text(str(workspace), name) for name in ("pipe", "folder", "gone", "file")] == ["", "", "", "text"]


def test_scripts_of_odd_packages(workspace: Path) -> None:
    for text, expected in (
        ("", {}),
        ("{", {}),
        ("[]", {}),
        ('{"scripts": null}', {}),
        ('{"scripts": {"a": "b", "c": 1, "d": ""}}', {"a": "b"}),
    ):
        (workspace / "package.json").write_text(text)
        assert scripts(str(workspace)) == expected


def test_a_program_that_is_not_there() -> None:
    assert which("no-such-program-here") is None
