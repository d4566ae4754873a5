"""Where in the workspace a tool that only looks was pointed: the one check of a path argument, and its errors."""

import os
import stat

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.text import one_line
from codewhale.permissions.path_spelling import meant
from codewhale.protocol.errors import Corrected, Look, NextCall, ToolError


def locate(root: str, path: str | None, again: NextCall | None, *, must_exist: bool = True) -> str:
    """`path` (None is the workspace itself) as a relative POSIX path with every link resolved, "." for the root.

    `again` is the same call without the path: what to do instead of leaving the workspace. Raises ToolError path_escape
    for a way out, invalid_input for what is not there (unless `must_exist` is False) or is neither file nor folder.
    """
    if path is None:
        return "."
    beneath = Root(root)
    try:
        found = beneath.resolve(path)
        mode = os.lstat(os.path.join(beneath.path, found)).st_mode
    except PathRefused as refused:
        likely = meant(beneath, path)
        raise _escape(beneath.path, path, refused.reason, Corrected({"path": likely}) if likely else again)
    except (FileNotFoundError, NotADirectoryError):
        if not must_exist:
            return beneath.relative(path)
        raise missing(path, meant(beneath, path))
    except OSError as error:
        raise _bad(path, f"cannot be looked at: {error.strerror}", again)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise _bad(path, "is neither a file nor a folder", again)
    return found


def missing(path: str, likely: str = "") -> ToolError:
    """There is nothing at `path`; `likely` is what was meant."""
    name = path.rstrip("/").rpartition("/")[2]
    hint = f" Did you mean {likely!r}?" if likely else ""
    return ToolError(
        "invalid_input",
        f"path {one_line(path)!r} does not exist in the workspace.{hint}",
        field="path",
        expected="a file or folder that exists, relative to the workspace",
        received=one_line(path),
        fix=Corrected({"path": likely}) if likely else Look("file_search", {"query": name[:500]}) if name else None,
    )


def _escape(root: str, path: str, reason: str, again: NextCall | Corrected | None) -> ToolError:
    return ToolError(
        "path_escape",
        f"path {one_line(path)!r} is refused: {reason}. The workspace is {root}; give a path relative to it.",
        field="path",
        expected="a path inside the workspace",
        received=one_line(path),
        fix=again,
    )


def _bad(path: str, problem: str, again: NextCall | None) -> ToolError:
    return ToolError(
        "invalid_input",
        f"path {one_line(path)!r} {problem}.",
        field="path",
        expected="a regular file or a folder",
        received=one_line(path),
        fix=again,
    )
