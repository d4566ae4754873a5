"""A model server on loopback that lists models and answers one word, as the common servers do, and those that are
broken in the common ways."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.loopserver import LoopServer
from support.patience import HANG
from support.wire import answer, delta, sse, stream


@dataclass
class ModelServer(LoopServer):
    """Serves `models` (ids, or whole rows) to who sends `key`, "" for everybody; `mode` is how it is broken: html,
    silent, no_list (404 on the listing), nowhere (404 on everything), public (the listing wants no key), patient (what
    is no HTTP is read on and on, not refused). `asked` are (method, path, key) of the requests, `base` is the path
    before /models."""

    models: Sequence[Any] = ("alpha", "beta")
    key: str = ""
    mode: str = ""
    base: str = "/v1"
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://{self.address}{self.base}"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        while True:
            first = await reader.readexactly(1)
            if not first.isalpha() and self.mode != "patient":
                writer.write(answer(400, b""))
                return
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, *_ = head.split(" ")
            headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in head.split("\r\n")[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            key = headers.get("authorization", "").removeprefix("Bearer ")
            self.asked.append((method, path, key))
            if self.mode == "silent":
                await reader.read()
                return
            writer.write(self._answer(method, path, key, body))
            await writer.drain()

    def _answer(self, method: str, path: str, key: str, body: bytes) -> bytes:
        listing = path == f"{self.base}/models"
        if self.mode == "html":
            return answer(200, b"<html><title>It works!</title></html>", content_type="text/html")
        known = path in (f"{self.base}/models", f"{self.base}/chat/completions")
        if not known or self.mode == "nowhere" or (listing and self.mode == "no_list"):
            return answer(404, b'{"error":{"message":"Not Found"}}')
        if self.key and key != self.key and not (listing and self.mode == "public"):
            return answer(401, b'{"error":{"message":"Incorrect API key provided"}}')
        if listing:
            rows = [row if isinstance(row, dict) else {"id": row} for row in self.models]
            return answer(200, json.dumps({"object": "list", "data": rows}).encode())
        model, ids = json.loads(body)["model"], [row["id"] if isinstance(row, dict) else row for row in self.models]
        if model not in ids:
            return answer(404, json.dumps({"error": {"message": f"The model `{model}` does not exist"}}).encode())
        return stream(sse(delta(content="OK."), delta("stop"), "[DONE]"))


@contextmanager
def running(server: ModelServer) -> Iterator[ModelServer]:
    """The server in a thread of its own, for programs that are waited for."""
    ready, ended, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with server:
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(HANG)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def closed_port() -> int:
    """A port of this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        name: tuple[str, int] = taken.getsockname()
        return name[1]
