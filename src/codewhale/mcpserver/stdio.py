"""Serving over stdin and stdout: one frame a line, each of a bounded size, and nothing else on stdout."""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator
from typing import Any, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

MOST_LINE = 4 << 20  # bytes
_CHUNK = 1 << 16
_PIPE_BUF = 4096  # a pipe that can be written takes this much at once
_NO_FRAME = "{"


class StandardStreams:
    """The descriptors of the wire, taken from 0 and 1: what else reads stdin meets its end, and what else is printed
    goes to stderr."""

    def __init__(self) -> None:
        self.read, self.write = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)


class FrameLines:
    """The lines of a descriptor, read in a thread that keeps no process from ending. A line that is too long comes as
    one that is no frame."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(maxsize=16)
        threading.Thread(target=self._read, name="frames", daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line

    def _read(self) -> None:
        held, skipping = bytearray(), False
        while True:
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except OSError:
                chunk = b""
            if not chunk:
                self._put(None)
                return
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                held += line
                if held.strip() or skipping:
                    self._put(_NO_FRAME if skipping else held.decode("utf-8", "replace"))
                held.clear()
                skipping = False
            held += rest
            if len(held) > MOST_LINE:
                skipping = True
                held.clear()

    def _put(self, line: str | None) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()
        except (RuntimeError, asyncio.CancelledError):  # the loop has ended
            return


class FrameWriter:
    """Writes frames to a descriptor; a reader that is slow delays the frames alone. Raises BrokenPipeError."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def write(self, text: str) -> None:
        """Write all of it."""
        rest = memoryview(text.encode("utf-8", "replace"))
        while rest:
            await self._writable()
            rest = rest[os.write(self._descriptor, rest[:_PIPE_BUF]) :]

    async def flush(self) -> None:
        """Nothing is held back."""

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_writer(self._descriptor, _settle, ready)
        except PermissionError:  # a file is always ready
            return
        try:
            await ready
        finally:
            loop.remove_writer(self._descriptor)


def _settle(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


async def serve_stdio(server: Server[Any], streams: StandardStreams) -> None:
    """Serve until the input ends or nobody reads the output."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    lines, frames = FrameLines(streams.read), FrameWriter(streams.write)
    try:
        async with stdio_server(cast(Any, lines), cast(Any, frames)) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    except* (BrokenPipeError, ConnectionResetError):  # nobody is there any more
        pass
