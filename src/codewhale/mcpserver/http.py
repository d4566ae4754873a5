"""Serving over HTTP: a door that asks for a token and looks at Host and Origin before a body is read, and the listener
behind it."""

import contextlib
import hmac
import logging
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_SESSIONS, MOST_CONNECTIONS = 64, 256
IDLE_SECONDS = 1800.0
_ENDING = 3
_ALLOWED = (
    b"authorization, content-type, accept, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id"
)


class Door(Struct, frozen=True):
    """Who gets in: `token` ("" asks for none), the values of Host that are ours, the origins of pages that may call."""

    token: str
    hosts: tuple[str, ...]
    origins: tuple[str, ...] = ()


def door(token: str, host: str, port: int, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = ()) -> Door:
    """The door of a listener: by its own names, and those named beside them."""
    shown = f"[{host}]" if ":" in host else host
    names = dict.fromkeys((*(LOOPBACK if is_loopback(host) else (shown,)), *hosts))
    ours = tuple(value for name in names for value in ((name,) if port_in(name) else (f"{name}:{port}",)))
    pages = tuple(f"http://{name}:{port}" for name in LOOPBACK) if is_loopback(host) else ()
    return Door(token, ours, (*pages, *origins))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def port_in(name: str) -> bool:
    """Whether a host is written with its port."""
    return name.rpartition(":")[2].isdecimal() and not name.endswith("]")


class Guarded:
    """An application behind a door."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what may not come in; hand on everything else."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers: list[tuple[bytes, bytes]] = list(scope.get("headers", ()))
        origin = _one(headers, b"origin")
        if scope["type"] != "http":
            return
        if _one(headers, b"host").lower() not in self._door.hosts:
            await _refuse(send, 421, "this address is not served here")
        elif _has(headers, b"origin") and origin not in self._door.origins:
            await _refuse(send, 403, "pages of this origin may not call this server")
        elif scope["method"] == "OPTIONS" and _has(headers, b"origin"):
            await _allow(send, origin)
        elif self._door.token and not self._knows(_one(headers, b"authorization")):
            await _refuse(send, 401, "a token is needed: Authorization: Bearer TOKEN", (b"www-authenticate", b"Bearer"))
        else:
            await self._app(scope, receive, _named(send, origin))

    def _knows(self, shown: str) -> bool:
        scheme, _, token = shown.partition(" ")
        same = hmac.compare_digest(token.strip().encode(), self._door.token.encode())
        return same and scheme.lower() == "bearer"


def _has(headers: list[tuple[bytes, bytes]], name: bytes) -> bool:
    return any(key.lower() == name for key, _ in headers)


def _one(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    """The value of a header that comes once; "" for none or several."""
    values = [value.decode("latin-1") for key, value in headers if key.lower() == name]
    return values[0] if len(values) == 1 else ""


async def _refuse(send: Send, status: int, why: str, *more: tuple[bytes, bytes]) -> None:
    body = f"{why}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


async def _allow(send: Send, origin: str) -> None:
    """The answer to a browser that asks before a page's request."""
    headers = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", _ALLOWED),
        (b"vary", b"origin"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _named(send: Send, origin: str) -> Send:
    """The answer, which a page of an allowed origin may read."""
    if not origin:
        return send

    async def with_origin(message: Any) -> None:
        if message["type"] == "http.response.start":
            more = [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", b"mcp-session-id"),
                (b"vary", b"origin"),
            ]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return with_origin


class HttpListener(uvicorn.Server):
    """The listener, which leaves signals to the program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield

    def end(self) -> None:
        """Take no more connections and end those that there are, soon."""
        self.should_exit = True


def listener(server: Server[Any], door: Door) -> HttpListener:
    """What serves a server behind a door; run it with `await listener.serve(sockets=[listening])`."""
    for name in ("mcp", "uvicorn"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=IDLE_SECONDS,
        max_sessions=MOST_SESSIONS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the door has looked
    )
    config = uvicorn.Config(
        Guarded(app, door),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_ENDING,
    )
    return HttpListener(config)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=64)
