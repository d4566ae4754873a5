"""The checklist and the plan of each session as they stand now. The session log is their truth; this is what
tools read and change between two events."""

from collections.abc import Iterable, Mapping
from typing import TypedDict, cast


class ListItem(TypedDict, total=False):
    """A row of the checklist (with `id` and `content`) or of the plan (with `step`)."""

    id: int
    content: str
    step: str
    status: str


class Lists:
    """Items by session and kind ("checklist" or "plan")."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], tuple[ListItem, ...]] = {}

    def get(self, session: str, kind: str) -> tuple[ListItem, ...]:
        """Copies of the items, in order; none when nothing was set."""
        return tuple(item.copy() for item in self._items.get((session, kind), ()))

    def set(self, session: str, kind: str, items: Iterable[ListItem]) -> None:
        """Replace the items."""
        self._items[session, kind] = tuple(item.copy() for item in items)

    def restore(self, session: str, kept: Mapping[str, Iterable[Mapping[str, object]]]) -> None:
        """Let all lists of a session be as its log says."""
        for kind in {*kept, *(kind for owner, kind in self._items if owner == session)}:
            self.set(session, kind, (cast(ListItem, item) for item in kept.get(kind, ())))
