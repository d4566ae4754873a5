"""Pipes and devices where git expects files: it would wait on one for ever, so they are looked for before it runs, and
in the whole tree once it takes long."""

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Iterator

from codewhale.protocol.errors import NextCall, ToolError
from codewhale.system.command import Completed
from codewhale.system.repository import Repository, config_entries, config_files, steering

# Beside the configuration, what git opens below its own folder with nearly every command, and at the top of the tree.
_OWN = ("HEAD", "index", "packed-refs", "info/exclude", "info/attributes", "commondir", "gitdir", "shallow")
_NAMES = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")
_MOST_ENTRIES = 500_000
_SECONDS = 5.0
_LONGEST = 1024
_LONG = 2.0  # seconds after which a command may be waiting on what never answers


async def refuse_specials(repository: Repository) -> None:
    """Raise ToolError not_available where git would wait at once."""
    _refuse(await asyncio.to_thread(first_special, repository))


async def ended_where_it_waits(running: Awaitable[Completed], repository: Repository) -> Completed:
    """What a git command ended with; ended itself when it takes long and there is something that it would wait on for
    ever. Raises ToolError not_available."""
    task = asyncio.ensure_future(running)
    try:
        await asyncio.wait((task,), timeout=_LONG)
        if not task.done():
            _refuse(await asyncio.to_thread(hidden_special, repository))
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _refuse(path: str) -> None:
    if path:
        raise ToolError(
            "not_available",
            f"{path} is a pipe or a device, on which git would wait for ever. Put a file in its place, or remove it.",
            expected="a regular file",
            fix=NextCall("list_dir", {"path": "."}),
        )


def first_special(repository: Repository) -> str:
    """The first of the places that git looks at in any case which holds no regular file, "" for none."""
    own = (os.path.join(place, name) for place in (repository.gitdir, repository.common) for name in _OWN)
    configs = [*config_files(repository), *steering(repository.root)[0]]
    for path in (*configs, *own, *_named(repository, configs)):
        if _waits(path, follow=True):
            return path
    top = (os.path.join(repository.root, name) for name in _NAMES)
    return next((path for path in top if _waits(path, follow=False)), "")


def hidden_special(repository: Repository) -> str:
    """The first pipe or device anywhere below git's own folders, or in a place of the tree where git reads rules; ""
    for none in half a million entries and five seconds."""
    deadline = time.monotonic() + _SECONDS
    left = _MOST_ENTRIES
    todo = [(place, True) for place in dict.fromkeys((repository.gitdir, repository.common))]
    todo.append((repository.root, False))
    while todo and left > 0 and time.monotonic() < deadline:
        folder, own = todo.pop()
        for entry in _entries(folder):
            left -= 1
            if entry.is_dir(follow_symlinks=False):
                if entry.path not in (repository.gitdir, repository.common):
                    todo.append((entry.path, own))
            elif (own or entry.name in _NAMES) and _waits(entry.path, follow=own):
                return entry.path
    return ""


def _named(repository: Repository, configs: list[str]) -> Iterator[str]:
    """Files that a configuration may name: any value can be a path."""
    for config in configs:
        for _, value in config_entries(config):
            if value and "\0" not in value and len(value) < _LONGEST:
                path = os.path.expanduser(value)
                yield from (os.path.join(place, path) for place in (os.path.dirname(config), repository.root))


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _waits(path: str, follow: bool) -> bool:
    try:
        found = os.stat(path, follow_symlinks=follow)
        nothing = os.stat(os.devnull).st_rdev
    except OSError:
        return False
    return stat.S_ISFIFO(found.st_mode) or (stat.S_ISCHR(found.st_mode) and found.st_rdev != nothing)
