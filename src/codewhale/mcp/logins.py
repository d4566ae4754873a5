"""Logging in to servers: what came of it, kept in a file that only the person can read, each with the origin that it
may be used for; and the way back from the browser."""

import asyncio
import hashlib
import os
import stat
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from codewhale.mcp.tokens import origin_of
from codewhale.process.rowfile import RowFile, is_own
from codewhale.protocol.errors import ConfigError

_PAGE = b"You can close this page and go back to CodeWhale.\n"
_MOST_LINE = 16 << 10


class KeptLogin(Struct, frozen=True):
    """Tokens and the client they were made for, and the origin ("https://example.com:443")."""

    origin: str
    data: dict[str, Any]

    def __repr__(self) -> str:
        """Without the tokens."""
        return f"KeptLogin(origin={self.origin!r})"


class LoginStore:
    """`secrets/mcp-logins.json` below a state directory, by the name of a server and its address. Nothing is read
    before it is asked."""

    def __init__(self, home: str) -> None:
        self.path = os.path.join(home, "secrets", "mcp-logins.json")
        self._folders = (home, os.path.dirname(self.path))
        self._rows = RowFile(self.path, "logins", KeptLogin, self._refuse_shared, again="log in again")

    def find(self, name: str, url: str) -> dict[str, Any]:
        """What is kept for a server at this address; {} for none. Raises ConfigError."""
        rows = self._rows.read()
        row = rows.get(_key(name, url)) or _early(rows, name, url)
        return row.data if row is not None and row.origin == origin_of(url) else {}

    def keep(self, name: str, url: str, data: dict[str, Any]) -> None:
        """Keep it, in place of a former one. Raises ConfigError, and then nothing has changed."""
        with self._rows.changing(*self._folders) as rows:
            if _early(rows, name, url) is not None:
                del rows[name]
            rows[_key(name, url)] = KeptLogin(origin_of(url), data)

    def remove(self, name: str, url: str) -> bool:
        """Forget it; whether there was one. Raises ConfigError."""
        if not os.path.exists(self.path):
            return False
        with self._rows.changing(*self._folders) as rows:
            early = _early(rows, name, url) is not None and rows.pop(name)
            return rows.pop(_key(name, url), None) is not None or bool(early)

    def lock(self, name: str, url: str) -> str:
        """The file that one process at a time locks while it makes this login fresh."""
        mark = hashlib.sha256(_key(name, url).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return os.path.join(self._folders[-1], f"mcp-login-{mark}.lock")

    def _refuse_shared(self, found: os.stat_result) -> None:
        if not is_own(found) or stat.S_IMODE(found.st_mode) & 0o077:
            raise ConfigError(f"{self.path}: others can read it, so it is not used; remove it and log in again")


class WayBack:
    """A port of this machine to which the browser is led back, once for each login. Used as a context manager."""

    def __init__(self, port: int = 0) -> None:
        self.url = ""
        self._port = port
        self._server: asyncio.Server | None = None
        self._found: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", self._port, limit=_MOST_LINE)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def found(self) -> dict[str, Any]:
        """What the browser brought: code, state and issuer, or an error."""
        return await self._found.get()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readuntil(b"\n")
            parts = urlsplit(line.split()[1].decode("ascii"))
            if parts.path == "/callback":
                self._found.put_nowait({name: values[0] for name, values in parse_qs(parts.query).items()})
            status = b"200 OK" if parts.path == "/callback" else b"404 Not Found"
            head = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            writer.write(head % (status, len(_PAGE)) + _PAGE)
            await writer.drain()
        except (OSError, ValueError, IndexError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()


def _key(name: str, url: str) -> str:
    """What a login is kept under: no name holds a tab."""
    parts = urlsplit(url)
    return f"{name}\t{origin_of(url)}{parts.path or '/'}{f'?{parts.query}' * bool(parts.query)}"


def _early(rows: Mapping[str, KeptLogin], name: str, url: str) -> KeptLogin | None:
    """One that was kept under the name alone, where it is of this origin."""
    row = rows.get(name)
    return row if row is not None and row.origin == origin_of(url) else None
