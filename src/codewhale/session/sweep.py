"""Removal of what killed processes leave behind in a home: half-made files and directories that nothing names."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator

from codewhale.lib.files import DISK
from codewhale.lib.patterns import lazy
from codewhale.session.log import LOG_FILE

DAY = 86_400.0
PATIENCE = 0.2
MARK = ".swept"
_HALF_MADE = lazy(r"\..*\.[0-9a-f]{16}\.tmp|log\.jsonl\.new")
_REMOVED = ".removed-"


def sweep(home: str, *, patience: float = PATIENCE) -> int:
    """Remove what has been left over in `home` for more than a day; how many. Looks once a day, for `patience`
    seconds at most, and never raises: what it does not reach today it reaches another day."""
    mark = os.path.join(home, MARK)
    try:
        with contextlib.suppress(FileNotFoundError):
            if 0 <= time.time() - os.stat(mark).st_mtime < DAY:
                return 0
        os.close(DISK.open(mark, os.O_WRONLY | os.O_CREAT))
        os.utime(mark)
        return _sweep(home, os.stat(mark).st_mtime - DAY, time.monotonic() + patience)
    except OSError:
        return 0


def _sweep(home: str, before: float, until: float) -> int:
    removed = 0
    for place in ("sessions", "artifacts"):
        for folder in _shuffled(os.path.join(home, place)):
            if time.monotonic() > until:
                return removed
            with contextlib.suppress(OSError):
                removed += _tidy(folder, before, sessions=place == "sessions")
    return removed


def _shuffled(root: str) -> Iterator[os.DirEntry[str]]:
    """The directories in `root` from a different one on each time, so that all are reached in the end."""
    try:
        with os.scandir(root) as entries:
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return
    start = int.from_bytes(os.urandom(4), "big") % max(1, len(folders))
    yield from folders[start:]
    yield from folders[:start]


def _tidy(folder: os.DirEntry[str], before: float, *, sessions: bool) -> int:
    removed, names = 0, set[str]()
    touched = folder.stat(follow_symlinks=False).st_mtime
    with os.scandir(folder.path) as entries:
        for entry in entries:
            names.add(entry.name)
            if _HALF_MADE().fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)
                removed += 1
    unnamed = folder.name.startswith(_REMOVED) or LOG_FILE not in names
    if sessions and unnamed and touched < before:
        shutil.rmtree(folder.path, ignore_errors=True)
        removed += 1
    return removed
