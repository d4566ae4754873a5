"""diagnostics: every key, and no program of the project's."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from codewhale.tools.base import bound
from codewhale.tools.diagnostics import Diagnostics, DiagnosticsTools
from support.running import context, program

KEYS = {
    "workspace_root", "current_dir", "current_dir_error", "git_repo", "git_branch", "git_error", "sandbox_available",
    "sandbox_type", "bwrap_available", "cgroup_version", "rustc_version", "cargo_version", "python_version",
    "node_version",
}  # fmt: skip


async def diagnose(workspace: Path) -> dict[str, Any]:
    result = await bound(DiagnosticsTools())["diagnostics"].run(Diagnostics(), context(workspace))
    assert result.ok
    report: dict[str, Any] = json.loads(result.content)
    return report


async def test_diagnostics_of_a_repository(git_workspace: Path) -> None:
    report = await diagnose(git_workspace)
    assert report.keys() >= KEYS
    assert report["workspace_root"] == str(git_workspace) and report["current_dir"] == os.getcwd()
    assert report["git_repo"] is True and report["git_branch"] == "main" and report["git_error"] is None
    assert report["python_version"].startswith("Python 3") and report["harness_python"] in sys.version


async def test_diagnostics_outside_a_repository(workspace: Path) -> None:
    report = await diagnose(workspace)
    assert report["git_repo"] is False and report["git_branch"] is None and report["git_error"] is None


async def test_diagnostics_runs_no_program_of_the_project(workspace: Path) -> None:
    program(workspace, "bin/node", "#!/bin/sh\ntouch ran\necho v0\n")
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{workspace}/bin{os.pathsep}{before}"
    try:
        report = await diagnose(workspace)
    finally:
        os.environ["PATH"] = before
    assert report["node_version"] != "v0" and not (workspace / "ran").exists()


def test_diagnostics_only_reads() -> None:
    decl = bound(DiagnosticsTools())["diagnostics"].decl
    assert decl.effects == ("reads",) and decl.parallel
