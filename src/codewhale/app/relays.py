"""The parts that relays consist of, imported and built when there is one to write or to read."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from codewhale.agent.engine import Engine
from codewhale.agent.session_factory import SessionFactory
from codewhale.lib.clock import Clock
from codewhale.protocol.events import Event
from codewhale.protocol.files import HANDOFFS
from codewhale.session.session import Session

if TYPE_CHECKING:
    from codewhale.agent.relay import Relays


class RelayParts:
    """`home` is CODEWHALE_HOME, `redact(session)` hides its secrets."""

    def __init__(
        self,
        home: str,
        clock: Clock,
        sessions: Callable[[], tuple[Engine, SessionFactory]],
        redact: Callable[[str], Callable[[str], str]],
    ) -> None:
        self._home = home
        self._clock = clock
        self._sessions = sessions
        self._redact = redact

    async def begin(self, session: Session, told: bool) -> Sequence[Event]:
        """What a session is told of the relay in its workspace before its first request."""
        if any(os.path.lexists(os.path.join(session.state.workspace, path)) for path in HANDOFFS):
            return await self.files.first(session, told)
        return ()

    @cached_property
    def files(self) -> "Relays":
        from codewhale.agent.relay import Relays
        from codewhale.app.gitfacts import WorkspaceTree
        from codewhale.session.handoff import Handoffs

        return Relays(self._sessions(), WorkspaceTree(), Handoffs(self._home), self._redact, self._clock)
