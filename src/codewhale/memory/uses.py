"""How often each fact was used, and when last: by id, without a text, and no part of the index."""

import contextlib
import os
import time
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.lib.clock import rfc3339
from codewhale.lib.files import atomic_write
from codewhale.memory.files import locked
from codewhale.memory.layers import MemoryRefused

_MOST, _LIMIT = 5_000, 1 << 20
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Use(Struct, frozen=True):
    """The uses of a fact; `last` is RFC 3339."""

    count: int
    last: str


class Uses:
    """The file uses.json in `root`, which is HOME/memory. A damaged one begins anew."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.path = os.path.join(root, "uses.json")

    def read(self) -> dict[str, Use]:
        try:
            return msgspec.json.decode(read_regular(os.open(self.path, _OPEN), _LIMIT) or b"{}", type=dict[str, Use])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return {}

    def counts(self) -> dict[str, int]:
        return {id: use.count for id, use in self.read().items()}

    def add(self, ids: Sequence[str]) -> None:
        """Count a use of each. Nothing is counted where the file cannot be written."""
        with contextlib.suppress(OSError, MemoryRefused), locked(self._root):
            rows, now = self.read(), rfc3339(time.time())
            rows |= {id: Use(rows[id].count + 1 if id in rows else 1, now) for id in ids}
            for id in sorted(rows, key=lambda id: rows[id].last)[:-_MOST]:
                del rows[id]
            atomic_write(self.path, msgspec.json.encode(rows))
