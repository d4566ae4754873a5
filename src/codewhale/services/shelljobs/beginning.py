"""How a command line of a model becomes a job: its shell, its folder, and what stands in the way in words."""

import os
from collections.abc import Awaitable, Callable

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.text import one_line
from codewhale.permissions.path_spelling import meant
from codewhale.protocol.errors import Corrected, ErrorKind, ToolError
from codewhale.services.shelljobs.job import JobSpec, JobView
from codewhale.services.shelljobs.service import ShellJobs

# What a person's hooks add to the environment of commands: (session, workspace) -> variables.
ShellEnv = Callable[[str, str], Awaitable[dict[str, str]]]


def shell_argv(command: str) -> tuple[str, ...]:
    """What runs a command line."""
    return ("/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", command)


async def begin(jobs: ShellJobs, session: str, spec: JobSpec) -> JobView:
    """Start it. Raises ToolError."""
    try:
        return await jobs.start(session, spec)
    except OSError as error:
        raise ToolError(
            "execution_failed",
            f"The shell could not be started: {error.strerror or error}.",
            field="command",
            received=one_line(spec.command),
        )
    except ValueError:
        clean = spec.command.encode("utf-8", "replace").decode().replace("\0", "")
        raise ToolError(
            "invalid_input",
            "The command holds a NUL or a character that has no UTF-8 form.",
            field="command",
            expected="text without NUL",
            received=one_line(spec.command),
            fix=Corrected({"command": clean}, sure=True),
        )


def directory(workspace: str, cwd: str) -> str:
    """The absolute directory that a call's `cwd` names, links resolved and beneath the workspace. Raises ToolError."""
    root, cwd = Root(workspace), cwd or "."
    try:
        path = os.path.join(root.path, root.resolve(cwd))
    except PathRefused as refused:
        resolved = os.path.normpath(os.path.join(root.path, cwd))
        problem = f"cwd {one_line(resolved)} cannot be used: {refused.reason}; give one relative to {root.path}"
        raise _bad_directory(root, cwd, "path_escape", problem)
    except OSError as error:
        raise _bad_directory(root, cwd, "invalid_input", f"cwd cannot be used: {error.strerror}")
    if not os.path.isdir(path):
        problem = "is not a directory" if os.path.exists(path) else "does not exist"
        raise _bad_directory(root, cwd, "invalid_input", f"cwd {problem}")
    return path


def _bad_directory(root: Root, cwd: str, kind: ErrorKind, problem: str) -> ToolError:
    likely = meant(root, cwd)
    return ToolError(
        kind,
        f"{problem}.{f' Did you mean {likely!r}?' if likely else ''}",
        field="cwd",
        expected="an existing directory beneath the workspace",
        received=one_line(cwd),
        fix=Corrected({"cwd": likely}, sure=True) if likely else None,
    )
