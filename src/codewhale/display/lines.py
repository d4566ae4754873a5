"""Envelopes as JSON lines: the one spelling of the event stream that programs read."""

from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.text import ascii_json
from codewhale.protocol.events import Envelope, KnownEvent, UnknownEvent

WIRE_VERSION = 1


class _Line(Struct, frozen=True):
    v: int
    seq: int
    session: str
    at: str
    event: KnownEvent | msgspec.Raw


def envelope_line(envelope: Envelope) -> str:
    """`{"v":1,"seq","session","at","event":{"type",...}}` in ASCII, without the newline. An event of a later
    version keeps its own bytes."""
    event = envelope.event.raw if isinstance(envelope.event, UnknownEvent) else envelope.event
    line = _Line(WIRE_VERSION, envelope.seq, envelope.session, envelope.at, event)
    return ascii_json(msgspec.json.encode(line))


def object_line(value: Any) -> str:
    """Any JSON-able value in ASCII, without a newline."""
    return ascii_json(msgspec.json.encode(value))
