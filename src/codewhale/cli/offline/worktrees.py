"""Checkouts of a repository of their own, below the state directory: made under a lock and looked at before anybody
works there, kept while they hold anything that is nowhere else, and removed when they do not."""

import asyncio
import contextlib
import hashlib
import os
import re
import shutil

from msgspec.structs import replace

from codewhale.app.checkouts import (
    HeldWorktree,
    Worktree,
    alone_at,
    hold,
    read_worktree,
    write_worktree,
)
from codewhale.lib.files import private_dir
from codewhale.lib.ids import short_id
from codewhale.lib.text import one_line
from codewhale.process.launch import Completed
from codewhale.process.programs import find_program, not_installed
from codewhale.process.repository import find_repository, read_head
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.protocol.errors import ConfigError, ToolError
from codewhale.workspace.git import changing, git, unsaved

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


async def open_worktree(folder: str, home: str, name: str = "") -> HeldWorktree:
    """The worktree of a name for the repository that a folder lies in, made where there is none; "" is a new one.
    Raises ConfigError."""
    if name and not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot be the name of a worktree: give letters, digits, '-' and '_', at most 64.")
    if find_program("git", folder) is None:
        raise ConfigError(not_installed("git"))
    repository = find_repository(folder)
    if repository is None:
        raise ConfigError(f"{folder} is not in a git repository, so it has no worktrees. Run git init there first.")
    head = await git(("rev-parse", "--verify", "-q", "HEAD^{commit}"), folder)
    if head.exit_code != 0:
        raise ConfigError(f"{repository.root} has no commit yet, so no worktree can be made of it. Commit once first.")
    common = os.path.realpath(repository.common)
    place = os.path.join(os.path.realpath(home), "worktrees", hashlib.sha256(os.fsencode(common)).hexdigest()[:16])
    private_dir(place)
    name = name or short_id("w").replace("_", "-")
    path = os.path.join(place, name)
    origin = os.path.relpath(os.path.realpath(folder), os.path.realpath(repository.root))
    async with alone_at(place):
        await _tidy(place)
        known = read_worktree(place, name)
        if known is not None:
            return hold(replace(known, origin=origin))
        tree = Worktree(name, path, f"codewhale/{name}", head.stdout.decode().strip(), common, origin)
        if await _tip(tree) or os.path.lexists(path):
            raise ConfigError(f"The branch {tree.branch} or {path} is there already. Choose another name.")
        return hold(await _made(tree))


async def kept_for(tree: Worktree) -> str:
    """What a worktree holds that is nowhere else, in words; "" for nothing. Raises ToolError without git."""
    tip = await _tip(tree)
    refs = ("for-each-ref", f"--contains={tip}", "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags")
    held_by = set((await _git(tree, *refs)).stdout.decode().split()) if tip else set()
    if tip not in ("", tree.base) and held_by <= {f"refs/heads/{tree.branch}"}:
        count = await _git(tree, "rev-list", "--count", f"{tree.base}..{tip}")
        return f"{count.stdout.decode().strip()} commits that no other branch has"
    return await unsaved(tree.path, tree.branch) if os.path.isdir(tree.path) else ""


async def finish(held: HeldWorktree) -> str:
    """End the work in a worktree: "" where it was removed, else what it is kept for."""
    try:
        async with alone_at(os.path.dirname(held.tree.path)):
            kept = await kept_for(held.tree)
            return kept or await _removed(held.tree)
    except ToolError as error:
        return error.message
    finally:
        held.lock.release()


async def _made(tree: Worktree) -> Worktree:
    write_worktree(tree)
    done = await _git(tree, "worktree", "add", "-q", "-b", tree.branch, tree.path, tree.base)
    repository = find_repository(tree.path)
    place = (repository.root, os.path.realpath(repository.common)) if repository is not None else None
    right = place == (tree.path, tree.common) and repository is not None and read_head(repository) == tree.branch
    if done.exit_code != 0 or not right or await _tip(tree) != tree.base:
        await _discard(tree)
        raise ConfigError(f"git made no worktree at {tree.path}: {_said(done) or 'what it made is another one'}.")
    return write_worktree(replace(tree, state="ready"))


async def _removed(tree: Worktree) -> str:
    tip = await _tip(tree)
    write_worktree(replace(tree, state="removing", base=tip))
    done = await _git(tree, "worktree", "remove", tree.path)
    if os.path.lexists(tree.path):
        write_worktree(replace(tree, state="ready"))
        return _said(done) or "git did not remove it"
    await _forget(tree, tip)
    return ""


async def _forget(tree: Worktree, tip: str) -> None:
    await _git(tree, "worktree", "prune")
    if tip:
        await _git(tree, "update-ref", "-d", f"refs/heads/{tree.branch}", tip)
    for ending in (".lock", ".json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(tree.path + ending)


async def _discard(tree: Worktree) -> None:
    """Take away what nobody works in."""
    await _git(tree, "worktree", "remove", "--force", "--force", tree.path)
    if os.path.lexists(tree.path):
        await asyncio.to_thread(shutil.rmtree, tree.path, True)
    tip = await _tip(tree)
    await _forget(tree, tip if tip == tree.base else "")


async def _tidy(place: str) -> None:
    """Finish what a process that was killed had begun."""
    names = [file[: -len(".json")] for file in os.listdir(place) if file.endswith(".json")]
    for tree in filter(None, (read_worktree(place, name) for name in names)):
        if tree.state == "making" or (tree.state == "removing" and not await _touched(tree)):
            await _discard(tree)
        elif tree.state == "removing":
            write_worktree(replace(tree, state="ready"))


async def _touched(tree: Worktree) -> bool:
    """Whether anything but its own files going away happened in a worktree that is half removed."""
    admins = os.path.join(tree.common, "worktrees")
    for name in os.listdir(admins) if os.path.isdir(admins) and os.path.isdir(tree.path) else ():
        pointer = read_small(os.path.join(admins, name, "gitdir")) or b""
        if os.fsdecode(pointer.strip()) == os.path.join(tree.path, ".git"):
            place = os.path.join(admins, name)
            done = await changing(place, ("status", "--porcelain", "-z"), tree.common, work_tree=tree.path)
            return done.exit_code != 0 or any(row and b"D" not in row[:2] for row in done.stdout.split(b"\0"))
    return False


async def _tip(tree: Worktree) -> str:
    done = await _git(tree, "rev-parse", "--verify", "-q", f"refs/heads/{tree.branch}")
    return done.stdout.decode().strip()


async def _git(tree: Worktree, *args: str) -> Completed:
    return await changing(tree.common, args, tree.common)


def _said(done: Completed) -> str:
    return one_line(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2], 300)
