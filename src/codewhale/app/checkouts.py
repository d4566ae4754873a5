"""What is written of the checkouts that sessions have of their own, and who works in each: records and locks below the
state directory; git makes and removes them elsewhere."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from typing import Literal

import msgspec
from msgspec import Struct

from codewhale.lib.files import atomic_write
from codewhale.protocol.errors import SessionBusyError
from codewhale.session.lock import SessionLock, is_held

_PATIENCE = 60.0
_MOST_RECORD = 65_536


class Worktree(Struct, frozen=True):
    """A checkout: its name, where it lies, its branch, the commit it began at, and the git directory and the folder it
    was made from. Only a `ready` one was ever handed out."""

    name: str
    path: str
    branch: str
    base: str
    common: str
    origin: str
    state: Literal["making", "ready", "removing"] = "making"

    @property
    def workspace(self) -> str:
        """The folder in it that stands for the one it was made from."""
        return os.path.normpath(os.path.join(self.path, self.origin))


class HeldWorktree(Struct, frozen=True):
    """A worktree that this process works in: nobody else takes or removes it while it has the lock."""

    tree: Worktree
    lock: SessionLock


def worktrees(home: str) -> list[Worktree]:
    """Those that there are, of every repository."""
    top = os.path.join(os.path.realpath(home), "worktrees")
    places = sorted(entry.path for entry in os.scandir(top)) if os.path.isdir(top) else []
    names = [(place, file) for place in places for file in sorted(os.listdir(place)) if file.endswith(".json")]
    known = (read_worktree(place, file[: -len(".json")]) for place, file in names)
    return [tree for tree in known if tree is not None]


def in_use(tree: Worktree) -> bool:
    return is_held(f"{tree.path}.lock")


def read_worktree(place: str, name: str) -> Worktree | None:
    """What is written of a worktree; None for nothing, or what was cut off."""
    try:
        with open(os.path.join(place, f"{name}.json"), "rb") as file:
            return msgspec.json.decode(file.read(_MOST_RECORD), type=Worktree)
    except (OSError, msgspec.MsgspecError):
        return None


def write_worktree(tree: Worktree) -> Worktree:
    atomic_write(f"{tree.path}.json", msgspec.json.encode(tree))
    return tree


def hold(tree: Worktree) -> HeldWorktree:
    """Raises SessionBusyError where another process works in it."""
    return HeldWorktree(tree, SessionLock(f"{tree.path}.lock", f"of worktree {tree.name}"))


@contextlib.asynccontextmanager
async def alone_at(place: str) -> AsyncIterator[None]:
    """No other process makes or removes worktrees of the repository meanwhile. Raises SessionBusyError."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            lock = SessionLock(os.path.join(place, ".lock"), "that makes a worktree here")
            break
        except SessionBusyError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.02)
    try:
        yield
    finally:
        lock.release()
