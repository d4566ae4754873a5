"""The checklist and the plan of each session as they stand now. The session log is their truth; this is what
tools read and change between two events."""

from collections.abc import Iterable
from typing import Any

Item = dict[str, Any]


class Lists:
    """Items by session and kind ("checklist" or "plan")."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], tuple[Item, ...]] = {}

    def get(self, session: str, kind: str) -> tuple[Item, ...]:
        """Copies of the items, in order; none when nothing was set."""
        return tuple(dict(item) for item in self._items.get((session, kind), ()))

    def set(self, session: str, kind: str, items: Iterable[Item]) -> None:
        """Replace the items."""
        self._items[session, kind] = tuple(dict(item) for item in items)
