"""HTTP/1.1 as a client of model endpoints needs it: one POST, one streamed answer, the connection kept.

Written out because it is the hot path of every turn (docs/decisions/http-client.md has the figures). What reads the
wire is strict and bounded; what it does not understand, it refuses. No redirects, cookies or proxies.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

_READ = 256 * 1024
_HEAD_LIMIT = 64 * 1024
_LINE_LIMIT = 4 * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(r"HTTP/1\.([01]) (\d{3})(?: .*)?")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,12}")


class WireError(Exception):
    """An answer that is not HTTP/1.1; the text is one line for a person."""


class WireCut(Exception):
    """The connection ended inside an answer, or before one. `received` tells whether any byte of it had come."""

    def __init__(self, received: bool) -> None:
        super().__init__("the connection was closed inside the answer" if received else "the connection was closed")
        self.received = received


class Head(Struct, frozen=True):
    """The start of an answer; header names are lower-case, repeated ones joined by ", "."""

    minor: int
    status: int
    headers: dict[str, str]

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection may carry another request after this answer."""
        words = {word.strip() for word in self.headers.get("connection", "").lower().split(",")}
        if "transfer-encoding" in self.headers and "content-length" in self.headers:
            return False
        return "close" not in words and (self.minor == 1 or "keep-alive" in words)


def parse_head(data: bytes) -> Head:
    """Parse the status line and headers, without the blank line after them. Raises WireError."""
    first, *lines = data.decode("latin-1").replace("\r\n", "\n").split("\n")
    match = _STATUS.fullmatch(first)
    if match is None:
        raise WireError(f"the server's answer does not begin as HTTP/1.1 does: {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise WireError(f"the server sent a malformed header: {line[:80]!r}")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Head(int(match.group(1)), int(match.group(2)), headers)


class Body(Protocol):
    """How one answer's body is delimited. `done` once it is complete, `rest` what came after it."""

    done: bool
    rest: bytes

    def feed(self, data: bytes) -> bytes:
        """The content in the next bytes from the socket."""
        ...

    def end(self) -> bool:
        """The socket has ended: whether the body may end so."""
        ...


class SizedBody:
    """A body of a known number of bytes."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.done = size == 0
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """The content in the next bytes from the socket."""
        content = data[: self._left]
        self.rest = data[self._left :]
        self._left -= len(content)
        self.done = self._left == 0
        return content

    def end(self) -> bool:
        """Never: the size was promised."""
        return False


class OpenBody:
    """A body that lasts until the connection is closed."""

    def __init__(self) -> None:
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """All of it is content."""
        return data

    def end(self) -> bool:
        """The end of the connection is the end of the body."""
        self.done = True
        return True


class ChunkedBody:
    """A body in chunks, each after a line with its size in hex; extensions and trailers are skipped."""

    def __init__(self) -> None:
        self.done = False
        self.rest = b""
        self._pending = b""
        self._left = 0
        self._state = "size"

    def feed(self, data: bytes) -> bytes:
        """The content in the next bytes from the socket. Raises WireError."""
        if self._pending:
            data = self._pending + data
            self._pending = b""
        content: list[bytes] = []
        at = 0
        while at < len(data) and not self.done:
            if self._state == "data":
                piece = data[at : at + self._left]
                content.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._state = "after"
                continue
            stop = data.find(b"\n", at)
            if stop < 0:
                break
            self._line(data[at:stop].removesuffix(b"\r"))
            at = stop + 1
        if self.done:
            self.rest = data[at:]
        else:
            self._pending = data[at:]
            if len(self._pending) > _LINE_LIMIT:
                raise WireError("the server sent a chunk header that is too long")
        return b"".join(content)

    def end(self) -> bool:
        """Never: the last chunk was promised."""
        return False

    def _line(self, line: bytes) -> None:
        if self._state == "after":
            if line:
                raise WireError("the server sent a chunk that is longer than its size")
            self._state = "size"
        elif self._state == "size":
            size = line.split(b";", 1)[0].strip()
            if not _SIZE.fullmatch(size):
                raise WireError(f"the server sent a malformed chunk size: {line[:40]!r}")
            self._left = int(size, 16)
            self._state = "data" if self._left else "trailer"
        elif not line:
            self.done = True


def body_of(head: Head) -> Body:
    """The body that follows a head. Raises WireError where its length cannot be told."""
    if head.status in (204, 304):
        return SizedBody(0)
    coding = head.headers.get("transfer-encoding", "").lower()
    if coding:
        if coding != "chunked":
            raise WireError(f"the server used a transfer coding that was not asked for: {coding[:40]}")
        return ChunkedBody()
    length = head.headers.get("content-length")
    if length is None:
        return OpenBody()
    sizes = {size.strip() for size in length.split(",")}
    size = sizes.pop()
    if sizes or not (size.isascii() and size.isdigit()) or len(size) > 15:
        raise WireError(f"the server sent a malformed content-length: {length[:40]!r}")
    return SizedBody(int(size))


class Connection:
    """One connection: requests one after another, each answer read to its end or the connection dropped."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._body: Body = SizedBody(0)
        self._early = b""
        self._keeps_alive = True
        self._received = False
        self.requests = 0

    @property
    def reusable(self) -> bool:
        """Whether another request may follow: the last answer is complete and nothing ended the connection."""
        clean = self._keeps_alive and self._body.done and not self._body.rest and not self._early
        alive = not self._writer.is_closing() and not self._reader.at_eof() and self._reader.exception() is None
        return clean and alive and not self._writer.transport.get_write_buffer_size()

    async def request(self, head: bytes, body: bytes) -> Head:
        """Send a request and read the start of its answer. Raises WireError, WireCut, OSError."""
        self.requests += 1
        self._keeps_alive = self._received = False
        self._writer.writelines((head, body))
        with contextlib.suppress(ConnectionError):  # The server may have answered before it hung up.
            await self._writer.drain()
        answer = await self._read_head()
        self._body = body_of(answer)
        self._keeps_alive = answer.keeps_alive
        return answer

    async def read(self) -> bytes:
        """More of the answer's content as it comes, b"" at its end. Raises WireError, WireCut, OSError."""
        while not self._body.done:
            data, self._early = self._early, b""
            if not data:
                data = await self._receive()
            if not data:
                if not self._body.end():
                    raise WireCut(self._received)
                return b""
            content = self._body.feed(data)
            if content:
                return content
        return b""

    @property
    def complete(self) -> bool:
        """Whether the answer has been read to its end."""
        return self._body.done

    def close(self) -> None:
        """Drop the connection at once, without waiting for anything."""
        self._writer.transport.abort()

    async def _read_head(self) -> Head:
        data = b""
        while True:
            found = _HEAD_END.search(data)
            if found is not None:
                head = parse_head(data[: found.start()])
                data = data[found.end() :]
                if head.status < 200:
                    continue
                self._early = data
                return head
            if len(data) > _HEAD_LIMIT:
                raise WireError("the server's answer has too many headers")
            more = await self._receive()
            if not more:
                raise WireCut(self._received)
            data += more

    async def _receive(self) -> bytes:
        try:
            data = await self._reader.read(_READ)
        except ConnectionError:
            raise WireCut(self._received)
        self._received = self._received or bool(data)
        return data


def request_head(target: str, host: str, headers: Mapping[str, str], size: int) -> bytes:
    """The head of a POST of `size` bytes. Header names and values must already be checked."""
    lines = [f"POST {target} HTTP/1.1", f"host: {host}", f"content-length: {size}"]
    lines += (f"{name}: {value}" for name, value in headers.items())
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
