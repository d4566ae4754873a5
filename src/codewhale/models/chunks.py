"""HTTP chunks that arrived together, handed on as one.

Servers send each event in a chunk of its own, and an HTTP library's work for a chunk is many times that for an event.
What is unusual passes untouched: the library judges it.
"""

import re
import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpcore2

_HEAD_END = re.compile(rb"\n\r?\n")
_HEAD_LIMIT = 256 * 1024
_CHUNKED = re.compile(rb"(?im)^transfer-encoding:[ \t]*chunked[ \t]*\r?$")
_LINE_END = b"\r\n"
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
_PART_OF_SIZE = re.compile(rb"[0-9A-Fa-f]{0,15}\r?")


class ChunkMerger:
    """Rewrites one connection's answers, in any pieces, into the same content in fewer chunks."""

    def __init__(self) -> None:
        self._head: bytearray | None = None
        self._chunked = False
        self._left = 0
        self._rest = b""

    def expect(self) -> None:
        """A request goes out: an answer's head comes next."""
        self._head, self._chunked, self._left, self._rest = bytearray(), False, 0, b""

    def feed(self, data: bytes) -> bytes:
        """What to hand on for these bytes; b"" where more of them must come first."""
        if self._head is None:
            return self._merge(self._rest + data) if self._chunked else data
        begin = len(self._head)
        self._head += data
        if (end := _HEAD_END.search(self._head)) is None:
            if begin > _HEAD_LIMIT:
                self._head = None
            return data
        passed = bytes(self._head[begin : end.end()])
        head, rest = self._head[: end.end()], bytes(self._head[end.end() :])
        if head.startswith(b"HTTP/1.1 1"):
            self._head = bytearray()
            return passed + self.feed(rest)
        self._head = None
        self._chunked = _CHUNKED.search(head) is not None
        return passed + (self._merge(rest) if self._chunked else rest)

    def _merge(self, data: bytes) -> bytes:
        """The content of `data`, whose first `_left` bytes belong to a chunk with its line end."""
        pieces: list[bytes] = []
        at, after = 0, b""
        self._rest = b""
        while at < len(data) and self._chunked:
            if self._left == 0:
                line = _SIZE.match(data, at)
                if line is None and _PART_OF_SIZE.fullmatch(data, at):
                    self._rest = data[at:]
                    break
                if line is None or int(line[1], 16) == 0:  # What is none, or the last.
                    self._chunked, after = False, data[at:]
                    break
                self._left, at = int(line[1], 16) + 2, line.end()
            stop = at + max(0, self._left - 2)
            if piece := data[at:stop]:
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
            if self._left <= 2 and at < len(data):
                found = data[at : at + self._left]
                if not _LINE_END[-self._left :].startswith(found):
                    self._chunked, after = False, b"!" + data[at:]  # Never to be taken for a chunk's size.
                at += len(found)
                self._left -= len(found)
        content = b"".join(pieces)
        return (b"%x\r\n%b\r\n%b" % (len(content), content, after)) if content else after


class MergedStream:
    """A connection that is read through a ChunkMerger; see `httpcore2.AsyncNetworkStream`."""

    def __init__(self, stream: "httpcore2.AsyncNetworkStream") -> None:
        self._stream = stream
        self._merger = ChunkMerger()
        self._head, self._answered = b"", True
        self._socket: Any = None
        self.aclose = stream.aclose

    def get_extra_info(self, info: str) -> Any:
        """What the library knows of the connection; whether there is something to read is asked several times a
        request, and told without a search for the socket."""
        if info != "is_readable":
            return self._stream.get_extra_info(info)
        if self._socket is None:
            self._socket = self._stream.get_extra_info("socket")
        if self._socket is None or self._socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes, b"" at the end."""
        if self._head:
            await self._send(b"", timeout)
        while data := await self._stream.read(max_bytes, timeout):
            self._answered = True
            if merged := self._merger.feed(data):
                return merged
        return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send a piece of a request: its head goes out with what follows it."""
        self._merger.expect()
        if self._head or not self._answered:
            await self._send(buffer, timeout)
        else:
            self._head, self._answered = buffer, False

    async def _send(self, buffer: bytes, timeout: float | None) -> None:
        whole, self._head = self._head + buffer, b""
        await self._stream.write(whole, timeout)

    async def start_tls(
        self, ssl_context: "ssl.SSLContext", server_hostname: str | None = None, timeout: float | None = None
    ) -> "MergedStream":
        """The same connection, encrypted."""
        return MergedStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))


def merging_backend(refuses: Callable[[str], str] | None = None) -> Any:
    """A network backend for an httpcore2 pool. `refuses(address)` is asked of the address that was reached, before a
    byte is sent to it: why not (PermissionError), or ""."""
    import httpcore2

    class Backend(httpcore2.AnyIOBackend):
        async def connect_tcp(self, *args: Any, **options: Any) -> Any:
            stream = await super().connect_tcp(*args, **options)
            reason = refuses(str(stream.get_extra_info("server_addr")[0])) if refuses is not None else ""
            if reason:
                await stream.aclose()
                raise PermissionError(reason)
            return MergedStream(stream)

    return Backend()
