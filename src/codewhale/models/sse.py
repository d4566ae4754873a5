"""Server-sent events: bytes in, in any chunking, events out.

Stricter than a browser where an agent must be: bytes that are not UTF-8 fail the stream instead of becoming
replacement characters, and lines and events are bounded.
"""

from collections.abc import Iterator
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event: its name ("message" unless the stream says otherwise) and its data lines, joined by newlines."""

    name: str
    data: str


class SseError(Exception):
    """A stream that is not server-sent events, or that outgrew its bounds. The text is one line for a person; `damaged`
    tells that its bytes are spoiled, so that another try may bring them whole."""

    def __init__(self, message: str, damaged: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged


class SseReader:
    """Reads one stream. `limit` bounds a line and an event's data, in bytes."""

    def __init__(self, limit: int = 8 * 1024 * 1024) -> None:
        self._limit = limit
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._skip_newline = False
        self._first_line = True
        self._name = ""
        self._data: list[str] = []
        self._data_size = 0

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """The events that `chunk` completes. Raises SseError at the offending place, after the events before it."""
        if self._skip_newline and chunk:
            self._skip_newline = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_newline = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            if self._tail:
                line = self._join_tail(line)
            event = self._line(line)
            if event is not None:
                yield event
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
            if self._tail_size > self._limit:
                raise SseError(f"a line of the event stream is longer than {self._limit} bytes")

    def close(self) -> Iterator[SseEvent]:
        """The stream has ended: the last event, where no blank line followed it."""
        if self._tail:
            self._line(self._join_tail(b""))
        event = self._line(b"")
        if event is not None:
            yield event

    def _join_tail(self, end: bytes) -> bytes:
        line = b"".join((*self._tail, end))
        self._tail.clear()
        self._tail_size = 0
        return line

    def _line(self, raw: bytes) -> SseEvent | None:
        if self._first_line:
            self._first_line = False
            raw = raw.removeprefix(_BOM)
        if not raw:
            return self._dispatch()
        if len(raw) > self._limit:
            raise SseError(f"a line of the event stream is longer than {self._limit} bytes")
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            raise SseError("the event stream contains bytes that are not UTF-8", damaged=True)
        if line.startswith("data: "):
            self._add(line[6:], len(raw))
        else:
            self._field(line, len(raw))
        return None

    def _field(self, line: str, size: int) -> None:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._add(value, size)
        elif field == "event":
            self._name = value
        elif field == "error":  # llama.cpp servers of 2025 tell a failure in a field of that name.
            self._name = field
            self._add(value, size)

    def _add(self, value: str, size: int) -> None:
        self._data.append(value)
        self._data_size += size
        if self._data_size > self._limit:
            raise SseError(f"an event of the stream is larger than {self._limit} bytes")

    def _dispatch(self) -> SseEvent | None:
        name, data = self._name, self._data
        self._name = ""
        if not data:
            return None
        self._data = []
        self._data_size = 0
        return SseEvent(name or "message", data[0] if len(data) == 1 else "\n".join(data))
