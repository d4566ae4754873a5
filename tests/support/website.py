"""Web servers on loopback that stand for the whole internet: a resolver says where names lead, and every connection
comes here whatever address was checked; what was resolved and dialled is kept."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from codewhale.permissions.network import judge_addresses, judge_url
from codewhale.process.dial import Guard, Wires

GUARD = Guard(judge_url, judge_addresses)
PUBLIC = "93.184.215.14"

# A page: its bytes, or what plays it on the open connection.
Page = bytes | Callable[[asyncio.StreamWriter], "asyncio.Future[None]"]


@dataclass
class Internet:
    """What there is, and what was asked. `pages` by "host/path"; `names` by host, each a list of addresses for every
    time it is asked for (the last is repeated); any other name leads to one public address."""

    pages: Mapping[str, object]
    names: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    certificate: str = ""
    resolved: list[str] = field(default_factory=list)
    dialled: list[str] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a name."""
        rows = self.names.get(host, [[PUBLIC]])
        found = rows[min(self.resolved.count(host), len(rows) - 1)]
        self.resolved.append(host)
        return list(found)

    def route(self, address: str, port: int) -> tuple[str, int]:
        """Every connection comes here."""
        self.dialled.append(address)
        return "127.0.0.1", self.port

    @property
    def wires(self) -> Wires:
        """For the dialer."""
        return Wires(self.resolve, self.route)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            place = headers["host"].partition(":")[0] + head[0].split(" ")[1]
            self.requests.append((place, headers))
            page = self.pages.get(place, page_of(b"not found", status=404))
            if callable(page):
                await page(writer)
            else:
                assert isinstance(page, bytes)
                writer.write(page)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort() if writer.transport.is_closing() else writer.close()


@asynccontextmanager
async def internet(
    pages: Mapping[str, object], names: Mapping[str, Sequence[Sequence[str]]] | None = None, certificate: str = ""
) -> AsyncIterator[Internet]:
    """Serve until left."""
    here = Internet(pages, names or {}, certificate)
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(here.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    here.port = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    try:
        yield here
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def page_of(body: bytes, *headers: str, status: int = 200) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def moved(place: str, status: int = 302) -> bytes:
    """A redirect."""
    return page_of(b"", f"location: {place}", status=status)
