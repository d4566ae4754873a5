"""Tests of a project whose Python does not say whether it has pytest: an error that says so, and never a success."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from support.jail import call, played
from support.machine import HELD
from support.running import program

# Tests that no run can pass, and that unittest finds none of.
FAILING = "def test_one():\n    assert 1 == 2\n"
PROBES = ("exit 1", "exit 2", "exit 127", "echo broken >&2; exit 1", "kill -9 $$", "exec /gone/python", "exit 76")


@pytest.mark.parametrize("ends", PROBES)
async def test_a_probe_that_fails_is_an_error_of_the_call(ends: str, home: Path, workspace: Path) -> None:
    """Whatever else is run by this Python succeeds."""
    (workspace / "test_a.py").write_text(FAILING)
    text = f'#!/bin/sh\ncase "$*" in *find_spec*) {ends};; esac\nexit 0\n'
    python = program(workspace, ".venv/bin/python", text)
    (result,) = await played(home, workspace, call("run_tests"))
    assert (result.ok, result.error) == (False, "execution_failed"), result.content
    assert "No test was run" in result.content and str(python) in result.content


@pytest.mark.parametrize("ends", ["exit 1", "kill -9 $$"])
async def test_a_gate_whose_probe_fails_is_not_passed(ends: str, home: Path, workspace: Path) -> None:
    (workspace / "test_a.py").write_text(FAILING)
    program(workspace, ".venv/bin/python", f'#!/bin/sh\ncase "$*" in *find_spec*) {ends};; esac\nexit 0\n')
    (result,) = await played(home, workspace, call("run_verifiers", profile="python", level="full"))
    assert not result.ok and '"python-test"' in result.content
    assert "could not say whether it has pytest" in result.content


@HELD
@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp"])
async def test_an_environment_behind_a_link_below_a_private_folder_is_no_success(
    folder: str, home: Path, workspace: Path
) -> None:
    """A sandbox may lay a folder of its own over the place that the link leads through."""
    (workspace / "test_a.py").write_text(FAILING)
    link = Path(folder) / f"python-{os.getpid()}-{workspace.parent.name}"
    link.symlink_to(Path(sys.executable).parent.parent)
    try:
        (workspace / ".venv").symlink_to(link)
        (result,) = await played(home, workspace, call("run_tests"))
    finally:
        link.unlink()
        shutil.rmtree(workspace / ".venv", ignore_errors=True)
    assert not result.ok and "Ran 0 tests" not in result.content, result.content
    assert "No test was run" in result.content or "1 failed" in result.content
