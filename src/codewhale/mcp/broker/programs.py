"""A server that is a program: started and ended by the launcher, one message a line. What it writes is read only as
fast as it is taken; a line without end, and noise between the messages, harm nobody."""

import asyncio
import contextlib
import json
from collections import deque
from types import TracebackType

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from codewhale.mcp.terms import ServerFailed, ServerSpec
from codewhale.process.command import Launch
from codewhale.process.launch import Child, settle, start

MOST_LINE = 160 << 20
MOST_WAITING = 1 << 20
STDERR = 4000
END_SECONDS = 2.0
_KEPT = 3000  # bytes of its output that the launcher keeps beside


class ProgramTransport:
    """The streams of one program. `ended` is set when it is gone; `stderr` is the end of what it wrote there."""

    def __init__(self, spec: ServerSpec) -> None:
        self.ended = asyncio.Event()
        self._spec = spec
        self._stderr = bytearray()
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        self._part: list[bytes] = []
        self._part_size = 0
        self._more = asyncio.Event()
        self._child: Child | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._in, self._read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._write, self._out = anyio.create_memory_object_stream[SessionMessage](0)

    @property
    def stderr(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    async def __aenter__(self) -> TransportStreams:
        spec = self._spec
        launch = Launch(
            argv=spec.argv, cwd=spec.folder or "/", env=spec.env, profile=spec.profile, keep_stdin=True,
            output_limit=_KEPT, declared=True,
        )  # fmt: skip
        try:
            self._child = await start(launch, self._heard)
        except OSError as error:
            text = f"The MCP server {spec.name} could not be started: {spec.argv[0]}: {error.strerror}."
            raise ServerFailed("start", text) from None
        self._tasks = [
            asyncio.create_task(work) for work in (self._watch(self._child), self._deliver(), self._send(self._child))
        ]
        return self._read, self._write

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child is not None
        with contextlib.suppress(OSError):
            await self._child.close_stdin()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._child.wait(), END_SECONDS)
        await settle(self._child.kill())
        for task in self._tasks:
            task.cancel()
        for stream in (self._in, self._read, self._write, self._out):
            stream.close()

    def _heard(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._stderr += data
            del self._stderr[:-STDERR]
            return
        first, *rest = data.split(b"\n")
        self._part.append(first)
        self._part_size += len(first)
        for piece in rest:
            self._lines.append(b"".join(self._part))
            self._waiting += self._part_size
            self._part, self._part_size = [piece], len(piece)
        if self._part_size > MOST_LINE:
            self._stderr += b"\n(a message of more than %d bytes: the server was ended)" % MOST_LINE
            self._part, self._part_size = [], 0
            assert self._child is not None
            self._tasks.append(asyncio.create_task(self._child.kill()))
        if self._waiting > MOST_WAITING and self._child is not None:
            self._child.hold("stdout", True)
        self._more.set()

    async def _deliver(self) -> None:
        """Hand on message after message; the stream ends with the program."""
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                while self._lines:
                    line = self._lines.popleft()
                    self._waiting -= len(line)
                    message = parsed(line)
                    if message is not None:
                        await self._in.send(SessionMessage(message))
                assert self._child is not None
                self._child.hold("stdout", False)
                if self.ended.is_set():
                    break
                self._more.clear()
                await self._more.wait()
        self._in.close()

    async def _send(self, child: Child) -> None:
        with contextlib.suppress(OSError):
            async for message in self._out:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await child.write(text.encode("utf-8", "replace") + b"\n")

    async def _watch(self, child: Child) -> None:
        await child.wait()
        self.ended.set()
        self._more.set()


def parsed(line: bytes) -> JSONRPCMessage | None:
    """The message of a line; None for what is none. Bytes that are no UTF-8, and halves of characters, are replaced."""
    if not line.strip():
        return None
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        found = json.loads(line.decode("utf-8", "replace"))
        repaired = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(repaired, by_name=False)
    except (ValueError, RecursionError):
        return None
