"""What every server on loopback shares: a port of its own, a task for each connection, an end that leaves nothing."""

import asyncio
import ssl
from typing import Any, Self


class LoopServer:
    """A server for the length of an `async with`; a subclass says how to `talk` over one connection."""

    address: str  # host and port, also once it has ended
    _server: asyncio.Server
    _tasks: set[asyncio.Task[None]]

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. It may end at any time; it is dropped on return."""
        raise NotImplementedError

    def context(self) -> ssl.SSLContext | None:
        """What makes it https."""
        return None

    async def __aenter__(self) -> Self:
        self._tasks = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=1 << 24, ssl=self.context())
        name: tuple[str, int] = self._server.sockets[0].getsockname()
        self.address = f"127.0.0.1:{name[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._whole(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _whole(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
        try:
            await self.talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
