"""List the worktrees that --worktree made.

A session of `codewhale --worktree` or `codewhale exec --worktree` works in a checkout of its own below the state
directory; it is removed at the end unless it has changes, files that git ignores, or commits that no branch has.
"""

import argparse
import asyncio
import os
from collections.abc import Callable

from codewhale.app.checkouts import Worktree, Worktrees, finish
from codewhale.cli.stdio import put, say
from codewhale.config import home_dir
from codewhale.lib.text import told_line

_REMOVED = "removed: it had no changes; its sessions can be read, but not continued"


def build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", metavar="list", choices=["list"], help="all worktrees, with their state")


def run(args: argparse.Namespace) -> int:
    for tree in (known := Worktrees(home_dir(os.environ)).all()):
        put(told_line(f"{tree.name:<20} {asyncio.run(_state(tree)):<34} {tree.path}") + "\n")
    if not known:
        say("codewhale worktree: no worktrees")
    return 0


async def _state(tree: Worktree) -> str:
    if tree.in_use:
        return "in use"
    return "unfinished" if tree.state != "ready" else await tree.kept(tree.base) or "no changes"


def in_worktree(name: str, folder: str, work: Callable[[str], int]) -> int:
    """Do the work of a command in the worktree of this name ("": a new one); returns the exit code."""
    held = asyncio.run(Worktrees(home_dir(os.environ)).open(folder, name))
    say(f"codewhale: worktree {held.tree.name}, branch {held.tree.branch}: {held.tree.path}")
    try:
        return work(held.tree.workspace)
    finally:
        kept = asyncio.run(finish(held))
        more = f"kept ({kept}): {held.tree.path}; continue with --worktree {held.tree.name}" if kept else _REMOVED
        say(f"codewhale: worktree {held.tree.name} {more}")
