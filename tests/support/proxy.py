"""A tiny HTTP proxy on loopback: tunnels and forwards whatever it is asked for to one place, and notes what it was."""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from support.loopserver import LoopServer


@dataclass
class Proxy(LoopServer):
    """Sends everything to the server at `upstream` (a URL), whatever the name that was asked for. `heads` holds what
    it was asked, `asked` the first lines, `auth` Proxy-Authorization; with `refusal`, a status, nothing is carried."""

    upstream: str
    refusal: str = ""
    heads: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    auth: list[str] = field(default_factory=list)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.heads.append(head.decode())
        self.asked.append(lines[0])
        self.auth += [line.split(": ", 1)[1] for line in lines if line.lower().startswith("proxy-authorization: ")]
        if self.refusal:
            writer.write(f"HTTP/1.1 {self.refusal}\r\ncontent-length: 0\r\n\r\n".encode())
            await reader.read()
            return
        place = urlsplit(self.upstream)
        back, there = await asyncio.open_connection(place.hostname, place.port)
        try:
            if lines[0].startswith("CONNECT "):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                there.write(head)
            await asyncio.gather(_pump(reader, there), _pump(back, writer))
        finally:
            there.transport.abort()


@dataclass
class Socks(LoopServer):
    """The same by SOCKS 5 (RFC 1928), which asks for a name and a password (RFC 1929); `asked` holds host:port."""

    upstream: str
    asked: list[str] = field(default_factory=list)
    auth: list[str] = field(default_factory=list)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        _, methods = await reader.readexactly(2)
        assert 2 in await reader.readexactly(methods)
        writer.write(b"\x05\x02")
        await reader.readexactly(1)
        words = [await reader.readexactly((await reader.readexactly(1))[0]) for _ in range(2)]
        self.auth.append(b":".join(words).decode())
        writer.write(b"\x01\x00")
        assert await reader.readexactly(4) == b"\x05\x01\x00\x03"  # connect to a name
        name = await reader.readexactly((await reader.readexactly(1))[0])
        self.asked.append(f"{name.decode()}:{int.from_bytes(await reader.readexactly(2))}")
        place = urlsplit(self.upstream)
        back, there = await asyncio.open_connection(place.hostname, place.port)
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        try:
            await asyncio.gather(_pump(reader, there), _pump(back, writer))
        finally:
            there.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.transport.abort()
