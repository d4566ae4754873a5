"""What a workspace differs in from its last commit, and how it stands, as an interface draws it."""

import os
import re

from codewhale.lib.text import sanitise
from codewhale.process.repository import find_repository, read_head
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import ToolError
from codewhale.protocol.views import WorkspaceRow
from codewhale.workspace.git import git

MOST_CHANGED = 1000
MOST_FILES = 200
MOST_NEW = 50
NEW_BYTES = 64 << 10
SECONDS = 20.0
_FILES = re.compile(r"^(?=diff --git )", re.MULTILINE)
_NAME = re.compile(r"^(?:\+\+\+ b/|--- a/|rename to |Binary files (?:a/.* and )?b?/?)(.+?)(?: differ)?$", re.MULTILINE)
_HEAD = re.compile(r"^diff --git a/(.*) b/\1$", re.MULTILINE)
_FORM = ("--src-prefix=a/", "--dst-prefix=b/", "--relative", "--submodule=short")


def branch_of(workspace: str) -> str:
    """The branch that is checked out, the start of a commit id when none is, "" outside a repository. Nothing is
    started."""
    repository = find_repository(workspace)
    head = read_head(repository) if repository is not None else None
    return (head[:12] if re.fullmatch(r"[0-9a-f]{40,64}", head) else head) if head else ""


async def standing(workspace: str) -> WorkspaceRow:
    """Where a workspace is, its branch, and how many files git sees as changed."""
    return WorkspaceRow(workspace, branch_of(workspace), await _changed(workspace))


async def _changed(workspace: str) -> int:
    try:
        done = await git(("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames"), workspace)
    except ToolError:
        return 0
    return min(MOST_CHANGED, done.stdout.count(b"\0"))


async def differences(workspace: str, path: str = "") -> tuple[DiffBlock, ...] | None:
    """A block for each file that differs from the last commit, staged or not, then new files, at most 200 in all; None
    outside a git repository. Raises ToolError for git that cannot be asked."""
    if find_repository(workspace) is None:
        return None
    place = ("--", path or ".")
    since = await _last_commit(workspace)
    done = await git(("diff", *_FORM, since, *place), workspace, seconds=SECONDS)
    if done.exit_code:
        raise ToolError(
            "not_available", f"git cannot say what differs: {sanitise(done.stderr.decode(errors='replace'))[:500]}"
        )
    kept = done.stdout if done.stdout_gap < 0 else done.stdout[: done.stdout_gap]
    pieces = [piece for piece in _FILES.split(kept.decode("utf-8", "replace")) if piece.startswith("diff --git ")]
    blocks = [DiffBlock(_path(piece), piece) for piece in pieces[:MOST_FILES] if "\n@@" in piece or "\nBinary" in piece]
    return (*blocks, *(await _new_files(workspace, place, MOST_FILES - len(blocks))))


async def _last_commit(workspace: str) -> str:
    """The last commit, or the empty tree where there is none yet."""
    done = await git(("rev-parse", "--verify", "-q", "HEAD"), workspace)
    if done.exit_code == 0:
        return "HEAD"
    empty = await git(("hash-object", "-t", "tree", "--stdin"), workspace)
    return empty.stdout.decode().strip()


async def _new_files(workspace: str, place: tuple[str, ...], room: int) -> list[DiffBlock]:
    done = await git(("ls-files", "--others", "--exclude-standard", "-z", *place), workspace, seconds=SECONDS)
    names = [name for name in done.stdout.split(b"\0") if name]
    blocks = [_new_file(workspace, os.fsdecode(name)) for name in names[: max(0, min(MOST_NEW, room))]]
    more = len(names) - len(blocks)
    if more > 0 and blocks:
        blocks.append(DiffBlock("", f"({more} more new files are not shown)"))
    return blocks


def _new_file(workspace: str, path: str) -> DiffBlock:
    shown = path.encode("utf-8", "replace").decode().replace("\n", "\\n")
    head = f"diff --git a/{shown} b/{shown}\nnew file\n--- /dev/null\n+++ b/{shown}\n"
    text = _beginning(os.path.join(workspace, path))
    if text is None:
        return DiffBlock(
            shown, f"diff --git a/{shown} b/{shown}\nnew file\nBinary files /dev/null and b/{shown} differ\n"
        )
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return DiffBlock(shown, f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}" if lines else head)


def _beginning(path: str) -> str | None:
    """The first 64 KiB of a text file; None for anything else."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            data = file.read(NEW_BYTES)
    except OSError:
        return None
    return None if b"\0" in data else data.decode("utf-8", "replace")


def _path(piece: str) -> str:
    same = _HEAD.match(piece)
    if same:
        return same[1]
    named = _NAME.search(piece)
    return named[1] if named else piece.partition("\n")[0].removeprefix("diff --git ")
