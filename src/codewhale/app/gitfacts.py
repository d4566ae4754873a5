"""How a workspace stands in git, as a relay says it."""

import hashlib
import os
from collections.abc import Sequence

from codewhale.agent.relay import TreeFacts
from codewhale.process.repository import branch_of, find_repository
from codewhale.protocol.errors import ToolError
from codewhale.workspace.git import git

MOST_CHANGED = 1_000
_SECONDS = 10.0
_STATUS = ("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames", "--", ".")


class WorkspaceTree:
    async def look(self, workspace: str) -> TreeFacts:
        repository = find_repository(workspace)
        if repository is None:
            return TreeFacts()
        commit = await _ask(("rev-parse", "--verify", "-q", "HEAD"), workspace)
        listed = os.fsdecode(await _ask(_STATUS, workspace)).split("\0")
        rows = [row for row in listed if row and "/.codewhale/" not in f"/{row[3:]}"][:MOST_CHANGED]
        digest = hashlib.sha256()
        for row in rows:
            digest.update(os.fsencode(row) + _stamp(os.path.join(repository.root, row[3:])))
        return TreeFacts(branch_of(workspace), commit.decode().strip(), tuple(rows), digest.hexdigest())

    async def behind(self, workspace: str, commit: str) -> int:
        return int(await _ask(("rev-list", "--count", f"{commit}..HEAD"), workspace) or 0)

    async def shown(self, workspace: str, path: str) -> str:
        if find_repository(workspace) is None:
            return ""
        if await _ask(("ls-files", "--", path), workspace):
            return f"git tracks {path}: the change shows up in git status."
        if await _ask(("check-ignore", "--", path), workspace):
            return "git ignores it."
        return f"git does not ignore it: it shows up in git status, unless {path} is added to .gitignore."


async def _ask(args: Sequence[str], workspace: str) -> bytes:
    """What git prints, b"" where it cannot be asked."""
    try:
        done = await git(args, workspace, seconds=_SECONDS)
    except ToolError:
        return b""
    return done.stdout if done.exit_code == 0 else b""


def _stamp(path: str) -> bytes:
    try:
        info = os.lstat(path)
    except OSError:
        return b"-"
    return f"{info.st_size} {info.st_mtime_ns}".encode()
