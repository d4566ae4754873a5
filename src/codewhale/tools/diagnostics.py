"""Diagnostics: where the session runs and with what, for a model that must know before it tries."""

import asyncio
import json
import os
import platform
import sys

from codewhale.process.confinement import BUBBLEWRAP, held_where_possible, sandbox
from codewhale.process.launch import Launch, run
from codewhale.process.programs import find_program
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import CallContext, Effect, ToolResult
from codewhale.tools.base import Args, tool
from codewhale.workspace.git import head_ref

SECONDS = 10.0


class Diagnostics(Args, frozen=True):
    """Arguments of diagnostics: none."""


class DiagnosticsTools:
    """Facts of the machine and the workspace."""

    @tool("diagnostics", effects={Effect.READS}, parallel=True)
    async def diagnostics(self, args: Diagnostics, call: CallContext) -> ToolResult:
        """Facts of the workspace and the machine: paths, git branch, sandbox, and versions of rustc, cargo, python and
        node."""
        current, current_error = _current_directory()
        held = await asyncio.to_thread(sandbox)
        branch, git_error = await _branch(call.workspace)
        rustc, cargo, python, node = await asyncio.gather(
            *(_version(program, call.workspace) for program in ("rustc", "cargo", "python3", "node"))
        )
        report = {
            "workspace_root": call.workspace,
            "current_dir": current,
            "current_dir_error": current_error,
            "git_repo": branch is not None,
            "git_branch": branch,
            "git_error": git_error,
            "sandbox_available": bool(held.mechanism),
            "sandbox_type": held.mechanism or None,
            "bwrap_available": any(one.name == BUBBLEWRAP and one.holds for one in held.tried),
            "cgroup_version": _cgroup_version(),
            "rustc_version": rustc,
            "cargo_version": cargo,
            "python_version": python,
            "node_version": node,
            "harness_python": platform.python_version(),
            "platform": f"{sys.platform} {platform.machine()}",
        }
        return ToolResult(json.dumps(report, indent=2, ensure_ascii=False), metadata={"git_repo": branch is not None})


def _current_directory() -> tuple[str | None, str | None]:
    try:
        return os.getcwd(), None
    except OSError as error:
        return None, error.strerror


async def _branch(workspace: str) -> tuple[str | None, str | None]:
    try:
        return await head_ref(workspace), None
    except (ToolError, OSError) as error:
        return None, str(error)


async def _version(program: str, workspace: str) -> str | None:
    """The first line of `program --version`, None when it does not answer, is not there, or is the project's own."""
    path = find_program(program, workspace)
    if path is None:
        return None
    try:
        profile = await held_where_possible("read-only")
        launch = Launch(
            (path, "--version"), "/", profile, seconds=SECONDS, supervised=False, own=True, workspace=workspace
        )
        done = await run(launch)
    except OSError:
        return None
    return done.stdout.decode("utf-8", "replace").strip().partition("\n")[0] or None if done.exit_code == 0 else None


def _cgroup_version() -> int | None:
    """2 for the unified hierarchy, 1 for the older one, None where there are no control groups."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return 2
    return 1 if os.path.isdir("/sys/fs/cgroup") and os.listdir("/sys/fs/cgroup") else None
