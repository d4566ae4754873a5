"""Pipes and devices where git expects files: it would wait on one for ever, so they are looked for before it runs, and
in the whole tree once it takes long."""

import asyncio
import os
import re
import stat
import time
from collections.abc import Awaitable, Iterator

from codewhale.process.command import Completed
from codewhale.process.repository import Repository, config_files, read_small, steering
from codewhale.protocol.errors import NextCall, ToolError

# Beside the configuration, what git opens below its own folder with nearly every command, and at the top of the tree.
_OWN = ("HEAD", "index", "packed-refs", "info/exclude", "info/attributes", "commondir", "gitdir", "shallow")
_NAMES = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")
_VALUE = re.compile(rb"=[ \t]*\"?([^\"\n#;\0]{1,1000})")
_SECONDS = 5.0
_LONG = 2.0  # seconds after which a command may be waiting on what never answers


async def ended_where_it_waits(running: Awaitable[Completed], repository: Repository) -> Completed:
    """What a git command ended with; ended itself when it takes long and there is something that it would wait on for
    ever. Raises ToolError not_available."""
    task = asyncio.ensure_future(running)
    try:
        await asyncio.wait((task,), timeout=_LONG)
        if not task.done():
            await refuse_specials(repository, everywhere=True)
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def refuse_specials(repository: Repository, everywhere: bool = False) -> None:
    """Raise ToolError not_available where git would wait: at once, or at any place that it may look at."""
    places = _everywhere(repository) if everywhere else _at_once(repository)
    path = await asyncio.to_thread(next, filter(_waits, places), "")
    if path:
        text = f"{path} is a pipe or a device, on which git would wait for ever. Put a file in its place, or remove it."
        fix = NextCall("list_dir", {"path": "."})
        raise ToolError("not_available", text, expected="a regular file", fix=fix)


def _at_once(repository: Repository) -> Iterator[str]:
    configs = [*config_files(repository), *steering(repository.root)[0]]
    yield from configs
    yield from (os.path.join(place, name) for place in (repository.gitdir, repository.common) for name in _OWN)
    yield from (os.path.join(repository.root, name) for name in _NAMES)
    for config in configs:  # any value can be the path of a file that git reads
        for value in _VALUE.findall(read_small(config) or b""):
            path = os.path.expanduser(os.fsdecode(value.strip()))
            yield from (os.path.join(place, path) for place in (os.path.dirname(config), repository.root))


def _everywhere(repository: Repository) -> Iterator[str]:
    """Below git's own folders, and in the tree where git reads rules; five seconds long."""
    deadline = time.monotonic() + _SECONDS
    for place in (repository.gitdir, repository.common, repository.root):
        for folder, _, names in os.walk(place):
            if time.monotonic() > deadline:
                return
            yield from (os.path.join(folder, name) for name in names if place != repository.root or name in _NAMES)


def _waits(path: str) -> bool:
    """Rules of a tree that are a link are passed over by git."""
    try:
        found = os.stat(path, follow_symlinks=os.path.basename(path) not in _NAMES)
        nothing = os.stat(os.devnull).st_rdev
    except OSError:
        return False
    return stat.S_ISFIFO(found.st_mode) or (stat.S_ISCHR(found.st_mode) and found.st_rdev != nothing)
