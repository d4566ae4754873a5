"""The form of one log record and how a file of records is read: pure functions of bytes.

A record is one line of UTF-8, `{"crc":"8 hex","v":1,"seq":N,"session":"..","at":"..","event":{..}}`; the crc32
covers everything after its own member. Characters at which text tools break lines are escaped.
"""

import functools
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from codewhale.lib import jsontext
from codewhale.lib.patterns import lazy
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import LOG_VERSION, Envelope, Event, KnownEvent, UnknownEvent

_PREFIX = b'{"crc":"'
_BODY = len(_PREFIX) + 8 + 2  # where the bytes under the crc begin
_TYPE = b'{"type":"'
_SEQ = b'"v":%d,"seq":' % LOG_VERSION
# A record's beginning that no nested object can be: those stand after a colon, a comma or a bracket.
_RESTART = lazy(rb'(?<![:,\[])\{"crc":"[0-9a-f]{8}","v":')
_BREAKS = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


class _Head(Struct):
    v: int
    seq: int = 0


class _Known(Struct):
    seq: int
    session: str
    at: str
    event: KnownEvent


class Record(Struct, frozen=True):
    """A record whose event has not been decoded."""

    seq: int
    session: str
    at: str
    event: Raw

    @property
    def type(self) -> str:
        """The event's type tag."""
        head = bytes(memoryview(self.event)[:64])
        if head.startswith(_TYPE) and (end := head.find(b'"', len(_TYPE))) > 0:
            return head[len(_TYPE) : end].decode()
        return _TAG.decode(self.event).type


class _Tag(Struct):
    type: str = ""


_HEAD = msgspec.json.Decoder(_Head)
_RECORD = msgspec.json.Decoder(Record)
_TAG = msgspec.json.Decoder(_Tag)


@functools.cache
def event_decoder() -> msgspec.json.Decoder[KnownEvent]:
    """What reads events. It takes milliseconds to make, so there is one, and none until something is read."""
    return msgspec.json.Decoder(KnownEvent)


@functools.cache
def _known_decoder() -> msgspec.json.Decoder[_Known]:
    return msgspec.json.Decoder(_Known)


class NewerFormatError(SessionError):
    """The log was written by a later version; it is left as it is."""


class LogDamage(Struct, frozen=True):
    """What opening a log had to leave out: bytes cut from its torn end, lines skipped in its middle, records
    that stood there twice."""

    cut_bytes: int = 0
    skipped_lines: int = 0
    duplicates: int = 0

    def __bool__(self) -> bool:
        return bool(self.cut_bytes or self.skipped_lines or self.duplicates)


# ------------------------------------------------------------------ writing


def event_json(event: Event) -> tuple[bytes, Event]:
    """The event's JSON bytes and the event as those bytes say it (the same, but where something in it could not
    be written)."""
    if isinstance(event, UnknownEvent):
        return bytes(event.raw), event
    try:
        data = msgspec.json.encode(event)
    except ValueError:  # a lone surrogate, an endless number
        data = jsontext.encode(event)
        event = event_decoder().decode(data)
    if not data.isascii():
        for char, escape in _BREAKS:
            data = data.replace(char, escape)
    return data, event


def frame(seq: int, session: str, at: str, event: bytes) -> bytes:
    """The record's line, newline included."""
    body = b'%b%d,"session":"%b","at":"%b","event":%b}' % (_SEQ, seq, session.encode(), at.encode(), event)
    return b'%b%08x",%b\n' % (_PREFIX, crc32(body), body)


# ------------------------------------------------------------------ reading


def decode(line: bytes) -> Envelope:
    """The envelope of a checked record; an event this version does not know is kept as its bytes."""
    try:
        known = _known_decoder().decode(line)
    except msgspec.ValidationError:
        record = _RECORD.decode(line)
        return Envelope(record.seq, record.session, record.at, UnknownEvent(record.type, record.event.copy()))
    return Envelope(known.seq, known.session, known.at, known.event)


def decode_record(line: bytes) -> Record:
    """A checked record with its event left as bytes."""
    return _RECORD.decode(line)


def decode_event(raw: Raw) -> KnownEvent:
    """The event in `raw`. Raises msgspec.ValidationError for one this version does not know."""
    event: KnownEvent = event_decoder().decode(raw)
    return event


def checked_seq(line: bytes) -> int:
    """The seq of a whole record (no newline), 0 for anything else. Raises NewerFormatError."""
    if line[:8] != _PREFIX or line[16:18] != b'",' or b"%08x" % crc32(memoryview(line)[_BODY:]) != line[8:16]:
        return 0
    if line.startswith(_SEQ, _BODY):
        start = _BODY + len(_SEQ)
        return int(line[start : line.index(b",", start)])
    return _foreign_seq(b"{" + line[_BODY:])


def _foreign_seq(data: bytes) -> int:
    try:
        head = _HEAD.decode(data)
    except msgspec.DecodeError:
        return 0
    if head.v > LOG_VERSION:
        raise NewerFormatError(
            f"the session was written in log format {head.v}; this version of CodeWhale reads up to {LOG_VERSION}. "
            "Nothing was changed: open it with a newer CodeWhale."
        )
    return head.seq


class Index:
    """Where a log's whole records are: parallel arrays in order of seq, and what was found beside them.

    `end` is the offset after the last whole line, or after a last record that lacks only its newline
    (`unended`); `size` is where reading stopped. What lies between the two is a torn record.
    """

    def __init__(self, start: int = 0) -> None:
        self.seqs = array("Q")
        self.starts = array("Q")
        self.ends = array("Q")
        self.end = start
        self.size = start
        self.unended = False
        self.skipped = 0
        self.duplicates = 0
        self._seen: set[int] | None = None
        self._unsorted = False

    @property
    def last(self) -> int:
        """The highest seq, 0 when empty."""
        return self.seqs[-1] if self.seqs else 0

    def position(self, seq: int) -> int:
        """The entry of the first record at or after `seq`."""
        return bisect_left(self.seqs, seq)

    @property
    def damage(self) -> LogDamage:
        """The damage this reading met."""
        return LogDamage(self.size - self.end, self.skipped, self.duplicates)

    def add(self, seq: int, start: int, end: int) -> None:
        """Take a record in; one whose seq is there already is dropped and counted."""
        if self._unsorted or (self.seqs and seq <= self.seqs[-1]):
            if self._seen is None:
                self._seen = set(self.seqs)
            if seq in self._seen:
                self.duplicates += 1
                return
            self._unsorted = True
        if self._seen is not None:
            self._seen.add(seq)
        self.seqs.append(seq)
        self.starts.append(start)
        self.ends.append(end)

    def settle(self) -> None:
        """Put records found out of order into the order of their seq."""
        if self._unsorted:
            order = sorted(range(len(self.seqs)), key=self.seqs.__getitem__)
            for name in ("seqs", "starts", "ends"):
                column = getattr(self, name)
                setattr(self, name, array("Q", (column[i] for i in order)))
            self._unsorted = False


def scan(file: BinaryIO, start: int = 0) -> Index:
    """The index of a log's records from offset `start`, a line's beginning. Raises NewerFormatError."""
    file.seek(start)
    index = Index(start)
    position = start
    for line in file:
        if line.endswith(b"\n"):
            seq = checked_seq(line[:-1])
            if seq:
                index.add(seq, position, position + len(line) - 1)
            elif len(line) > 1:
                index.skipped += 1
                _salvage(index, line, position)
            index.end = position + len(line)
        else:
            index.end = _salvage(index, line, position)
            index.unended = index.end > position
        position += len(line)
    index.size = position
    index.settle()
    return index


def _salvage(index: Index, line: bytes, position: int) -> int:
    """Take in the whole records inside a damaged or unended line: a lost line end joins two of them. Returns the
    offset after the last one, `position` when there is none."""
    if position == 0 and not line.startswith(_PREFIX):
        _foreign_seq(line)
    last = position
    marks = [match.start() for match in _RESTART().finditer(line)]
    for start, stop in pairwise([*marks, len(line)]):
        end = stop
        for _ in range(2):
            end = line.rfind(b"}", start, end)
            seq = checked_seq(line[start : end + 1]) if end > start else 0
            if seq:
                last = position + end + 1
                index.add(seq, position + start, last)
                break
    return last


def lines(file: BinaryIO, index: Index, first: int, stop: int) -> Iterator[bytes]:
    """The records of an index, entries `first` to before `stop`, as lines without their ends."""
    at = -1
    for i in range(first, stop):
        start, end = index.starts[i], index.ends[i]
        if start != at:
            file.seek(start)
        line = file.read(end - start + 1)
        at = start + len(line)
        yield line[: end - start]
