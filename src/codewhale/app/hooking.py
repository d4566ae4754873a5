"""Where hooks join: calls, messages, and the life of a session. The part itself is built once there is a hook, so that
without one nothing of it is imported."""

import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from codewhale.protocol.events import Envelope

if TYPE_CHECKING:
    from codewhale.services.hooks import Hooks


class Hooking:
    """The hooks of an application, if there are any. `written` is the `[hooks]` table of the person's own
    configuration; `hooks()` builds them."""

    def __init__(self, written: object, hooks: "Callable[[], Hooks]") -> None:
        self._written = written
        self._hooks = hooks

    def at(self, workspace: str) -> "Hooks | None":
        if not self._written and not os.path.exists(os.path.join(workspace, ".codewhale", "hooks.toml")):
            return None
        return self._hooks()

    async def opened(self, session: str, workspace: str, events: Callable[[], AsyncIterator[Envelope]]) -> None:
        hooks = self.at(workspace)
        if hooks is not None:
            await hooks.opened(session, workspace, events())

    async def submitted(self, session: str, workspace: str, text: str) -> str:
        hooks = self.at(workspace)
        return text if hooks is None else await hooks.submitted(session, workspace, text)

    async def shell_env(self, session: str, workspace: str) -> dict[str, str]:
        hooks = self.at(workspace)
        return {} if hooks is None else await hooks.shell_env(session, workspace)
