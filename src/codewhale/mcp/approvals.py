"""Which servers a person has approved, each as it was then: `mcp/approved.json` of the state directory."""

import os
import stat
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from codewhale.lib.clock import Clock, rfc3339
from codewhale.mcp.identity import ServerIdentity
from codewhale.process.rowfile import RowFile, is_own
from codewhale.protocol.errors import ConfigError

MOST_PLACES = 100  # in which one server is approved; the oldest go
Standing = Literal["approved", "changed", "new"]


class ServerApproval(Struct, frozen=True):
    """An approval: the fingerprint of what was approved, when, and what that was, to show what is other now."""

    fingerprint: str
    at: str
    identity: ServerIdentity


class Approvals:
    """The approvals of a home, by the key of a server and, where what would run depends on it, the workspace (`place`).
    Nothing is read before it is asked."""

    def __init__(self, home: str, clock: Clock) -> None:
        self.path = os.path.join(home, "mcp", "approved.json")
        self._folders = (home, os.path.dirname(self.path))
        self._clock = clock
        self._rows = RowFile(
            self.path, "servers", ServerApproval, self._refuse_foreign, again="approve the servers again"
        )

    def get(self, key: str, place: str = "") -> ServerApproval | None:
        """Raises ConfigError for a file that cannot be used."""
        rows = self._rows.read()
        return rows.get(_row(key, place)) or _early(rows, key, place)

    def standing(self, key: str, identity: ServerIdentity, place: str = "") -> Standing:
        """How a server stands as it is now. Raises ConfigError."""
        approved = self.get(key, place)
        if approved is None:
            return "new"
        return "approved" if approved.fingerprint == identity.fingerprint else "changed"

    def add(self, key: str, identity: ServerIdentity, place: str = "") -> None:
        """Approve a server exactly as it is shown. Raises ConfigError, and then nothing has changed."""
        with self._rows.changing(*self._folders) as rows:
            if place and _early(rows, key, place) is not None:
                del rows[key]
            rows[_row(key, place)] = ServerApproval(identity.fingerprint, rfc3339(self._clock.now()), identity)
            placed = sorted((name for name in rows if name.startswith(_row(key, "/"))), key=lambda name: rows[name].at)
            for name in [name for name in placed if name != _row(key, place)][: max(0, len(placed) - MOST_PLACES)]:
                del rows[name]

    def remove(self, key: str) -> bool:
        """Take an approval back in every workspace; whether there was one. Raises ConfigError."""
        if not os.path.exists(self.path):
            return False
        with self._rows.changing(*self._folders) as rows:
            names = [name for name in rows if name == key or name.startswith(_row(key, "/"))]
            for name in names:
                del rows[name]
            return bool(names)

    def _refuse_foreign(self, status: os.stat_result) -> None:
        if not is_own(status) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigError(f"{self.path}: other users could write it; remove it and approve the servers again")


def _row(key: str, place: str) -> str:
    """The name of a row: no key of a server ends with a tab and a folder."""
    return f"{key}\t{place}" if place else key


def _early(rows: Mapping[str, ServerApproval], key: str, place: str) -> ServerApproval | None:
    """One that was kept without its workspace, where it was given in this one, or of an address."""
    row = rows.get(key)
    if row is None or not place or row.identity.cwd in ("", place):
        return row
    return row if row.identity.cwd.startswith(os.path.join(place, "")) else None
