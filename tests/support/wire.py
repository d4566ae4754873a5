"""A server on loopback that plays byte scripts: exactly these bytes, cut exactly here, then this end."""

import asyncio
import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.loopserver import LoopServer

# A self-signed certificate for 127.0.0.1 and models.example with its key; nothing trusts it but a test that says so.
CERTIFICATE = Path(__file__).with_name("loopback.pem")


@dataclass
class Reply:
    """What one request is answered with. The pieces are sent one by one, each in its own packet as far as that can be
    arranged; `then` is what follows: "keep" the connection, "close" it, "reset" it, or "hang" until the client goes."""

    pieces: Sequence[bytes]
    then: str = "keep"


@dataclass
class Request:
    """A request as it came; `connection` counts from 1."""

    connection: int
    head: str
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """Header values by lower-case name."""
        lines = self.head.split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


@dataclass
class Wire(LoopServer):
    """Plays its replies in order, one a request, over all connections; the last is repeated. `tls` makes it https."""

    replies: Sequence[Reply]
    tls: bool = False
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def context(self) -> ssl.SSLContext | None:
        """The certificate of this folder, with `tls`."""
        if not self.tls:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        return context

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http{'s' * self.tls}://{self.address}/v1"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Play to one connection."""
        self.connections += 1
        number = self.connections
        try:
            while await self._answer(number, reader, writer):
                pass
        finally:
            self.gone.set()

    async def _answer(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().removesuffix("\r\n\r\n")
        request = Request(number, head, b"")
        request.body = await reader.readexactly(int(request.headers.get("content-length", 0)))
        reply = self.replies[min(len(self.requests), len(self.replies) - 1)]
        self.requests.append(request)
        self.asked.set()
        for piece in reply.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if reply.then == "hang":
            await reader.read()
        elif reply.then == "close":
            writer.close()
            await writer.wait_closed()
        elif reply.then == "reset":
            writer.transport.abort()
        return reply.then == "keep"


def sse(*events: Any) -> bytes:
    """Events as data lines; dicts as JSON, strings as they are."""
    return b"".join(
        b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n" for event in events
    )


def chunked(body: bytes, size: int = 1 << 20) -> bytes:
    """A body in HTTP chunks of `size` bytes, with the last one."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def stream(body: bytes, size: int = 1 << 20) -> bytes:
    """A whole answer that streams `body`."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + chunked(body, size)


def answer(status: int, body: bytes = b"", *headers: str, content_type: str = "application/json") -> bytes:
    """A whole answer of known length."""
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", f"content-length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chat chunk with one choice."""
    return {"id": "c1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}
