"""What a provider's prefix cache should know of the next request, from the bytes of those it was sent before.

A request's cache hits can reach no further than the bytes it shares with an earlier one to the same model. Where they
fall short of that, or where the shared part ends early, there is a cause, and it has a name.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from codewhale.models.dialects.base import Fact, LoadImage
from codewhale.protocol.events import (
    Compacted,
    CompactionUndone,
    Envelope,
    Event,
    ModelChanged,
    PrefixInvalidated,
    RequestSent,
    ResultsPruned,
    ToolActivated,
    UsageReported,
)
from codewhale.protocol.stream import Usage
from codewhale.session.projection import request_body

# Why the shared part may end early, the strongest first: one edge may bring others with it.
_EDGES: Mapping[type, str] = {
    ModelChanged: "model",
    Compacted: "compaction",
    CompactionUndone: "undo",
    ResultsPruned: "pruned",
    ToolActivated: "activation",
}
_ORDER = tuple(_EDGES.values())
# How many bodies a model's cache is remembered by: the latest, and those an edge has put aside.
_KEPT = 3
_STRIDE = 1 << 16
# What stands behind the messages of a body is short; a request that shares all but this much shares them all.
_TAIL = 512
# A hit may fall short by this share of what was expected before anyone is told.
_SLACK = 0.02
_IDLE = 3600


class Sent(Struct):
    """A request as it was sent: its bytes, the provider's count of its prompt (0 is unknown), and when (seconds).
    `marks` are the counts of earlier requests that it goes on from, by their size."""

    body: bytes
    input: int
    at: float
    marks: list[tuple[int, int]] = []

    def tokens(self, size: int) -> float:
        """How many tokens its first `size` bytes are, between the counts that stand nearest."""
        if size >= len(self.body) - _TAIL:
            return self.input
        marks = [(0, 0), *self.marks, (len(self.body), self.input)]
        at = bisect_left(marks, (size, 0), 1, len(marks) - 1)
        (low, few), (high, many) = marks[at - 1], marks[at]
        return few + (many - few) * (size - low) / max(1, high - low)


class Expected(Struct, frozen=True):
    """What the cache should know of a request: `bytes` of its beginning, shared with `earlier`. `cause` says why that
    is not all of the conversation so far; "" when it is."""

    bytes: int = 0
    earlier: Sent | None = None
    cause: str = ""


# The first request of the latest session with a head, by provider, model and the head's sha256.
Heads = dict[tuple[str, str, str], Sent]


class PrefixCache:
    """The requests of one session, by the model that was asked. `heads` may be shared with other sessions: what they
    began with, the provider's cache knows as well."""

    def __init__(self) -> None:
        self.heads: Heads = {}
        self._sent: dict[tuple[str, str], list[Sent]] = {}
        self._edge = ""

    def apply(self, event: Event) -> None:
        """Take note of an edge; of everything else nothing."""
        if name := _EDGES.get(type(event)):
            self._mark(name)
        elif isinstance(event, PrefixInvalidated) and not self._edge:
            self._mark(event.reason)

    def _mark(self, name: str) -> None:
        if self._edge not in _ORDER or (name in _ORDER and _ORDER.index(name) < _ORDER.index(self._edge)):
            self._edge = name

    @property
    def empty(self) -> bool:
        """Whether no request is remembered."""
        return not self._sent

    def recall(self, envelopes: Iterable[Envelope], route: tuple[str, str], load_image: LoadImage) -> None:
        """Remember the last request of a log that is gone on with, when it went to the model of today."""
        events, last, at, tokens = [], 0, 0.0, 0
        for envelope in envelopes:
            event = envelope.event
            events.append(event)
            if isinstance(event, RequestSent) and not event.purpose:
                last, at, tokens = event.request, datetime.fromisoformat(envelope.at).timestamp(), 0
                self._edge = ""
            elif isinstance(event, UsageReported) and event.request == last and not event.estimated:
                tokens = event.usage.input
            else:
                self.apply(event)
        body = request_body(events, last, load_image) if last and self._edge != "model" else None
        if body is not None:
            self._sent[route] = [Sent(body, tokens, at)]

    def inherit(self, other: "PrefixCache") -> None:
        """Know what the session whose conversation this one goes on from has sent."""
        self._sent = {route: sent[-1:] for route, sent in other._sent.items()}
        self._edge = ""

    def expect(self, route: tuple[str, str], body: bytes, head: str = "") -> Expected:
        """What the cache of this model should know of a body that begins with a head of this sha256."""
        known = self._sent.get(route, [])
        if not known:
            first = self.heads.get((*route, head))
            return Expected(common_prefix(first.body, body) if first else 0, first, self._edge or "cold")
        alike = [common_prefix(sent.body, body) for sent in known]
        shared, at = max((common, at) for at, common in enumerate(alike))
        # The conversation goes on from its latest request, whichever earlier one this shares most with.
        whole = alike[-1] >= len(known[-1].body) - _TAIL
        return Expected(shared, known[at], "" if whole else self._edge or "changed")

    def sent(self, route: tuple[str, str], body: bytes, expected: Expected, at: float, head: str = "") -> None:
        """Remember a request of the conversation. What an edge put aside is kept for a while: it may be undone."""
        mine, marks = self._sent.setdefault(route, []), []
        if mine and not expected.cause:
            last = mine.pop()
            marks = [*last.marks, (len(last.body), last.input)] if last.input else last.marks
        mine.append(Sent(body, 0, at, marks))
        if len(mine) == 1 and not marks:
            self.heads[*route, head] = mine[0]
        del mine[:-_KEPT]
        self._edge = ""

    def counted(self, route: tuple[str, str], tokens: int) -> None:
        """The provider has counted the prompt of the latest request."""
        self._sent[route][-1].input = tokens


def common_prefix(one: bytes, other: bytes) -> int:
    """The number of bytes that two bodies begin with alike."""
    low, end = 0, min(len(one), len(other))
    while low < end and one[low : low + _STRIDE] == other[low : low + _STRIDE]:
        low += _STRIDE
    high = min(low + _STRIDE, end)
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return min(low, end)


def expected_tokens(expected: Expected, body: int, usage: Usage, facts: Mapping[str, Fact]) -> int:
    """How many prompt tokens of a call should have come from the cache. Facts of the provider: `cache_block` (hits
    come in whole blocks of this many tokens) and `cache_min` (shorter prefixes are not kept)."""
    earlier = expected.earlier
    if earlier is None or not body:
        return 0
    tokens = earlier.tokens(expected.bytes) if earlier.input else usage.input * expected.bytes / body
    block = max(1, int(facts.get("cache_block", 1)))
    whole = int(tokens) // block * block
    return 0 if whole < int(facts.get("cache_min", 0)) else min(whole, usage.input)


def cause_of_miss(expected: Expected, tokens: int, usage: Usage, idle: float, facts: Mapping[str, Fact]) -> str:
    """Why a call's cache hits fell short; "" when they did not, or when the provider does not tell of its cache. The
    fact `cache_seconds` says how long a prefix is kept unused."""
    if not (usage.cache_hit or usage.cache_miss):
        return ""
    if expected.cause:
        return expected.cause
    block = max(1, int(facts.get("cache_block", 1)))
    if usage.cache_hit >= tokens - max(block, tokens * _SLACK):
        return ""
    return "expired" if idle > int(facts.get("cache_seconds", _IDLE)) else "provider"
