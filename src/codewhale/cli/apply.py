"""Apply a patch from stdin to the files of a folder: all or nothing.

A patch that starts with *** Begin Patch and a unified diff are both understood. Paths must stay inside the
folder; git is not needed.
"""

import argparse
import os
from typing import Any

from codewhale.cli.parser import UsageError, add_workspace, workspace
from codewhale.cli.stdio import piped_in, put, read_all_stdin, say, say_raw
from codewhale.lib.text import sanitise

MAX_PATCH = 64 << 20
_ENDS = """exit codes:
  0 applied   1 refused, nothing was changed   2 wrong usage
"""


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "codewhale apply [-h] [-w DIR] [--dry-run] [--json] < PATCH"
    parser.epilog = _ENDS
    add_workspace(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would change and change nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    folder = workspace(args)
    if not piped_in():
        raise UsageError("no patch on stdin; give it as: codewhale apply < PATCH")
    data = read_all_stdin(MAX_PATCH)

    from codewhale.config import home_dir
    from codewhale.display.lines import object_line

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        say(f"codewhale apply: refused, nothing was changed: the patch is not UTF-8 text (byte {error.start})")
        return 1
    report = apply_text(home_dir(os.environ), folder, text, args.dry_run)
    if args.json:
        put(object_line(report) + "\n")
    elif report["success"]:
        put(sanitise(report["message"]) + "\n")
    else:
        say_raw(sanitise(f"codewhale apply: refused, nothing was changed: {report['message']}") + "\n")
    return 0 if report["success"] else 1


def apply_text(home: str, folder: str, text: str, dry_run: bool) -> dict[str, Any]:
    """Apply a patch of either format, all or nothing. Returns what apply_patch reports; when it is refused
    `success` is False and `error` says why, and nothing has changed."""
    from codewhale.process.artifacts import ArtifactStore
    from codewhale.protocol.errors import ToolError
    from codewhale.workspace.files import Workspaces
    from codewhale.workspace.patching import PatchOptions, apply_patch

    workspace = Workspaces(ArtifactStore(os.path.join(home, "artifacts"))).at(folder)
    try:
        return apply_patch(workspace, "", text, PatchOptions(dry_run=dry_run)).report
    except ToolError as error:
        told = {
            "kind": error.kind,
            "message": error.message,
            "field": error.field,
            "expected": error.expected,
            "received": error.received,
        }
        return {"success": False, "error": told, "message": error.message}
