"""A copy of a workspace to look around in: what git does not ignore, and the repository itself, within bounds."""

import asyncio
import os
import shutil

from codewhale.workspace.walk import Walker

MOST_FILES = 50_000
MOST_BYTES = 1 << 30


class TooLargeError(Exception):
    """The workspace is beyond the bounds; the text says which."""


async def copy_workspace(root: str, target: str) -> int:
    """Copy `root`, an absolute folder, into the existing folder `target`; how many files that were. Links are copied
    as links; a repository's hooks are left out. Raises TooLargeError, OSError."""
    listing = await Walker(root, limit=MOST_FILES).files()
    if listing.truncated:
        raise TooLargeError(f"{root} holds more than {MOST_FILES} files")
    return await asyncio.to_thread(_copy, root, target, (*listing.files, *listing.links))


def _copy(root: str, target: str, names: tuple[str, ...]) -> int:
    repository = os.path.join(root, ".git")
    inside = tuple(_inside(repository)) if os.path.isdir(repository) else ()
    left = MOST_BYTES
    count = 0
    for name in (*names, *(os.path.join(".git", one) for one in inside)):
        source, copy = os.path.join(root, name), os.path.join(target, name)
        try:
            left -= os.lstat(source).st_size
        except FileNotFoundError:
            continue
        if left < 0:
            raise TooLargeError(f"{root} holds more than {MOST_BYTES >> 20} MiB")
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy2(source, copy, follow_symlinks=False)
        count += 1
    for folder in ("refs", "objects"):
        if inside:
            os.makedirs(os.path.join(target, ".git", folder), exist_ok=True)
    return count


def _inside(repository: str) -> list[str]:
    found = []
    for folder, names, files in os.walk(repository):
        here = os.path.relpath(folder, repository)
        if here == ".":
            names[:] = [name for name in names if name != "hooks"]
        found += [os.path.normpath(os.path.join(here, name)) for name in files if not name.endswith(".lock")]
    return found
