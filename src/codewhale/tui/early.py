"""What is typed while nothing can take it: before the first frame, and before a screen that opens stands."""

from typing import Any

from textual.app import App
from textual.events import Event
from textual.widget import AwaitMount


class Early:
    """Keeps keys and pastes, from the beginning on until they are released; then the app is given them again."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._kept: list[Event] | None = []

    def keeps(self, event: Event) -> bool:
        """Whether an event was kept for later."""
        if self._kept is None:
            return False
        self._kept.append(event)
        return True

    def until(self, opened: AwaitMount) -> None:
        """Keep what comes until a screen stands."""
        if self._kept is None:
            self._kept = []
            self._app.run_worker(self._stands(opened))

    async def _stands(self, opened: AwaitMount) -> None:
        try:
            await opened
        finally:
            self._app.call_later(self.release)  # behind the screen's own wish for the focus

    async def release(self) -> None:
        """Take what was kept, in its order."""
        kept, self._kept = self._kept or [], None
        for event in kept:
            await self._app.on_event(event)
