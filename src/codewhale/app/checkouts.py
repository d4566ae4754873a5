"""The checkouts that sessions have of their own, and who works in each: records and locks below the state directory,
kept while a checkout holds anything that is nowhere else."""

import asyncio
import contextlib
import hashlib
import os
import re
from collections.abc import AsyncIterator
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.files import atomic_write, private_dir
from codewhale.lib.ids import short_id
from codewhale.process.programs import find_program, not_installed
from codewhale.process.repository import find_repository
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.protocol.errors import SessionBusyError, ToolError
from codewhale.session.lock import SessionLock, is_held
from codewhale.workspace.checkout import Checkout, CheckoutError
from codewhale.workspace.git import git

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PATIENCE = 3000  # times a fiftieth of a second


class Worktree(Checkout, frozen=True):
    """A checkout with its name, the commit it began at, and the folder it was made from, relative to the repository.
    Only a `ready` one was ever handed out."""

    name: str
    base: str
    origin: str
    state: Literal["making", "ready", "removing"] = "making"

    @property
    def workspace(self) -> str:
        """The folder in it that stands for the one it was made from, or the nearest above."""
        place = os.path.normpath(os.path.join(self.path, self.origin))
        while place != self.path and not os.path.isdir(place):
            place = os.path.dirname(place)
        return place

    @property
    def in_use(self) -> bool:
        return is_held(f"{self.path}.lock")


class HeldWorktree(Struct, frozen=True):
    """A worktree that this process works in: nobody else takes or removes it while it has the lock."""

    tree: Worktree
    lock: SessionLock


class Worktrees:
    """Those below a state directory, of every repository."""

    def __init__(self, home: str) -> None:
        self._top = os.path.join(os.path.realpath(home), "worktrees")

    def all(self) -> list[Worktree]:
        places = sorted(entry.path for entry in os.scandir(self._top)) if os.path.isdir(self._top) else []
        return [tree for place in places for tree in _recorded(place)]

    async def open(self, folder: str, name: str = "") -> HeldWorktree:
        """The worktree of a name for the repository that a folder lies in, made where there is none; "" is a new one.
        Raises CheckoutError, SessionBusyError."""
        if name and not _NAME.fullmatch(name):
            raise CheckoutError(f"{name!r} cannot name a worktree: give letters, digits, '-' and '_', at most 64.")
        if find_program("git", folder) is None:
            raise CheckoutError(not_installed("git"))
        repository = find_repository(folder)
        if repository is None:
            raise CheckoutError(
                f"{folder} is not in a git repository, or in a bare one: run git init or use a checkout."
            )
        head = await git(("rev-parse", "--verify", "-q", "HEAD^{commit}"), folder)
        if head.exit_code != 0:
            raise CheckoutError(f"{repository.root} has no commits, so it cannot have worktrees. Commit once first.")
        common = os.path.realpath(repository.common)
        place = os.path.join(self._top, hashlib.sha256(os.fsencode(common)).hexdigest()[:16])
        private_dir(place)
        path = os.path.join(place, name := name or short_id("w").replace("_", "-"))
        origin = os.path.relpath(os.path.realpath(folder), os.path.realpath(repository.root))
        async with _alone_at(place):
            await _tidy(place)
            if (known := next((one for one in _recorded(place) if one.name == name), None)) is not None:
                return await _again(known, origin)
            tree = Worktree(common, path, f"codewhale/{name}", name, head.stdout.decode().strip(), origin)
            if await tree.tip() or os.path.lexists(path):
                raise CheckoutError(f"The branch {tree.branch} or {path} already exists. Choose another name.")
            _record(tree)
            try:
                await tree.make(tree.base)
            except CheckoutError:
                _drop(tree)
                raise
            return hold(_record(replace(tree, state="ready")))


def hold(tree: Worktree) -> HeldWorktree:
    """Raises SessionBusyError where another process works in it."""
    return HeldWorktree(tree, SessionLock(f"{tree.path}.lock", f"of worktree {tree.name}"))


async def finish(held: HeldWorktree) -> str:
    """End the work in a worktree: "" where it was removed, else what it is kept for."""
    try:
        async with _alone_at(os.path.dirname(held.tree.path)):
            return await held.tree.kept(held.tree.base) or await _removed(held.tree)
    except (ToolError, SessionBusyError, OSError) as error:
        return str(error)
    finally:
        held.lock.release()


async def _again(tree: Worktree, origin: str) -> HeldWorktree:
    """Go on in one that there is; where its folder was deleted, its branch is checked out again."""
    held = hold(replace(tree, origin=origin))
    try:
        if not os.path.lexists(tree.path):
            await tree.discard("")
            await tree.make("" if await tree.tip() else tree.base)
        elif find_repository(tree.path) is None:
            raise CheckoutError(f"{tree.path} is no checkout any more: move what you need out of it, then delete it.")
    except BaseException:
        held.lock.release()
        raise
    return held


async def _removed(tree: Worktree) -> str:
    _record(replace(tree, state="removing", base=await tree.tip()))
    if left := await tree.remove():
        _record(replace(tree, state="ready"))
    else:
        _drop(tree)
    return left


async def _tidy(place: str) -> None:
    """Finish what a process that was killed had begun."""
    for tree in _recorded(place):
        if tree.state == "removing" and os.path.lexists(tree.path):
            _record(replace(tree, state="ready"))
        elif tree.state != "ready":
            await tree.discard(tree.base)
            _drop(tree)


def _recorded(place: str) -> list[Worktree]:
    """What is written of the worktrees in a folder; what was cut off is left out."""
    trees = []
    for file in sorted(name for name in os.listdir(place) if name.endswith(".json")):
        with contextlib.suppress(msgspec.MsgspecError):
            trees.append(msgspec.json.decode(read_small(os.path.join(place, file)) or b"", type=Worktree))
    return trees


def _record(tree: Worktree) -> Worktree:
    atomic_write(f"{tree.path}.json", msgspec.json.encode(tree))
    return tree


def _drop(tree: Worktree) -> None:
    for ending in (".lock", ".json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(tree.path + ending)


@contextlib.asynccontextmanager
async def _alone_at(place: str) -> AsyncIterator[None]:
    """No other process makes or removes worktrees of the repository meanwhile. Raises SessionBusyError."""
    for left in reversed(range(_PATIENCE)):
        try:
            lock = SessionLock(os.path.join(place, ".lock"), "that makes a worktree here")
            break
        except SessionBusyError:
            if not left:
                raise
        await asyncio.sleep(0.02)
    try:
        yield
    finally:
        lock.release()
