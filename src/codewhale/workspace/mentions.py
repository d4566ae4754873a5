"""Finding a file of the workspace by a few letters of its path, as one types them behind an @."""

import asyncio
import heapq
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from codewhale.protocol.views import FileMatch
from codewhale.workspace.frecency import FrecencyStore
from codewhale.workspace.walk import Walker

FRESH_SECONDS = 3.0
MOST_ROOTS = 8
MOST_ROWS = 200
LONGEST = 200
_EDGE = re.compile(r"(?:^|[/_.\- ])(\w)")


class _Seen(Struct):
    """The files of a folder as they were at a time, and those of them that fitted the last text."""

    paths: tuple[str, ...]
    at: float
    last: tuple[str, tuple[str, ...]] = ("", ())


class Mentions:
    """Files by their paths. What was used often and lately comes first among equals."""

    def __init__(self, frecency: FrecencyStore) -> None:
        self._frecency = frecency
        self._seen: dict[str, _Seen] = {}
        self._walks: dict[str, asyncio.Task[None]] = {}

    async def find(self, workspace: str, text: str, limit: int) -> tuple[FileMatch, ...]:
        """The files and folders whose paths hold the letters of `text` in order, the best first. Those of the last
        moment are used while the workspace is looked at again; only the first time is waited for."""
        root = os.path.realpath(workspace)
        seen = self._seen.get(root)
        if seen is None or time.monotonic() - seen.at > FRESH_SECONDS:
            walk = self._walk(root)
            if seen is None:
                await asyncio.shield(walk)
        seen = self._seen[root]
        return await asyncio.to_thread(self._ranked, root, seen, text[:LONGEST], max(0, min(limit, MOST_ROWS)))

    async def note(self, workspace: str, path: str) -> None:
        """A file was mentioned or opened; one outside the workspace is none of its files."""
        root = os.path.realpath(workspace)
        inside = os.path.relpath(os.path.join(root, path), root)
        if not inside.startswith("..") and "\0" not in inside:
            await asyncio.to_thread(self._frecency.note, root, inside)

    async def aclose(self) -> None:
        """Stop looking."""
        walks = list(self._walks.values())
        for walk in walks:
            walk.cancel()
        await asyncio.gather(*walks, return_exceptions=True)

    def _walk(self, root: str) -> asyncio.Task[None]:
        running = self._walks.get(root)
        if running is None or running.done():
            running = self._walks[root] = asyncio.create_task(self._look(root), name=f"files of {root}")
        return running

    async def _look(self, root: str) -> None:
        paths: tuple[str, ...] = ()
        try:
            listing = await Walker(root).files()
            paths = await asyncio.to_thread(_with_folders, (*listing.files, *listing.links))
        except (OSError, ValueError):
            pass  # a workspace that is gone has no files
        self._seen[root] = _Seen(paths, time.monotonic())
        while len(self._seen) > MOST_ROOTS:
            del self._seen[next(iter(self._seen))]

    def _ranked(self, root: str, seen: _Seen, typed: str, limit: int) -> tuple[FileMatch, ...]:
        wanted = typed.lower().replace(" ", "").removeprefix("./")
        ranks = self._frecency.scores(root)
        text, fitted = seen.last  # taken and set as one: questions are answered side by side
        fitting = fits(fitted if text and wanted.startswith(text) else seen.paths, wanted)
        seen.last = wanted, fitting
        return best(fitting, wanted, ranks, limit)


def fits(paths: Sequence[str], wanted: str) -> tuple[str, ...]:
    """The paths that hold the letters of `wanted` in order."""
    if not wanted:
        return tuple(paths)
    pattern = re.compile("".join(f"[^{re.escape(char)}]*{re.escape(char)}" for char in wanted), re.DOTALL)
    return tuple(path for path in paths if pattern.match(path.lower()))


def best(paths: Iterable[str], wanted: str, ranks: Mapping[str, float], limit: int) -> tuple[FileMatch, ...]:
    """The `limit` best of paths that fit: by how they fit, then by use, then short before long."""
    scored = ((_score(path, wanted) + 12.0 * math.log1p(ranks.get(path, 0.0)), path) for path in paths)
    found = heapq.nsmallest(limit, ((-score, len(path), path) for score, path in scored))
    return tuple(FileMatch(path, round(-score, 2)) for score, _, path in found)


def _score(path: str, wanted: str) -> float:
    """How well letters fit: a name that is them, begins with them, holds them; a path that holds them; the beginnings
    of its words; letters that stand together. Deep and long paths lose a little."""
    cost = path.count("/") * 1.0 + len(path) * 0.02
    if not wanted:
        return -cost
    low = path.lower()
    name = low.rstrip("/").rpartition("/")[2]
    if name == wanted or name.partition(".")[0] == wanted:
        return 100.0 - cost
    if name.startswith(wanted):
        return 90.0 - cost
    if (at := name.find(wanted)) >= 0:
        return 75.0 - min(at, 20) * 0.2 - cost
    if wanted in low:
        return 65.0 - cost
    if "".join(_EDGE.findall(low)).find(wanted) >= 0:
        return 55.0 - cost
    return _together(low, wanted) - cost


def _together(path: str, wanted: str) -> float:
    """Up to 45: the share of letters that follow one another, matched from the end, where the name is."""
    at, joined = len(path), 0
    for char in reversed(wanted):
        before = path.rfind(char, 0, at)
        joined += before == at - 1
        at = before
    return 15.0 + 30.0 * joined / len(wanted)


def _with_folders(files: Sequence[str]) -> tuple[str, ...]:
    folders: set[str] = set()
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder + "/" not in folders:
            folders.add(folder + "/")
            folder = folder.rpartition("/")[0]
    return (*files, *sorted(folders))
