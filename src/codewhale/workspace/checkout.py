"""A git checkout of its own beside a repository: made, judged and removed, with no hook, filter or program that the
repository names."""

import asyncio
import contextlib
import os
import shutil
import time

from msgspec import Struct

from codewhale.lib.text import counted, one_line
from codewhale.process.launch import Completed
from codewhale.process.repository import find_repository
from codewhale.protocol.errors import ConfigError
from codewhale.workspace.git import changing, git, head_ref
from codewhale.workspace.ignore import CACHES

_UNDER_WAY = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")
_TRIES = 20
_LOCKED = 1.0  # seconds; git itself holds the lock of a branch for milliseconds
_GONE, _INDEX_LIMIT = ".gone", 256 << 20
_SEEN = (b"H 100", b"H 120")  # how the row of a file or a link begins that git looks at


class CheckoutError(ConfigError):
    """A checkout cannot be made or gone on with."""


class Checkout(Struct, frozen=True):
    """The checkout at `path`, on `branch`, of the repository with git directory `common`. Raises ToolError where git
    cannot be asked."""

    common: str
    path: str
    branch: str

    async def make(self, base: str) -> None:
        """Check out a new branch at commit `base`; "" checks out the branch that there is. Raises CheckoutError with
        nothing left behind."""
        new = ("-b", self.branch, self.path, base) if base else (self.path, self.branch)
        done = await self._git("worktree", "add", "-q", *new)
        right = await self.stands() and base in ("", await self.tip())
        if done.exit_code != 0 or not right:
            await self.discard(base)
            raise CheckoutError(f"git created no worktree at {self.path}: {_why(done) or 'it made another one'}.")

    async def stands(self) -> bool:
        """Whether this checkout, and no other, is at its path, on its branch."""
        repository = find_repository(self.path)
        place = None if repository is None else (repository.root, os.path.realpath(repository.common))
        return place == (self.path, self.common) and await head_ref(self.path) == self.branch

    async def tip(self) -> str:
        """The commit of its branch, "" where there is no such branch."""
        done = await self._git("rev-parse", "--verify", "-q", f"refs/heads/{self.branch}")
        return done.stdout.decode().strip()

    async def kept(self, base: str) -> str:
        """What it holds since `base` that is nowhere else, in words; "" for nothing."""
        tip = await self.tip()
        refs = ("for-each-ref", f"--contains={tip}", "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags")
        held_by = set((await self._git(*refs)).stdout.decode().split()) if tip else set()
        if tip not in ("", base) and held_by <= {f"refs/heads/{self.branch}"}:
            count = await self._git("rev-list", "--count", f"{base}..{tip}")
            return f"{counted(int(count.stdout or 0), 'commit')} that no other branch has"
        return await self._unsaved() if os.path.isdir(self.path) else ""

    async def _unsaved(self) -> str:
        repository = find_repository(self.path)
        if repository is None or not await self.stands():
            return f"it is not on branch {self.branch}"
        if any(os.path.exists(os.path.join(repository.gitdir, name)) for name in _UNDER_WAY):
            return "a merge or rebase is in progress"
        status = await git(("status", "--porcelain", "-z", "--ignored", "--untracked-files=normal"), self.path)
        index = await git(("ls-files", "-z", "-v", "-s"), self.path, output_limit=_INDEX_LIMIT)
        if status.exit_code or index.exit_code or index.stdout_gap >= 0:
            return "git cannot say what changed"
        rows = [row for row in status.stdout.split(b"\0") if row]
        ignored = [os.path.basename(os.fsdecode(row[3:]).rstrip("/")) for row in rows if row.startswith(b"!!")]
        others = sum(name not in CACHES and not name.endswith(".pyc") for name in ignored)
        unseen = [row.partition(b"\t") for row in index.stdout.split(b"\0")[:-1] if not row.startswith(_SEEN)]
        words = (
            counted(sum(not row.startswith(b"!!") for row in rows), "changed file"),
            f"{counted(others, 'file')} that git ignores",
            f"{counted(sum(self._holds(name) for _, _, name in unseen), 'path')} that git does not look at",
        )
        return next((text for text in words if not text.startswith("0 ")), "")

    def _holds(self, name: bytes) -> bool:
        path = os.path.join(os.fsencode(self.path), name)
        return bool(os.listdir(path)) if os.path.isdir(path) else os.path.lexists(path)

    async def remove(self) -> str:
        """Take away a checkout that holds nothing, and its branch; why it is still there, "" when it is gone."""
        tip, gone, stands = await self.tip(), self.path + _GONE, os.path.lexists(self.path)
        if stands:
            os.rename(self.path, gone)  # a kill leaves all of it or nothing
        done = await self._git("worktree", "remove", self.path)
        if done.exit_code == 0:
            await self.discard(tip)
            return ""
        if stands:
            os.rename(gone, self.path)
        return _why(done) or "git did not remove it"

    async def discard(self, tip: str) -> None:
        """Take away what nobody works in, and its branch where that is at `tip`."""
        for place in (self.path, self.path + _GONE):
            for _ in range(_TRIES):
                await asyncio.to_thread(shutil.rmtree, place, True)
                if not os.path.lexists(place):
                    break
                await asyncio.sleep(_LOCKED / _TRIES)  # a child of a git that was killed may still write there
        await self._git("worktree", "remove", "--force", "--force", self.path)
        entry = os.path.join(self.common, "worktrees", os.path.basename(self.path))
        if not os.path.lexists(os.path.join(entry, "gitdir")):  # what a git that was killed left, which git ignores
            await asyncio.to_thread(shutil.rmtree, entry, True)
        if tip and tip == await self.tip():
            delete = ("update-ref", "-d", f"refs/heads/{self.branch}", tip)
            if (await self._git(*delete)).exit_code and await self._unlocked():
                await self._git(*delete)

    async def _unlocked(self) -> bool:
        """Take away the lock of its branch that a git which was killed left; False where one is at work."""
        lock = os.path.join(self.common, "refs", "heads", f"{self.branch}.lock")
        try:
            age = time.time() - os.stat(lock).st_mtime
            await asyncio.sleep(min(max(0.0, _LOCKED - age), _LOCKED))
        except OSError:
            return False
        with contextlib.suppress(OSError):
            os.unlink(lock)
        return True

    async def _git(self, *args: str) -> Completed:
        return await changing(args, self.common)


def _why(done: Completed) -> str:
    return one_line(done.stderr.decode("utf-8", "replace").strip().partition("\n")[0], 300).rstrip(".;")
