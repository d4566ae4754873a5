"""Finding a file of the workspace by a few letters of its path: how well they fit, and which files are used often."""

import asyncio
import contextlib
import hashlib
import heapq
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from codewhale.lib.clock import Clock
from codewhale.lib.files import atomic_write, private_dir
from codewhale.protocol.views import FileMatch
from codewhale.workspace.walk import Walker


def score(query: str, path: str) -> float | None:
    """From 0.55 to 1.0, or None when the letters of `query` do not even occur in order. Case does not count.

    Equal name 1.0, equal path .98; name begins with it .9, path .85; name holds it .75, path .7, each plus up to .08
    the more of the whole it is; letters in order in the name .6, in the path .55, plus up to .4 for closeness.
    """
    wanted, whole = query.casefold(), path.casefold()
    name = whole.rpartition("/")[2]
    if wanted in (name, whole):
        return 1.0 if wanted == name else 0.98
    for fits, base, target in (
        (name.startswith(wanted), 0.9, name),
        (whole.startswith(wanted), 0.85, whole),
        (wanted in name, 0.75, name),
        (wanted in whole, 0.7, whole),
    ):
        if fits:
            return base + 0.08 * len(wanted) / len(target)
    scattered = [
        base + 0.4 * fit
        for base, target in ((0.6, name), (0.55, whole))
        if (fit := _in_order(wanted, target)) is not None
    ]
    return max(scattered, default=None)


def _in_order(wanted: str, target: str) -> float | None:
    """0 to 1: how close together (.7) and how much of `target` (.3) the letters of `wanted` are, found in order."""
    first, at = -1, -1
    for char in wanted:
        at = target.find(char, at + 1)
        if at < 0:
            return None
        if first < 0:
            first = at
    if not wanted:
        return None
    return 0.7 * len(wanted) / (at - first + 1) + 0.3 * len(wanted) / len(target)


MOST_FILES = 400
MOST_WORKSPACES = 200
MAX_BYTES = 1 << 20
HALF_LIFE = 7 * 86_400.0


class _UsageFile(Struct, frozen=True):
    """`rows` are (score at a time, that time in Unix seconds) by path."""

    root: str
    rows: dict[str, tuple[float, float]] = {}
    version: int = 1


class FrecencyStore:
    """Scores of files, each use worth one and half as much a week later; `home` is the state directory."""

    def __init__(self, home: str, clock: Clock) -> None:
        self._home = home
        self._folder = os.path.join(home, "frecency")
        self._clock = clock

    def note(self, root: str, path: str) -> None:
        rows, now = self._rows(root), self._clock.now()
        rows[path] = (_faded(rows.get(path), now) + 1.0, now)
        kept = sorted(rows, key=lambda name: _faded(rows[name], now), reverse=True)[:MOST_FILES]
        data = msgspec.json.encode(_UsageFile(root, {name: rows[name] for name in kept}))
        with contextlib.suppress(OSError, UnicodeEncodeError):
            private_dir(self._home)
            private_dir(self._folder)
            atomic_write(self._place(root), data, 0o600)
            self._prune()

    def scores(self, root: str) -> dict[str, float]:
        now = self._clock.now()
        return {path: _faded(row, now) for path, row in self._rows(root).items()}

    def _rows(self, root: str) -> dict[str, tuple[float, float]]:
        try:
            with open(self._place(root), "rb") as file:
                return dict(msgspec.json.decode(file.read(MAX_BYTES), type=_UsageFile).rows)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    def _place(self, root: str) -> str:
        return os.path.join(self._folder, hashlib.sha256(os.fsencode(root)).hexdigest()[:32] + ".json")

    def _prune(self) -> None:
        """Let the workspaces go that were not used for longest."""
        with os.scandir(self._folder) as entries:
            files = sorted((entry.stat().st_mtime, entry.path) for entry in entries if entry.name.endswith(".json"))
        for _, path in files[:-MOST_WORKSPACES]:
            os.unlink(path)


def _faded(row: tuple[float, float] | None, now: float) -> float:
    if row is None:
        return 0.0
    score, at = row
    return float(score * 0.5 ** (max(0.0, now - at) / HALF_LIFE))


FRESH_SECONDS = 3.0
MOST_ROOTS = 8
MOST_ROWS = 200
LONGEST = 200
_WORD_STARTS = re.compile(r"(?:^|[/_.\- ])(\w)")


class _FolderFiles(Struct):
    """The files of a folder as they were at a time, and those of them that fitted the last text."""

    paths: tuple[str, ...]
    at: float
    last: tuple[str, tuple[str, ...]] = ("", ())


class FileFinder:
    """Files by their paths. What was used often and lately comes first among equals."""

    def __init__(self, frecency: FrecencyStore) -> None:
        self._frecency = frecency
        self._seen: dict[str, _FolderFiles] = {}
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
        self._seen[root] = _FolderFiles(paths, time.monotonic())
        while len(self._seen) > MOST_ROOTS:
            del self._seen[next(iter(self._seen))]

    def _ranked(self, root: str, seen: _FolderFiles, typed: str, limit: int) -> tuple[FileMatch, ...]:
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
    scored = ((_fit(path, wanted) + 0.12 * math.log1p(ranks.get(path, 0.0)), path) for path in paths)
    ranked = heapq.nsmallest(limit, ((-fit, len(path), path) for fit, path in scored))
    return tuple(FileMatch(path, round(-fit, 2)) for fit, _, path in ranked)


def _fit(path: str, wanted: str) -> float:
    """`score`, but the beginnings of words go before other scattered letters; deep and long paths lose a little."""
    cost = path.count("/") * 0.01 + len(path) * 0.0002
    if not wanted:
        return -cost
    plain = path.rstrip("/")
    fit = score(wanted, plain) or 0.0
    if wanted not in plain.lower():
        fit = 0.69 if wanted in "".join(_WORD_STARTS.findall(plain.lower())) else 0.7 * fit
    return fit - cost


def _with_folders(files: Sequence[str]) -> tuple[str, ...]:
    folders: set[str] = set()
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder + "/" not in folders:
            folders.add(folder + "/")
            folder = folder.rpartition("/")[0]
    return (*files, *sorted(folders))
