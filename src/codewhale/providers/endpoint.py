"""Where a provider is: its base URL taken apart and checked, the fixed part of every request to it, and the
connections kept open to it. The key travels in those requests and nowhere else."""

import asyncio
import os
import re
import sys
from typing import TYPE_CHECKING

from codewhale.protocol.errors import ConfigError
from codewhale.providers.base import ProviderSettings
from codewhale.providers.http1 import Connection, request_head

if TYPE_CHECKING:
    import ssl

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?(?P<path>/[!-~]*)?"
)
_LOOPBACK = re.compile(r"localhost|[a-z0-9.-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\]", re.IGNORECASE)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
_IDLE_SECONDS = 55.0
_KEPT = 8


class Endpoint:
    """One base URL: opens, hands out and takes back connections to it. `host` is as a person wrote it."""

    def __init__(self, name: str, settings: ProviderSettings, headers: dict[str, str]) -> None:
        """`headers` are the dialect's own; those of the settings are added and win. Raises ConfigError."""
        match = _URL.fullmatch(settings.base_url)
        key = f"providers.{name}.base_url"
        if match is None or "#" in (match["path"] or ""):
            raise ConfigError(f"{key} = {settings.base_url!r} is not a URL such as https://api.example.com/v1")
        self.host = match["host"]
        self._secure = match["scheme"] == "https"
        if not self._secure and not _LOOPBACK.fullmatch(self.host) and not settings.facts.get("allow_insecure_http"):
            raise ConfigError(
                f"{key} = {settings.base_url!r} would send the key unencrypted: use https, a loopback address, or set "
                f"providers.{name}.facts.allow_insecure_http = true"
            )
        self.port = int(match["port"] or (443 if self._secure else 80))
        if not 0 < self.port < 65536:
            raise ConfigError(f"{key} = {settings.base_url!r} has a port that does not exist")
        self._target = (match["path"] or "").rstrip("/") + settings.path
        if not re.fullmatch(r"/[!-~]*", self._target) or "#" in self._target:
            raise ConfigError(f"providers.{name}.path = {settings.path!r} is not a URL path such as /chat/completions")
        self._authority = self.host + (f":{match['port']}" if match["port"] else "")
        self._headers = _checked(name, headers, settings.headers)
        self._tls: ssl.SSLContext | None = None
        self._idle: list[tuple[float, Connection]] = []

    def head(self, size: int) -> bytes:
        """The head of a request whose body has `size` bytes."""
        return request_head(self._target, self._authority, self._headers, size)

    def take(self) -> Connection | None:
        """An open connection that is waiting for work, or None."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            since, connection = self._idle.pop()
            if connection.reusable and now - since < _IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose answer is complete; any other is closed."""
        if connection.reusable and len(self._idle) < _KEPT:
            self._idle.append((asyncio.get_running_loop().time(), connection))
        else:
            connection.close()

    async def connect(self) -> Connection:
        """A new connection. Raises OSError."""
        if self._secure and self._tls is None:
            self._tls = _tls()
        reader, writer = await asyncio.open_connection(
            self.host.strip("[]"),
            self.port,
            limit=256 * 1024,
            ssl=self._tls,
            happy_eyeballs_delay=None if _LOOPBACK.fullmatch(self.host) else 0.25,
        )
        return Connection(reader, writer)

    def close(self) -> None:
        """Close what is kept."""
        while self._idle:
            self._idle.pop()[1].close()


def _checked(name: str, ours: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "user-agent": "codewhale",
        **ours,
    }
    for key, value in theirs.items():
        if not _TOKEN.fullmatch(key) or not _VALUE.fullmatch(value) or key.lower() in _OURS:
            raise ConfigError(f"providers.{name}.headers: {key!r} is not a header that can be set")
        headers[key.lower()] = value
    if not _VALUE.fullmatch(headers.get("authorization", "")):
        raise ConfigError(f"the key of provider {name} holds characters that no header can carry; check its variable")
    return headers


def _tls() -> "ssl.SSLContext":
    """Certificates as the system trusts them: its own store on macOS, unless SSL_CERT_FILE names one; OpenSSL's
    elsewhere."""
    import ssl

    if sys.platform == "darwin" and "SSL_CERT_FILE" not in os.environ:
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()
