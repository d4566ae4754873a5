"""What follows when facts are cleared: requests hold them no longer, and the logs that do are named."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from codewhale.protocol.errors import SessionBusyError
from codewhale.protocol.views import SessionSummary
from codewhale.session.forgetting import held_in, holder

if TYPE_CHECKING:
    from codewhale.app.container import Container


class Clearing:
    def __init__(self, app: "Container") -> None:
        self._app = app

    def forget(self, texts: Sequence[str]) -> None:
        """No open session of this process sends what was cleared again, and no kept answer holds one of these texts."""
        for session in self._app.engine.at():
            self._app.session_factory.forget_cleared(session)
        self._app.recursion.forget(holder(texts))

    def holding(self, texts: Sequence[str]) -> tuple[SessionSummary, ...]:
        """The sessions whose logs, or the outputs that these name, hold one of these texts."""
        sessions = self._app.sessions
        names = [os.path.basename(path) for path in self._artifacts(texts)]
        return tuple(map(sessions.summary, sessions.holding((*texts, *names))))

    def remove(self, texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Remove those sessions and outputs; (ids of the removed, ids of those that are open and stay)."""
        removed, kept = list[str](), list[str]()
        for row in self.holding(texts):
            try:
                self._app.sessions.remove([row.id])
                removed.append(row.id)
            except SessionBusyError:
                kept.append(row.id)
        for path in self._artifacts(texts) if not kept else ():
            with contextlib.suppress(OSError):
                os.unlink(path)
        return tuple(removed), tuple(kept)

    def _artifacts(self, texts: Iterable[str]) -> Iterator[str]:
        held = held_in(texts)
        for folder, _, names in os.walk(os.path.join(self._app.place.home, "artifacts")):
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
                    if held(file.read):
                        yield path
