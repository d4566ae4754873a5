"""What was cleared, for 30 days: a file for each fact in `HOME/memory/trash`."""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.lib.clock import rfc3339
from codewhale.lib.files import atomic_write
from codewhale.memory.files import locked
from codewhale.memory.model import Fact

SECONDS = 30 * 86_400.0
MOST = 20_000
_LONGEST = 4 << 20  # lines of a whole file are more in JSON
_FOLDER = re.compile(r"global|workspace/[\w-]{1,64}", re.ASCII)


class ClearedFact(Struct, frozen=True):
    """A fact, the folder below `memory` that it was in, when it was cleared (RFC 3339), its id here, and its lines."""

    fact: Fact
    folder: str
    cleared: str
    name: str = ""
    lines: bytes = b""


class Trash:
    def __init__(self, root: str, now: Callable[[], float]) -> None:
        self._root = root
        self.folder = os.path.join(root, "trash")
        self._now = now

    def put(self, facts: Iterable[Fact], folder: str, lines: Mapping[str, bytes] | None = None) -> None:
        """Keep facts of a folder, by their ids with their lines. Raises OSError, MemoryRefused."""
        with locked(self._root, self.folder):
            held = {(one.folder, one.fact.id): one.name for one in self.entries()}
            names = self._names()
            for name in names[: max(0, len(names) - MOST)]:
                self.remove(name)
            taken = set(names)
            for fact in facts:
                own = [fact.id, *(f"{fact.id}-{number}" for number in range(2, MOST))]
                name = held.get((folder, fact.id)) or next(name for name in own if name not in taken)
                taken.add(name)
                entry = ClearedFact(fact, folder, rfc3339(self._now()), name, (lines or {}).get(fact.id, b""))
                atomic_write(self._path(name), msgspec.json.encode(entry))

    def entries(self) -> tuple[ClearedFact, ...]:
        """Those of the last 30 days, oldest first; older ones are removed."""
        return tuple(sorted(self._young(), key=lambda one: one.cleared))

    def remove(self, name: str) -> None:
        """For good."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(name))

    def _young(self) -> Iterator[ClearedFact]:
        oldest = self._now() - SECONDS
        for name in self._names():
            entry = self._entry(name)
            with contextlib.suppress(OSError):
                since = os.stat(self._path(name)).st_mtime
                if since < oldest if entry is None else entry.cleared < rfc3339(oldest):
                    self.remove(name)
                elif entry is not None:
                    yield entry

    def _names(self) -> list[str]:
        try:
            with os.scandir(self.folder) as listed:
                found = [(one.stat(follow_symlinks=False).st_mtime, one.name) for one in listed]
        except OSError:
            return []
        return [name.removesuffix(".json") for _, name in sorted(found) if name.endswith(".json")]

    def _entry(self, name: str) -> ClearedFact | None:
        """None for one that is damaged, which stays until it is old."""
        try:
            data = read_regular(os.open(self._path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), _LONGEST)
            entry = msgspec.json.decode(data or b"", type=ClearedFact)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return msgspec.structs.replace(entry, name=name) if _FOLDER.fullmatch(entry.folder) else None

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, f"{name}.json")
