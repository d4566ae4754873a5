"""All uncommitted changes of a workspace as one patch, and whether a patch applies: with an index and objects of our
own, so that neither the repository, its index nor a file is changed."""

import asyncio
import os
import shutil
import stat
import tempfile

from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.process.launch import Completed
from codewhale.process.repository import find_repository
from codewhale.protocol.errors import ToolError
from codewhale.workspace.git import beside, git, head_ref

MOST_PATCH, MOST_READ, MOST_NAMES, MOST_INDEX = 8 << 20, 64 << 20, 10_000, 256 << 20
SUMMARY = 900
_SECONDS = 60.0
_FORM = ("--binary", "--full-index", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
_APPLY = ("apply", "--check", "--whitespace=nowarn")


class WorktreePatch(Struct, frozen=True):
    """What differs from commit `base_sha`, "" before the first one: staged, unstaged and new files."""

    patch: bytes
    files: tuple[str, ...]
    base_ref: str | None
    base_sha: str


class PatchCheck(Struct, frozen=True):
    """How git would take a patch: on the clean files of its base (`exit_code` and what git said), and on the files as
    they are now (`worktree`: applies, already applied or conflicts; `conflict` is why)."""

    exit_code: int
    stdout: str
    stderr: str
    worktree: str
    conflict: str


async def worktree_patch(workspace: str) -> WorktreePatch:
    """Raises ToolError where there is no repository, git cannot say, or the changes are larger than a patch may be."""
    found = await git(("rev-parse", "--verify", "-q", "HEAD"), workspace)
    base = found.stdout.decode().strip() if found.exit_code == 0 else ""
    since = base or (await git(("hash-object", "-t", "tree", "--stdin"), workspace)).stdout.decode().strip()
    listing = ("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard", "--", ".")
    listed = _good(await git(listing, workspace, seconds=_SECONDS, output_limit=MOST_READ))
    names = sorted({name for name in listed.split(b"\0") if name and not name.endswith(b"/")})
    await asyncio.to_thread(_bounded, workspace, names)
    repository = find_repository(workspace)
    with tempfile.TemporaryDirectory(prefix="codewhale-patch-") as folder:
        if repository is not None:
            await asyncio.to_thread(
                _copy_index, os.path.join(repository.gitdir, "index"), os.path.join(folder, "index")
            )
        add = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
        _good(await beside(add, workspace, folder, stdin=b"".join(name + b"\0" for name in names)))
        diff = await beside(("diff", "--cached", *_FORM, since, "--", "."), workspace, folder, output_limit=MOST_PATCH)
        if diff.stdout_gap >= 0:
            raise _too_large(f"The patch is larger than {MOST_PATCH >> 20} MiB")
        changed = ("diff", "--cached", "--name-only", "-z", "--no-renames", since, "--", ".")
        files = _good(await beside(changed, workspace, folder)).split(b"\0")
    shown = tuple(os.fsencode(name).decode("utf-8", "replace") for name in map(os.fsdecode, files) if name)
    return WorktreePatch(_good(diff), shown, await head_ref(workspace), base)


async def check_patch(workspace: str, patch: bytes, base: str) -> PatchCheck:
    """Whether a patch of `worktree_patch` applies. Raises ToolError where git cannot be asked."""
    repository = find_repository(workspace)
    root = workspace if repository is None else repository.root
    with tempfile.TemporaryDirectory(prefix="codewhale-patch-") as folder:
        done = await beside(("read-tree", base or "--empty"), root, folder)
        if done.exit_code == 0:
            done = await beside((*_APPLY, "--cached", "-"), root, folder, stdin=patch)
        now = await beside((*_APPLY, "-"), root, folder, stdin=patch)
        back = await beside((*_APPLY, "--reverse", "-"), root, folder, stdin=patch) if now.exit_code else now
    worktree = "applies" if now.exit_code == 0 else "already applied" if back.exit_code == 0 else "conflicts"
    code = -1 if done.exit_code is None else done.exit_code
    return PatchCheck(code, _said(done.stdout), _said(done.stderr), worktree, _said(now.stderr))


def _said(data: bytes) -> str:
    return data.decode("utf-8", "replace")[:SUMMARY]


def _good(done: Completed) -> bytes:
    if done.exit_code != 0 or done.stdout_gap >= 0:
        why = one_line(done.stderr.decode("utf-8", "replace").strip(), 300) or "it did not end in time"
        raise ToolError("execution_failed", f"git cannot say what differs: {why}.")
    return done.stdout


def _bounded(workspace: str, names: list[bytes]) -> None:
    """Refuse what would be read for minutes, before it is read."""
    sizes = {}
    for name in names[: MOST_NAMES + 1]:
        try:
            state = os.lstat(os.path.join(os.fsencode(workspace), name))
        except OSError:
            continue
        sizes[name] = state.st_size if stat.S_ISREG(state.st_mode) else 0
    if len(names) > MOST_NAMES:
        raise _too_large(f"More than {MOST_NAMES:,} files differ")
    if sum(sizes.values()) > MOST_READ:
        largest = one_line(max(sizes, key=lambda name: sizes[name]).decode("utf-8", "replace"), 200)
        raise _too_large(f"The changed files are larger than {MOST_READ >> 20} MiB (the largest is {largest})")


def _too_large(what: str) -> ToolError:
    return ToolError("execution_failed", f"{what}. Let .gitignore name what is built, or commit a part first.")


def _copy_index(source: str, target: str) -> None:
    """A copy with its time: by that git knows which files it must look at again."""
    try:
        state = os.lstat(source)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(state.st_mode) or state.st_size > MOST_INDEX:
        raise ToolError("not_available", "The index of the repository is no ordinary file, or larger than 256 MiB.")
    shutil.copy2(source, target)
