"""A site of the web on an address of loopback that tests take for a public one."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from codewhale.app.settings import WebTable
from codewhale.process.addresses import address_kind
from codewhale.services.web.dialler import Dialler
from codewhale.services.web.searching import SearchOptions, WebSearch
from codewhale.testing import Harness
from support.loopserver import LoopServer

PORT = 8080
Answer = tuple[int, dict[str, str], bytes] | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class WebServer(LoopServer):
    """Answers paths with `pages`; anything else is 404. `asked` are the heads of the requests, `bodies` what came."""

    pages: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    ip: str = ""

    async def __aenter__(self) -> Self:
        self._tasks = set()
        self.ip = f"127.{random.randint(2, 250)}.{random.randint(1, 250)}.{random.randint(2, 250)}"
        self._server = await asyncio.start_server(self._accept, self.ip, PORT, limit=1 << 24)
        self.address = f"{self.ip}:{PORT}"
        return self

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.asked.append(head)
        length = next((int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0)
        self.bodies.append(await reader.readexactly(length))
        asked = head.split(" ")[1]
        answer = self.pages.get(asked) or self.pages.get(
            asked.partition("?")[0], (404, {"content-type": "text/plain"}, b"nothing here")
        )
        if isinstance(answer, tuple) and "etag" in answer[1] and f"if-none-match: {answer[1]['etag']}" in head.lower():
            answer = (304, {}, b"")
        if callable(answer):
            await answer(writer)
            return
        status, headers, body = answer
        rows = {"content-length": str(len(body)), "connection": "close", **headers}
        lines = [f"HTTP/1.1 {status} x", *(f"{name}: {value}" for name, value in rows.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)
        await writer.drain()

    def dialler(self, hosts: dict[str, Sequence[str]] | None = None) -> Dialler:
        """One that finds this server under every name of example.org, and other names as `hosts` says."""

        async def resolve(host: str, port: int) -> Sequence[str]:
            if hosts and host in hosts:
                return hosts[host]
            if host.endswith("example.org") or host == self.ip:
                return [self.ip]
            raise OSError(f"no such host: {host}")

        return Dialler(resolve, lambda address: "public" if address == self.ip else address_kind(address))

    def serve(self, stage: Harness) -> None:
        """Let the tools of an application find this server; where none is configured, it answers searches too."""
        web = stage.app.parts.web
        web.dialler = self.dialler()
        if not web.config.section("web", WebTable).searxng:
            web.search = WebSearch(web.dialler, SearchOptions(("searxng",), f"http://{self.address}"), {})


def hits(*rows: tuple[str, str, str]) -> Answer:
    """An answer of SearXNG: title, address and text of each result."""
    found = [{"title": title, "url": url, "content": text} for title, url, text in rows]
    return 200, {"content-type": "application/json"}, json.dumps({"results": found}).encode()


def html(text: str, **headers: str) -> Answer:
    return 200, {"content-type": "text/html; charset=utf-8", **headers}, text.encode()
