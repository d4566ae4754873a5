"""Which servers a person has approved, each as it was then: `mcp/approved.json` of the state directory."""

import os
import stat
from typing import Literal

from msgspec import Struct

from codewhale.lib.clock import Clock, rfc3339
from codewhale.mcp.identity import ServerIdentity
from codewhale.process.rowfile import RowFile, is_own
from codewhale.protocol.errors import ConfigError

Standing = Literal["approved", "changed", "new"]


class ServerApproval(Struct, frozen=True):
    """An approval: the fingerprint of what was approved, when, and what that was, to show what is other now."""

    fingerprint: str
    at: str
    identity: ServerIdentity


class Approvals:
    """The approvals of a home, by the key of a server. Nothing is read before it is asked."""

    def __init__(self, home: str, clock: Clock) -> None:
        self.path = os.path.join(home, "mcp", "approved.json")
        self._folders = (home, os.path.dirname(self.path))
        self._clock = clock
        self._rows = RowFile(
            self.path, "servers", ServerApproval, self._refuse_foreign, again="approve the servers again"
        )

    def get(self, key: str) -> ServerApproval | None:
        """Raises ConfigError for a file that cannot be used."""
        return self._rows.read().get(key)

    def standing(self, key: str, identity: ServerIdentity) -> Standing:
        """How a server stands as it is now. Raises ConfigError."""
        approved = self.get(key)
        if approved is None:
            return "new"
        return "approved" if approved.fingerprint == identity.fingerprint else "changed"

    def add(self, key: str, identity: ServerIdentity) -> None:
        """Approve a server exactly as it is shown. Raises ConfigError, and then nothing has changed."""
        with self._rows.changing(*self._folders) as rows:
            rows[key] = ServerApproval(identity.fingerprint, rfc3339(self._clock.now()), identity)

    def remove(self, key: str) -> bool:
        """Take an approval back; whether there was one. Raises ConfigError."""
        if not os.path.exists(self.path):
            return False
        with self._rows.changing(*self._folders) as rows:
            return rows.pop(key, None) is not None

    def _refuse_foreign(self, status: os.stat_result) -> None:
        if not is_own(status) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigError(f"{self.path}: other users could write it; remove it and approve the servers again")
