"""`make burst`: what a streamed answer costs from socket to event, beside the least it can cost.

A child process sends one answer of 50,000 events in one burst, each in an HTTP chunk of its own as servers do; the
CPU time of this process alone is counted. The floor is a bare socket and `json.loads` of each data line.
"""

import argparse
import asyncio
import json
import multiprocessing
import socket
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from codewhale.app.routes import build_provider
from codewhale.models.dialects.base import ProviderSettings
from codewhale.protocol.stream import Finished, ReasoningDelta, TextDelta

# At 200 events a second, more than any model writes, this is less than one per cent of a core.
BOUND_MICROSECONDS = 40.0
PEAK_GROWTH = 1_000_000
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Figures(NamedTuple):
    """CPU microseconds an event, and the characters that came."""

    micros: float
    characters: int


def event(number: int) -> bytes:
    """One event of 150 to 250 bytes: reasoning, then text, then the arguments of a call, a word each."""
    word = ("a", "few", "letters", "more")[number % 4]
    if number % 10 < 4:
        delta: dict[str, Any] = {"content": None, "reasoning_content": f" {word}"}
    elif number % 10 < 8:
        delta = {"content": f" {word}é"}
    else:
        start = {"id": "call_1", "type": "function"} if number == 8 else {}
        function = {"name": "f", "arguments": '{"a":"'} if number == 8 else {"arguments": word}
        delta = {"tool_calls": [{"index": 0, **start, "function": function}]}
    chunk = {
        "id": "0123456789",
        "object": "chat.completion.chunk",
        "model": "deepseek-v4",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
    }
    return b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def burst(count: int, together: int) -> bytes:
    """The content of the whole answer in HTTP chunks of `together` events."""
    events = [event(number) for number in range(count)]
    sizes = [len(one) for one in events]
    assert min(sizes) >= 150 and max(sizes) <= 250, (min(sizes), max(sizes))
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    events += [b"data: " + json.dumps(end).encode() + b"\n\n", b"data: [DONE]\n\n"]
    pieces = (b"".join(events[at : at + together]) for at in range(0, len(events), together))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def serve(port: Connection, count: int, together: int, times: int) -> None:
    """Answer `times` requests with the burst, one a connection."""
    answer = HEAD + burst(count, together)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port.send(server.getsockname()[1])
        for _ in range(times):
            connection, _ = server.accept()
            with connection:
                got = b""
                while b"\r\n\r\n" not in got:
                    got += connection.recv(65536)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass


def floor(port: int) -> int:
    """Read it the barest way: the number of characters of its words."""
    characters = 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        for line in connection.makefile("rb"):
            if line.startswith(b"data: {"):
                delta = json.loads(line[6:])["choices"][0]["delta"]
                characters += len(delta.get("content") or delta.get("reasoning_content") or "")
    return characters


async def _stream(port: int) -> int:
    settings = ProviderSettings(base_url=f"http://127.0.0.1:{port}")
    provider = build_provider("burst", settings, "", model="m", environ={})
    characters, last = 0, None
    async for last in provider.stream(b'{"messages":[]}'):
        if isinstance(last, TextDelta | ReasoningDelta):
            characters += len(last.text)
    await provider.aclose()
    assert isinstance(last, Finished), last
    return characters


def ours(port: int) -> int:
    """Read it as the agent does: the number of characters of its words."""
    return asyncio.run(_stream(port))


def measure(read: Callable[[int], int], port: int, count: int) -> Figures:
    """CPU time of one reading."""
    start = time.process_time()
    characters = read(port)
    return Figures((time.process_time() - start) / count * 1e6, characters)


def peak(count: int) -> int:
    """The most bytes that reading an answer of `count` events took at once, none of its words being kept."""
    with served(count, 1, 2) as port:
        ours(port)
        tracemalloc.start()
        ours(port)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return found


@contextmanager
def served(count: int, together: int, times: int) -> Iterator[int]:
    """The port of a server in another process."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there, count, together, times), daemon=True)
    server.start()
    there.close()
    yield here.recv()
    server.join(10)


def rounds(count: int, together: int, repeats: int) -> Iterator[tuple[Figures, Figures]]:
    """(floor, ours) of each repeat over one server; the first reading of each kind, which imports, is left out."""
    with served(count, together, 2 * repeats + 2) as port:
        floor(port), ours(port)
        for _ in range(repeats):
            yield measure(floor, port, count), measure(ours, port, count)


def main() -> int:
    """Measure, print, and fail where the bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON line at the end")
    options = parser.parse_args()
    rows = []
    for together in (1, 100):
        found = list(rounds(options.events, together, options.repeats))
        assert len({figures.characters for pair in found for figures in pair}) == 1
        least, mine = min(pair[0].micros for pair in found), min(pair[1].micros for pair in found)
        rows.append({"events_per_chunk": together, "floor_us": round(least, 2), "us": round(mine, 2)})
        print(
            f"{options.events} events, {together} a chunk: {mine:.1f} us each (bound {BOUND_MICROSECONDS:g}), "
            f"floor {least:.1f} us, ratio {mine / least:.2f}"
        )
    few, many = peak(options.events // 10), peak(options.events)
    print(f"memory at most {many / 1e6:.2f} MB for {options.events} events, {few / 1e6:.2f} MB for a tenth of them")
    if options.json:
        print(json.dumps({"bound_us": BOUND_MICROSECONDS, "rows": rows, "peak_bytes": [few, many]}))
    return 0 if all(row["us"] <= BOUND_MICROSECONDS for row in rows) and many < few + PEAK_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
