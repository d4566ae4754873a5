"""A tiny HTTP proxy on loopback: tunnels and forwards whatever it is asked for to one place, and notes what it was."""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Proxy:
    """Sends everything to the server at `upstream` (a URL), whatever the name that was asked for. `asked` holds request
    lines, `auth` their Proxy-Authorization; with `refusal`, a status line, nothing is carried."""

    upstream: str
    refusal: str = ""
    asked: list[str] = field(default_factory=list)
    auth: list[str] = field(default_factory=list)

    async def __aenter__(self) -> "Proxy":
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            self.asked.append(lines[0])
            self.auth += [line.split(": ", 1)[1] for line in lines if line.lower().startswith("proxy-authorization: ")]
            if self.refusal:
                writer.write(f"HTTP/1.1 {self.refusal}\r\ncontent-length: 0\r\n\r\n".encode())
                await reader.read()
                return
            place = urlsplit(self.upstream)
            back, there = await asyncio.open_connection(place.hostname, place.port)
            if lines[0].startswith("CONNECT "):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                there.write(head)
            await asyncio.gather(_pump(reader, there), _pump(back, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
            if there is not None:
                there.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.transport.abort()
