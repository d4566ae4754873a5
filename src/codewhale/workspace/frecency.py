"""Which files of a workspace were mentioned, how often and how lately: one small file a workspace, bounded, and worth
nothing when it is lost."""

import contextlib
import hashlib
import os

import msgspec
from msgspec import Struct

from codewhale.lib.clock import Clock
from codewhale.lib.files import atomic_write, private_dir

MOST_FILES = 400
MOST_WORKSPACES = 200
MAX_BYTES = 1 << 20
HALF_LIFE = 7 * 86_400.0


class _Kept(Struct, frozen=True):
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
        """A file was used; what cannot be written down is forgotten."""
        rows, now = self._rows(root), self._clock.now()
        rows[path] = (_faded(rows.get(path), now) + 1.0, now)
        kept = sorted(rows, key=lambda name: _faded(rows[name], now), reverse=True)[:MOST_FILES]
        data = msgspec.json.encode(_Kept(root, {name: rows[name] for name in kept}))
        with contextlib.suppress(OSError, UnicodeEncodeError):
            private_dir(self._home)
            private_dir(self._folder)
            atomic_write(self._place(root), data, 0o600)
            self._prune()

    def scores(self, root: str) -> dict[str, float]:
        """What each file that was ever used is worth now."""
        now = self._clock.now()
        return {path: _faded(row, now) for path, row in self._rows(root).items()}

    def _rows(self, root: str) -> dict[str, tuple[float, float]]:
        try:
            with open(self._place(root), "rb") as file:
                return dict(msgspec.json.decode(file.read(MAX_BYTES), type=_Kept).rows)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    def _place(self, root: str) -> str:
        return os.path.join(self._folder, hashlib.sha256(os.fsencode(root)).hexdigest()[:32] + ".json")

    def _prune(self) -> None:
        """Let the workspaces go that were not used for longest."""
        with os.scandir(self._folder) as entries:
            found = sorted((entry.stat().st_mtime, entry.path) for entry in entries if entry.name.endswith(".json"))
        for _, path in found[:-MOST_WORKSPACES]:
            os.unlink(path)


def _faded(row: tuple[float, float] | None, now: float) -> float:
    if row is None:
        return 0.0
    score, at = row
    return float(score * 0.5 ** (max(0.0, now - at) / HALF_LIFE))
