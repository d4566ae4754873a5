"""Commits as documents: subjects and the paths they changed, newest first, as git tells them."""

import asyncio

from codewhale.codesearch.model import Commit
from codewhale.process.repository import find_repository
from codewhale.protocol.errors import ToolError
from codewhale.workspace.git import git

MOST_COMMITS = 5_000
MOST_PATHS = 30
_SECONDS = 30.0
_OUTPUT = 64 << 20
_SUBJECT = 300  # characters kept


async def head_commit(root: str) -> str:
    """The commit that is checked out, "" where there is none."""
    if find_repository(root) is None:
        return ""
    try:
        done = await git(("rev-parse", "--verify", "-q", "HEAD"), root)
    except ToolError:
        return ""
    return done.stdout.decode("ascii", "replace").strip() if done.exit_code == 0 else ""


async def read_history(root: str, until: str = "HEAD") -> list[Commit]:
    """The last commits that changed something beneath `root`, or merged; paths from the root. Empty outside a
    repository, and when git cannot say in half a minute."""
    args = (
        "log", "-z", f"--max-count={MOST_COMMITS}", "--name-only", "--no-renames", "--relative",
        "--format=%x01%H%x02%ct%x02%s%x03", until, "--",
    )  # fmt: skip
    try:
        done = await git(args, root, seconds=_SECONDS, output_limit=_OUTPUT)
    except ToolError:
        return []
    if done.exit_code != 0 or done.stdout_gap >= 0:
        return []
    return await asyncio.to_thread(_parsed, done.stdout)


def _parsed(data: bytes) -> list[Commit]:
    found: list[Commit] = []
    for part in data.decode("utf-8", "replace").split("\x01")[1:]:
        head, _, rest = part.partition("\x03")
        fields = head.split("\x02")
        if len(fields) != 3 or not fields[1].isdigit():
            continue
        paths = [path.strip("\n") for path in rest.split("\0")]
        kept = tuple(path for path in paths if path)
        merge = fields[2].startswith("Merge ")
        if (kept or merge) and len(kept) <= MOST_PATHS:
            found.append(Commit(fields[0], int(fields[1]), fields[2][:_SUBJECT], kept))
    return found
