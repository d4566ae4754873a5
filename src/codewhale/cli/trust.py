"""`codewhale trust`: which of a project's own files may steer codewhale."""

import argparse
import os
from typing import Any

from codewhale.cli.parser import UsageError, add_workspace, workspace
from codewhale.cli.stdio import put, say, say_raw
from codewhale.lib.text import sanitise

_WHAT = """Choose which project files may configure codewhale.

A project may carry .codewhale/config.toml, .codewhale/permissions.toml,
.codewhale/hooks.toml, skills (a SKILL.md in a folder below .agents/skills,
skills, .claude/skills and the like) and rules (.codewhale/rules, and those of
Cursor, Windsurf, Cline, Claude and Copilot). None of them is used until you
trust it. Trust covers the exact content of a file and of the files it names,
of a skill all files of its folder: after a change, trust it again. Even then a project can only restrict
settings, and its hooks run in the sandbox.
"""
MOST_LINES, MOST_FILES = 400, 20


def build(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = _WHAT
    actions = parser.add_subparsers(dest="action", metavar="list|add|remove", required=True)
    every = actions.add_parser("list", help="the project files of this workspace and whether they are trusted")
    every.add_argument("--all", action="store_true", help="also what is trusted in other workspaces")
    every.add_argument("--json", action="store_true", help="as JSON")
    add = actions.add_parser("add", help="show project files and trust them as they are now")
    add.add_argument("file", metavar="FILE", nargs="*", help="such as .codewhale/hooks.toml; default: all not trusted")
    add.add_argument("-y", "--yes", action="store_true", help="do not ask, also on a terminal")
    add.add_argument("--sha256", metavar="HEX", default="", help="only if the one FILE has this hash")
    remove = actions.add_parser("remove", help="stop trusting them")
    remove.add_argument("file", metavar="FILE", nargs="*", help="a project file; default: all of this workspace")
    for action in (every, add, remove):
        add_workspace(action)
    parser.epilog = "exit codes:\n  0 done   1 nothing to do, or you answered no   2 wrong usage\n"


def run(args: argparse.Namespace) -> int:
    """Run it; returns the exit code."""
    from codewhale.config import home_dir

    home, folder = home_dir(os.environ), workspace(args)
    if args.action == "list":
        return _list(home, folder, args)
    return _add(home, folder, args) if args.action == "add" else _remove(home, folder, args)


def _list(home: str, folder: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.trust import listed
    from codewhale.display.lines import object_line

    rows = listed(home, folder, args.all)
    if args.json:
        put(object_line(rows) + "\n")
        return 0
    for row in rows:
        lines = [f"{path} has changed" for path in row.changed[:MOST_FILES]]
        if len(row.changed) > MOST_FILES:
            lines.append(f"{len(row.changed) - MOST_FILES} more have changed")
        lines += [f"cannot be trusted: {row.problem}"] if row.problem else []
        more = "".join(f"\n          {line}" for line in lines)
        put(sanitise(f"{row.state:<8}  {row.path}  {row.sha256[:12]}  {row.at[:10] or 'never trusted'}{more}") + "\n")
    if not rows:
        say("codewhale: no project files in this folder")
    return 0


def _add(home: str, folder: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.trust import trust, waiting

    items = waiting(home, folder, args.file)
    refused = [item for item in items if item.problem and not args.file]
    for item in refused:
        say(f"codewhale: {item.path}: cannot be trusted: {item.problem}")
    items = [item for item in items if item not in refused]
    if args.sha256 and (len(args.file) != 1 or items[0].sha256 != args.sha256.lower()):
        raise UsageError("--sha256 is not the hash of the one FILE; nothing was trusted")
    for item in items:
        _show(item)
    if not items:
        say("codewhale: no project file needs to be trusted")
        return 1
    if os.isatty(0) and os.isatty(2) and not args.yes and not _asked(f"Trust {_counted(items)} as shown? [y/N] "):
        say("codewhale: nothing was trusted")
        return 1
    trust(home, items)
    for item in items:
        put(sanitise(f"trusted   {item.path}  {item.sha256}") + "\n")
    return 0


def _remove(home: str, folder: str, args: argparse.Namespace) -> int:
    from codewhale.cli.offline.trust import forget

    gone = forget(home, folder, args.file)
    for path in gone:
        put(sanitise(f"removed   {path}") + "\n")
    if not gone:
        say("codewhale: none of these were trusted")
    return 0 if gone else 1


def _asked(question: str) -> bool:
    say_raw(question)
    return os.read(0, 100).strip().lower() in (b"y", b"yes")


def _show(item: Any) -> None:
    """A file as it would be trusted, on stderr."""
    lines = item.data.decode("utf-8", "replace").split("\n")
    shown = [f"{item.path} ({len(item.data)} bytes, sha256 {item.sha256}):"]
    shown += [f"  | {line}" for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"  {len(lines) - MOST_LINES} more lines are not shown: read the file")
    shown += [f"  with {path} (sha256 {sha256})" for path, sha256 in list(item.named.items())[:MOST_FILES]]
    if len(item.named) > MOST_FILES:
        shown.append(f"  with {len(item.named) - MOST_FILES} more files of {os.path.dirname(item.path)}")
    say_raw("".join(sanitise(line) + "\n" for line in shown))


def _counted(items: list[Any]) -> str:
    return "this file" if len(items) == 1 else f"these {len(items)} files"
