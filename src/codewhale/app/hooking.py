"""Where hooks join: calls, messages, and the life of a session. The part itself is built once there is a hook, so that
without one nothing of it is imported."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from codewhale.app.parts import Parts
from codewhale.app.table import LOOKUPS, target

if TYPE_CHECKING:
    from codewhale.services.hooks import Hooks


class Hooking:
    """The hooks of an application, if there are any. `written` is the raw `[hooks]` table of the person's own
    configuration, `origin` the file it is from."""

    def __init__(self, parts: Parts, written: Any, origin: str) -> None:
        self._parts = parts
        self._written = written
        self._origin = origin

    def at(self, workspace: str) -> "Hooks | None":
        """The hooks of a workspace, None where there is not one."""
        if not self._written and not os.path.exists(os.path.join(workspace, ".codewhale", "hooks.toml")):
            return None
        if self._parts.built("hooks") is None:
            self._parts.give("hooks_written", target(LOOKUPS["hooks_written"])(self._written or {}, self._origin))
        found: Hooks = self._parts.part("hooks")  # type: ignore[assignment]
        return found

    async def opened(self, session: str, workspace: str, events: Callable[[], Any]) -> None:
        """A session has begun; `events()` are those it will have."""
        hooks = self.at(workspace)
        if hooks is not None:
            await hooks.opened(session, workspace, events())

    async def submitted(self, session: str, workspace: str, text: str) -> str:
        """A message as it may be sent. Raises SessionError where it may not."""
        hooks = self.at(workspace)
        return text if hooks is None else await hooks.submitted(session, workspace, text)

    async def shell_env(self, session: str, workspace: str) -> dict[str, str]:
        """What a shell command of the session is given besides its environment."""
        hooks = self.at(workspace)
        return {} if hooks is None else await hooks.shell_env(session, workspace)
