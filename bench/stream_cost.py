#!/usr/bin/env python3
"""What an answer costs to read: 50,000 events through a socket, and many short requests on one connection.

Prints CPU microseconds an event and CPU milliseconds a request of this process; the server is a process of its own.
Usage: stream_cost.py [EVENTS] [REQUESTS]
"""

import asyncio
import json
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection

from codewhale.models.build import build_provider
from codewhale.models.dialects.base import Provider, ProviderSettings

EVENT = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None, "logprobs": None}],
}
LAST = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
BODY_BYTES = 200_000


def _chunk(event: object) -> bytes:
    data = b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def _serve(port: Connection) -> None:
    """Answer each request with as many events as its body's first line asks for."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (line := await reader.readline()) and line.startswith(b"POST"):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length: "))
            body = await reader.readexactly(int(length[16:]))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(int(body.split(b"\n", 1)[0])):
                writer.write(_chunk(EVENT))
                await writer.drain()
            writer.write(_chunk(LAST) + _chunk("[DONE]") + b"0\r\n\r\n")

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 24)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def _cpu(provider: Provider, events: int, size: int) -> float:
    body = b"%d\n" % events + b"x" * size
    began = time.process_time()
    async for _ in provider.stream(body):
        pass
    return time.process_time() - began


async def measure(port: int, events: int, requests: int) -> None:
    """Print both figures."""
    settings = ProviderSettings(base_url=f"http://127.0.0.1:{port}")
    provider = build_provider("bench", settings, "key")
    await _cpu(provider, 1, 1)
    stream = await _cpu(provider, events, 1)
    print(f"{events} events: {stream * 1e6 / events:.2f} us CPU an event")
    short = sorted([await _cpu(provider, 10, BODY_BYTES) for _ in range(requests)])
    print(f"{requests} requests of {BODY_BYTES} bytes, 12 events each: median {short[requests // 2] * 1e3:.3f} ms CPU")
    await provider.aclose()


def main() -> None:
    """Start the server, measure, stop it."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    try:
        events, requests = [*map(int, sys.argv[1:3]), *(50_000, 200)[len(sys.argv) - 1 :]]
        asyncio.run(measure(ours.recv(), events, requests))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
