"""Tokens for the addresses of servers: one file that only the person can read, each token with the origin that it may
be sent to, and to no other."""

import os
import stat

from msgspec import Struct

from codewhale.mcp.entries import ConfiguredServer
from codewhale.process.rowfile import RowFile, is_own
from codewhale.protocol.errors import ConfigError

MOST = 16_384
HEADER = "Authorization"


class KeptToken(Struct, frozen=True):
    """A token and the origin it belongs to ("https://example.com:8443")."""

    origin: str
    token: str

    def __repr__(self) -> str:
        """Without the token."""
        return f"KeptToken(origin={self.origin!r})"


class TokenStore:
    """`secrets/mcp.json` below a state directory. Nothing is read before it is asked."""

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, "secrets", "mcp.json")
        self._folders = (home, os.path.dirname(self.path))
        self._rows = RowFile(self.path, "tokens", KeptToken, self._refuse_shared, again="log in again")

    def headers(self, server: ConfiguredServer, url: str) -> dict[str, str]:
        """What is sent to a server beside what its entry says. Raises ConfigError for a file that cannot be used."""
        named = any(name.lower() == HEADER.lower() for name in server.headers)
        row = None if named or not url else self._rows.read().get(server.key)
        return {HEADER: f"Bearer {row.token}"} if row is not None and row.origin == origin_of(url) else {}

    def put(self, server: ConfiguredServer, url: str, token: str) -> None:
        """Keep a token for the origin of a server. Raises ConfigError, and then nothing has changed."""
        if not token or len(token) > MOST or not token.isascii() or not token.isprintable():
            raise ConfigError("That is no token: it must be one line of plain characters. Nothing was kept.")
        with self._rows.changing(*self._folders) as rows:
            rows[server.key] = KeptToken(origin_of(url), token)

    def remove(self, server: ConfiguredServer) -> bool:
        """Forget the token of a server; whether there was one. Raises ConfigError."""
        if not os.path.exists(self.path):
            return False
        with self._rows.changing(*self._folders) as rows:
            return rows.pop(server.key, None) is not None

    def _refuse_shared(self, found: os.stat_result) -> None:
        if not is_own(found) or stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError(f"{self.path}: others can read it, so it is not used; remove it and log in again")


def origin_of(url: str) -> str:
    """Scheme, host and port of an address."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"
