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
_SECONDS = 5.0
_LONG = 2.0  # seconds after which a command may be waiting on what never answers


async def refuse_specials(repository: Repository) -> None:
    """Raise ToolError not_available where git would wait at once."""
    _refuse(await asyncio.to_thread(_first_special, repository))


async def ended_where_it_waits(running: Awaitable[Completed], repository: Repository) -> Completed:
    """What a git command ended with; ended itself when it takes long and there is something that it would wait on for
    ever. Raises ToolError not_available."""
    task = asyncio.ensure_future(running)
    try:
        await asyncio.wait((task,), timeout=_LONG)
        if not task.done():
            _refuse(await asyncio.to_thread(_hidden_special, repository))
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _refuse(path: str) -> None:
    if path:
        text = f"{path} is a pipe or a device, on which git would wait for ever. Put a file in its place, or remove it."
        fix = NextCall("list_dir", {"path": "."})
        raise ToolError("not_available", text, expected="a regular file", fix=fix)


def _first_special(repository: Repository) -> str:
    """The first of the places that git looks at in any case which holds no regular file, "" for none."""
    configs = [*config_files(repository), *steering(repository.root)[0]]
    own = [os.path.join(place, name) for place in (repository.gitdir, repository.common) for name in _OWN]
    top = [os.path.join(repository.root, name) for name in _NAMES]
    named = (path for config in configs for path in _named(repository, config))
    first = next((path for path in (*configs, *own, *named) if _waits(path, follow=True)), "")
    return first or next((path for path in top if _waits(path, follow=False)), "")


def _hidden_special(repository: Repository) -> str:
    """The first pipe or device anywhere below git's own folders, or in a place of the tree where git reads rules; ""
    for none in five seconds."""
    deadline = time.monotonic() + _SECONDS
    for place, own in ((repository.gitdir, True), (repository.common, True), (repository.root, False)):
        for folder, _, names in os.walk(place):
            if time.monotonic() > deadline:
                return ""
            paths = (os.path.join(folder, name) for name in names if own or name in _NAMES)
            if waited_on := next((path for path in paths if _waits(path, follow=own)), ""):
                return waited_on
    return ""


def _named(repository: Repository, config: str) -> Iterator[str]:
    """Files that a configuration may name: any value can be a path."""
    for _, value in config_entries(config):
        if value and "\0" not in value and len(value) < 1024:
            path = os.path.expanduser(value)
            yield from (os.path.join(place, path) for place in (os.path.dirname(config), repository.root))


def _waits(path: str, follow: bool) -> bool:
    try:
        found = os.stat(path, follow_symlinks=follow)
        nothing = os.stat(os.devnull).st_rdev
    except OSError:
        return False
    return stat.S_ISFIFO(found.st_mode) or (stat.S_ISCHR(found.st_mode) and found.st_rdev != nothing)
